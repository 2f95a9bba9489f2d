"""Who uses a pool, and how many of its blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.prefix import Family, Prefix
from cidrella.core.usage import Usage
from tests.core.build import prefix

LENGTH = 28
"""Of the pool's blocks, in a range of 256 addresses."""


def touched(blocks: list[Prefix]) -> int:
    """Count the pool's blocks that any of these has an address of, address by address."""
    return len({address >> (32 - LENGTH) for block in blocks for address in range(block.network, block.last + 1)})


blocks = st.integers(24, 32).flatmap(
    lambda length: st.builds(Prefix.masked, st.just(Family.IPV4), st.integers(0, 255), st.just(length))
)


@given(st.lists(st.tuples(blocks, st.sampled_from(["a", "b", "c"])), max_size=12), st.integers(0, 12))
def test_counts_are_those_of_the_addresses(counted: list[tuple[Prefix, str]], kept: int) -> None:
    """A8, P3: allocated is how many of the pool's blocks the users' blocks touch, as these come and go."""
    usage = Usage({Family.IPV4: LENGTH})
    for at, (block, name) in enumerate(counted):
        usage.add(block, name)
        assert usage.allocated(Family.IPV4) == touched([each for each, _ in counted[: at + 1]])
    while len(counted) > kept:
        usage.remove(*counted.pop(0))
        assert usage.allocated(Family.IPV4) == touched([each for each, _ in counted])
        assert dict(usage.nodes) == {
            name: sum(other == name for _, other in counted) for name in {name for _, name in counted}
        }


def test_nothing_is_left_of_what_has_gone() -> None:
    """A9: when the last block has gone, so has everything that was kept about it."""
    usage = Usage({Family.IPV4: LENGTH})
    for text in ("10.0.0.0/28", "10.0.0.0/30"):
        usage.add(prefix(text), "a")
        usage.remove(prefix(text), "a")
    assert usage.nodes == {}
    assert usage._blocks == {Family.IPV4: {}}
    assert usage._odd == {Family.IPV4: 0}


def test_blocks_of_other_sizes_are_counted_until_the_last_has_gone() -> None:
    """A8: as long as one block of another size is left, blocks are counted by what they touch, and then by number."""
    usage = Usage({Family.IPV4: 24})
    usage.add(prefix("10.0.0.0/24"), "a")
    usage.add(prefix("10.0.4.0/23"), "b")
    usage.add(prefix("10.0.8.0/23"), "c")
    usage.remove(prefix("10.0.4.0/23"), "b")
    assert usage.allocated(Family.IPV4) == 3
    usage.remove(prefix("10.0.0.0/24"), "a")
    assert usage.allocated(Family.IPV4) == 2
    assert usage._odd == {Family.IPV4: 1}
    usage.remove(prefix("10.0.8.0/23"), "c")
    assert usage._odd == {Family.IPV4: 0}


def test_a_block_that_two_nodes_have_counts_once() -> None:
    """A8, N6, pitfall 17: two nodes with one block are two users of one block, until both have gone."""
    usage = Usage({Family.IPV4: LENGTH})
    usage.add(prefix("10.0.0.0/28"), "a")
    usage.add(prefix("10.0.0.0/28"), "b")
    assert (usage.allocated(Family.IPV4), set(usage.nodes)) == (1, {"a", "b"})
    usage.remove(prefix("10.0.0.0/28"), "a")
    assert (usage.allocated(Family.IPV4), set(usage.nodes)) == (1, {"b"})
    usage.remove(prefix("10.0.0.0/28"), "b")
    assert (usage.allocated(Family.IPV4), set(usage.nodes)) == (0, set())


def test_families_are_counted_apart() -> None:
    """A8, S7: each family has its own size and its own count; a node with one block of each is one user."""
    usage = Usage({Family.IPV4: 24, Family.IPV6: 64})
    usage.add(prefix("10.0.0.0/24"), "a")
    usage.add(prefix("fd00::/64"), "a")
    usage.add(prefix("fd00:0:0:4::/62"), "b")
    assert [usage.allocated(family) for family in Family] == [1, 5]
    assert usage.nodes == {"a": 2, "b": 1}


def test_adjoining_and_nested_blocks() -> None:
    """A8: blocks of other sizes that share a block of the pool, nest, or reach over several are counted right."""
    usage = Usage({Family.IPV4: 24})
    for text, total in [
        ("10.0.0.0/26", 1),
        ("10.0.0.64/26", 1),
        ("10.0.1.0/24", 2),
        ("10.0.4.0/22", 6),
        ("10.0.5.0/24", 6),
        ("10.0.7.128/25", 6),
        ("10.0.8.0/32", 7),
        ("10.0.0.0/16", 256),
    ]:
        usage.add(prefix(text), text)
        assert usage.allocated(Family.IPV4) == total
