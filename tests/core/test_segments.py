"""A range as the sequence of what it is made of."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.decision import ServiceRange
from cidrella.core.prefix import Family, Prefix
from cidrella.core.segments import Segment, segments
from cidrella.core.space import AddressSpace
from tests.core.build import prefix

BASE = 10 << 24
held_prefixes = st.integers(23, 32).flatmap(
    lambda length: st.builds(Prefix.masked, st.just(Family.IPV4), st.integers(BASE, BASE + 511), st.just(length))
)


@given(
    st.lists(st.tuples(held_prefixes, st.sampled_from("abc")), max_size=8, unique=True),
    st.sampled_from(["10.0.0.0/24", "10.0.0.64/26", "10.0.0.7/32"]),
)
def test_every_address_has_its_holders(held: list[tuple[Prefix, str]], within: str) -> None:
    """A8, N6: the segments adjoin from the first address to the last, and name each address's holders in order."""
    space = AddressSpace(Family.IPV4)
    for block, holder in held:
        space.occupy(block, holder)
    whole = prefix(within)
    expected = [
        tuple(
            holder
            for block, holder in sorted(held, key=lambda each: (each[0].length, each[1]))
            if block.network <= address <= block.last
        )
        for address in range(whole.network, whole.last + 1)
    ]
    found = list(segments(space.holdings(whole), whole))
    assert [each.holders for each in found for _ in range(each.first, each.last + 1)] == expected
    assert found[0].first == whole.network
    assert found[-1].last == whole.last
    assert all(one.last + 1 == two.first for one, two in pairwise(found))


def test_what_is_empty_is_one_gap() -> None:
    """A8: a range in which nothing is held is a single segment that nobody has."""
    space = AddressSpace(Family.IPV6)
    whole = prefix("fd00::/16")
    assert list(segments(space.holdings(whole), whole)) == [Segment(whole.network, whole.last, ())]


def test_holders_of_one_prefix_stand_in_the_order_of_their_names() -> None:
    """N6, A7: who holds the same prefix is named in one order, however they came, nodes and service ranges alike."""
    space = AddressSpace(Family.IPV4)
    whole = prefix("10.0.0.0/24")
    for holder in ("b", ServiceRange("a"), "z", "a"):
        space.occupy(whole, holder)
    assert list(segments(space.holdings(whole), whole)) == [
        Segment(whole.network, whole.last, ("a", "b", ServiceRange("a"), "z"))
    ]


def test_what_reaches_beyond_is_cut() -> None:
    """A8: a prefix around the range is shown as far as the range goes."""
    space = AddressSpace(Family.IPV4)
    space.occupy(prefix("10.0.0.0/8"), "a")
    space.occupy(prefix("10.0.0.0/25"), "b")
    whole = prefix("10.0.0.0/24")
    assert list(segments(space.holdings(whole), whole)) == [
        Segment(whole.network, whole.network + 127, ("a", "b")),
        Segment(whole.network + 128, whole.last, ("a",)),
    ]
