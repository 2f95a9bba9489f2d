"""The checker: good histories are not flagged, and bad ones for what is wrong with them. Here: the whole, and gaps."""

from __future__ import annotations

import dataclasses

import pytest

from tests.chaos.blocks import block, count_touched
from tests.chaos.checker import check
from tests.chaos.history import CONFIGS, LEASES, NODES, POOLS, History
from tests.chaos.pools import read_pool
from tests.chaos.story import KNOWN, LONG, Story, broken, selects


def test_a_good_history(story: Story) -> None:
    """All that a sound controller does: nodes and pools of both kinds come, go and come again."""
    story.pool("both", ipv4="10.1.0.0/22", ipv6="fd00::/118", nodeSelector=selects("zone", "In", "b"))
    story.config("v4", "10.2.0.0/22", 24, {"np": "3"})
    story.config("v6", "fd01::/62", 64, {"np": "3"})
    story.serve("b", "both", "10.1.0.0/24,fd00::/120", {"zone": "b"})
    story.serve("c", "ccc/v4,ccc/v6", "10.2.0.0/24,fd01::/64", {"np": "3"})
    story.gone(NODES, "a")
    story.serve("a", "pool", "10.0.0.0/24")
    story.delete(POOLS, "both")
    story.wait(LONG)
    story.gone(NODES, "b")
    story.gone(POOLS, "both")
    story.snapshot()
    assert check(story.history()) == []


def test_without_intents() -> None:
    """Where nothing is recorded, the Lease is not looked at."""
    story = Story(intents=False)
    story.pool("pool", ipv4="10.0.0.0/21")
    story.serve("a", "pool", "10.0.0.0/24")
    assert check(story.history()) == []


def test_gaps_of_the_recorder(story: Story) -> None:
    """What the recorder could not find out is flagged."""
    assert broken(dataclasses.replace(story.history(), gaps=("410",))) == {"gap"}


@pytest.mark.parametrize("lost", ["ADDED", "MODIFIED", "DELETED"])
def test_a_change_that_is_missing(story: Story, lost: str) -> None:
    """A change that a list knows of and the history does not is flagged."""
    story.node("b")
    story.relabel("b", {"zone": "a"})
    story.snapshot()
    story.gone(NODES, "b")
    story.snapshot()
    whole = story.history()
    assert check(whole) == []
    changes = tuple(each for each in whole.changes if not (each.name == "b" and each.type == lost))
    assert broken(dataclasses.replace(whole, changes=changes)) == {"gap"}


def test_changed_before_it_was_added(story: Story) -> None:
    """A history that contradicts itself is flagged without any list."""
    whole = story.history()
    changes = tuple(each for each in whole.changes if not (each.collection == LEASES and each.type == "ADDED"))
    assert broken(dataclasses.replace(whole, changes=changes)) == {"gap"}


def test_snapshots_of_the_end(story: Story) -> None:
    """A list of after the last change is compared, too."""
    seen = story.snapshot()
    story.snapshots[-1] = dataclasses.replace(seen, revision=seen.revision + 10, objects={})
    assert broken(story.history()) == {"gap"}


def test_no_time_is_known() -> None:
    """A revision that no answer tells of happened at no known time, which excuses."""
    story = Story()
    story.pool("pool", ipv4="10.0.0.0/21")
    story.node("b")
    story.node("c")
    story.seize("b", "10.0.1.0/24")
    story.wait(KNOWN)
    story.give("c", "pool", "10.0.1.0/24")
    story.writes.clear()
    assert "overlap" not in broken(story.history())


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        ("In", ["1", "2"], "12"),
        ("NotIn", ["1"], "2x-"),
        ("Exists", [], "12x"),
        ("DoesNotExist", [], "-"),
        ("Gt", ["1"], "2"),
        ("Lt", ["2"], "1"),
    ],
)
def test_operators(operator: str, values: list[str], matching: str) -> None:
    """S1: of nodes with the label 1, 2, x and without it, those that each operator selects."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "nodeSelector": selects("n", operator, *values)}
    pool = read_pool(POOLS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert "".join(each for each in "12x-" if pool.selects("a", {} if each == "-" else {"n": each})) == matching


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        ({}, "ab"),
        ({"nodeSelectorTerms": []}, "ab"),
        ({"nodeSelectorTerms": [{}]}, ""),
        ({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}, "a"),
    ],
)
def test_selectors(selector: dict[str, object], matching: str) -> None:
    """S1, S2: no terms select all, an empty one none, and fields know the name."""
    spec = {"perNodeHostBits": 8, "ipv4": "10.0.0.0/16", "nodeSelector": selector}
    pool = read_pool(POOLS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert "".join(name for name in "ab" if pool.selects(name, {})) == matching


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        (None, "12-"),
        ({"matchLabels": {"n": "1"}}, "1"),
        ({"matchExpressions": [{"key": "n", "operator": "Exists"}]}, "12"),
        ({"matchLabels": {"n": "1"}, "matchExpressions": [{"key": "n", "operator": "NotIn", "values": ["1"]}]}, ""),
    ],
)
def test_selectors_of_configs(selector: dict[str, object] | None, matching: str) -> None:
    """K2, S1: of nodes with the label 1, 2 and without it, those that a config's selector selects: all of it counts."""
    spec = {"cidr": "10.0.0.0/16", "perNodeMaskSize": 24, **({"nodeSelector": selector} if selector else {})}
    pool = read_pool(CONFIGS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert "".join(each for each in "12-" if pool.selects("a", {} if each == "-" else {"n": each})) == matching


@pytest.mark.parametrize(("bits", "length"), [({}, 119), ({"perNodeHostBitsIPv6": 64}, 64)])
def test_sizes_of_both_families(bits: dict[str, int], length: int) -> None:
    """C2: both families have as many host bits, unless IPv6 has its own."""
    spec = {"perNodeHostBits": 9, "ipv4": "10.0.0.0/16", "ipv6": "fd00::/48", **bits}
    pool = read_pool(POOLS, {"metadata": {"name": "p", "uid": "u"}, "spec": spec})
    assert [each.length for each in pool.ranges] == [23, length]


def test_touched() -> None:
    """A8: blocks count once, whatever overlaps in them, and what is beside the range does not."""
    taken = [block(each) for each in ("10.0.0.0/26", "10.0.0.64/26", "10.0.2.0/23", "10.0.3.0/24", "10.1.0.0/24")]
    assert count_touched(block("10.0.0.0/20"), 24, taken) == 3
    assert count_touched(block("10.0.3.0/24"), 26, taken) == 4
    assert count_touched(block("fd00::/64"), 120, taken) == 0


def test_a_history_is_kept_whole(story: Story, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What is saved and read again is the same, down to the numbers."""
    directory = tmp_path_factory.mktemp("history")
    story.fault(1.0, "r0")
    story.snapshot()
    whole = dataclasses.replace(story.history(), gaps=("one",))
    whole.save(directory)
    assert History.load(directory) == whole


def test_many(story: Story) -> None:
    """Thousands of nodes, hundreds of them at a time, are checked in seconds."""
    story.pool("large", ipv4="10.32.0.0/11")
    for number in range(3000):
        at = f"10.{32 + number // 256}.{number % 256}.0/24"
        story.serve(f"n{number}", "large", at)
        if number >= 300:
            story.gone(NODES, f"n{number - 300}")
    assert check(story.history({("pool", "10.0.0.0/21"): (7, 8), ("large", "10.32.0.0/11"): (8192 - 300, 8192)})) == []
