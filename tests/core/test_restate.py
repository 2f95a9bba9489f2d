"""Whether pools can be said otherwise without any node noticing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cidrella.core.pool import PoolSpec
from cidrella.core.restate import Change, held_back
from tests.core.build import part, spec

if TYPE_CHECKING:
    from collections.abc import Iterable


def swapped(*pools: PoolSpec) -> Change:
    """Return the change to the other way of saying the same: all blocks from one pool, or each from its own."""
    first = pools[0]
    if first.composed:
        ranges = tuple(each for pool in pools for each in pool.ranges)
        return Change(pools, (replace(first, ranges=ranges, composed=False, name=f"{first.name}'"),))
    made = tuple(replace(first, ranges=(each,), composed=True, name=f"{first.name}'") for each in first.ranges)
    return Change(pools, made)


def reasons(*changes: Change, beside: Iterable[PoolSpec] = ()) -> dict[str, str]:
    """Return what is held back, by name, after making sure that no order matters to what that is."""
    found = held_back(beside, changes)
    backwards = held_back(list(beside)[::-1], changes[::-1])
    assert {changes[number].before for number in found} == {changes[::-1][number].before for number in backwards}
    return {changes[number].before[0].name: reason for number, reason in found.items()}


def test_alone() -> None:
    """K3: what is the only pool can be said either way, with one family or with two."""
    assert reasons(swapped(spec("p", "10.0.0.0/16 /24"))) == {}
    assert reasons(swapped(spec("p", "10.0.0.0/16 /24", "fd00::/112 /120", where="a"))) == {}
    assert reasons(swapped(part("p", "10.0.0.0/16 /24"), part("q", "fd00::/112 /120"))) == {}


def test_order_of_two_that_change() -> None:
    """S3, K4: capacity counts among the ones, the size of a block among the others."""
    small, large = spec("small", "10.0.0.0/24 /26"), spec("large", "10.1.0.0/16 /28")
    assert reasons(swapped(small), swapped(large)) == {
        "small": "it comes before large by S3, and would come after large, by K4",
        "large": "it comes after small by S3, and would come before small, by K4",
    }
    assert reasons(swapped(replace(small, ranges=large.ranges)), swapped(large)) == {}
    back = [swapped(part("small", "10.0.0.0/24 /26")), swapped(part("large", "10.1.0.0/16 /28"))]
    assert reasons(*back)["small"] == "it comes after large by K4, and would come before large, by S3"


def test_requirements_met() -> None:
    """S3, K4: it is the requirements that a node meets which count, in every way in which it can meet them."""
    one, two = spec("one", "10.0.0.0/24 /24", where="a and b"), spec("two", "10.1.0.0/24 /28", where="a")
    assert reasons(swapped(one), swapped(two))["one"].startswith("it comes before two by S3")
    assert reasons(swapped(one), swapped(replace(two, ranges=one.ranges))) == {}


def test_beside_one_that_stays() -> None:
    """K3: one that stays has its turn when it had it. One that was after it may come later still, and none before."""
    stays = spec("stays", "10.0.0.0/24 /25", where="a or b and c")
    before, after = spec("before", "10.0.0.0/24 /24", where="a"), spec("after", "10.0.0.0/24 /28", where="a")
    reason = "it comes before stays by S3, and would come after stays, which stays as it is, by K3"
    assert reasons(swapped(before), swapped(after), beside=[stays]) == {"before": reason}
    default = spec("default", "10.0.0.0/24 /24")
    assert reasons(swapped(default), beside=[stays]) == {}


def test_one_held_back_holds_others_back() -> None:
    """K3, S3: those that came before one that has to stay have to stay, and so on until nothing more follows."""
    stays = spec("stays", "10.0.0.0/20 /28", where="a=x")
    row = [
        spec("p1", "10.1.0.0/21 /28", where="a=x|1"),
        spec("p2", "10.2.0.0/22 /28", where="a=1|2"),
        spec("p3", "10.3.0.0/23 /28", where="a=2|3"),
        spec("p4", "10.4.0.0/22 /28", where="a=3"),
    ]
    found = reasons(*map(swapped, row), beside=[stays])
    assert found == {
        f"p{number}": f"it comes before {other} by S3, and would come after {other}, which stays as it is, by K3"
        for number, other in ((1, "stays"), (2, "p1"), (3, "p2"))
    }


def test_two_that_do_not_go_together() -> None:
    """S3, K4: they are held back both, unless one of them has to stay in any case."""
    one, two = spec("one", "10.0.0.0/24 /26", where="a and b"), spec("two", "10.1.0.0/24 /28", where="a")
    assert reasons(swapped(one), swapped(two)).keys() == {"one", "two"}
    stays = spec("stays", "10.2.0.0/24 /26", where="b")
    assert reasons(swapped(one), swapped(two), beside=[stays]).keys() == {"one"}


def test_blocks_that_would_be_joined() -> None:
    """K3: pools of two families, of which a node got one, would give it both."""
    four, six = spec("four", "10.0.0.0/16 /24", where="a"), spec("six", "fd00::/112 /120")
    assert reasons(swapped(four), swapped(six)) == {
        "four": "nodes that both are for would get its blocks joined with those of six (K3), and now do not",
        "six": "nodes that both are for would get its blocks joined with those of four (K3), and now do not",
    }
    (reason,) = reasons(swapped(four), beside=[part("other", "fd00::/112 /120")]).values()
    assert reason.endswith("would get its blocks joined with those of other, which stays as it is (K3), and now do not")


def test_two_of_two_families() -> None:
    """K3: pools that give both families are full as a whole; joined, each family falls through by itself."""
    one, two = (spec(name, f"10.{name}.0.0/16 /24", f"fd0{name}::/112 /120") for name in "12")
    assert reasons(swapped(one), swapped(two)).keys() == {"1", "2"}
    apart = replace(one, selector=spec("", "10.0.0.0/16 /24", where="a").selector)
    assert reasons(swapped(apart), beside=[two]) == {}


def test_blocks_that_are_joined() -> None:
    """K3: what is joined with another that is not for the same nodes can be said in one way only."""
    four, six = part("four", "10.0.0.0/16 /24", "a"), part("six", "fd00::/112 /120")
    found = reasons(swapped(four), swapped(six))
    assert found["four"] == "nodes that both are for get its blocks joined with those of six (K3), and then would not"
    third = part("third", "10.1.0.0/16 /24", "a")
    pair = swapped(four, replace(six, selector=four.selector))
    assert reasons(pair, swapped(third)) == {
        "four": "nodes that both are for get its blocks joined with those of third (K3), and then would not",
        "third": "nodes that both are for get its blocks joined with those of four and six (K3), and then would not",
    }
    assert reasons(pair, beside=[spec("default", "10.1.0.0/16 /24")]) == {}


def test_no_node_for_both() -> None:
    """S1: pools that no node can be for both of do not bear on each other."""
    one = spec("one", "10.0.0.0/24 /26", "fd00::/112 /120", where="a=x")
    for where in ("a=y", "a!=x", "!a"):
        assert reasons(swapped(one), swapped(replace(one, name="two", selector=spec("", where=where).selector))) == {}


def test_what_gives_nothing_is_in_nobodys_way() -> None:
    """S6: a pool that is going, or is invalid, has no turn."""
    pool = spec("p", "10.0.0.0/24 /24")
    gone = [part("going", "fd00::/112 /120"), PoolSpec("broken", (), problem="no range", composed=True)]
    assert reasons(swapped(pool), beside=[replace(gone[0], terminating=True), gone[1]]) == {}
    assert reasons(swapped(pool), beside=gone).keys() == {"p"}


def test_progress() -> None:
    """How far it is, is told in changes: comparing them is what takes long."""
    told: list[tuple[int, int]] = []
    changes = [swapped(spec(name, "10.0.0.0/24 /24", where=f"a={name}")) for name in ("p", "q", "r")]
    assert held_back([spec("s", "10.0.0.0/24 /24")], changes, lambda *how_far: told.append(how_far)) == {}
    assert told == [(0, 3), (1, 3), (2, 3)]
