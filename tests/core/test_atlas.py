"""Which pools contain a block, and which of them it counts towards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.atlas import Atlas
from cidrella.core.prefix import Family, Prefix
from tests.core.build import pool, prefix, spec
from tests.core.counting import CountingDict, Meter

if TYPE_CHECKING:
    from cidrella.core.pool import Pool, PoolSpec


def atlas_of(*specs: PoolSpec) -> Atlas:
    atlas = Atlas()
    for each in specs:
        atlas.add(pool(each))
    return atlas


def counts_towards(atlas: Atlas, block: str, annotation: str = "") -> str | None:
    found = atlas.counts_towards(prefix(block), annotation)
    return found.name if found else None


def test_the_annotation_decides_where_it_can() -> None:
    """P3: the annotated pool counts where it exists and contains the block, though another has the size and the age."""
    atlas = atlas_of(
        spec("fits", "10.0.0.0/16 /24", created="2020"),
        spec("annotated", "10.0.0.0/8 /26", created="2025"),
        spec("elsewhere", "10.1.0.0/16 /24", created="2010"),
    )
    assert counts_towards(atlas, "10.0.0.0/24", "annotated") == "annotated"
    assert counts_towards(atlas, "10.0.0.0/24", "elsewhere") == "fits"
    assert counts_towards(atlas, "10.0.0.0/24", "never heard of") == "fits"
    assert counts_towards(atlas, "10.0.0.0/24") == "fits"


def test_the_annotation_may_name_several() -> None:
    """P3, K3: of the pools that an annotation names, the first that contains the block counts; then as without."""
    atlas = atlas_of(
        spec("old", "10.0.0.0/8 /24", created="2020"),
        spec("four", "10.0.0.0/16 /24", created="2024"),
        spec("wider", "10.0.0.0/8 /24", created="2025"),
        spec("six", "fd00::/48 /64", created="2026"),
    )
    assert counts_towards(atlas, "10.0.0.0/24", "four,six") == "four"
    assert counts_towards(atlas, "fd00::/64", "four,six") == "six"
    assert counts_towards(atlas, "10.0.0.0/24", "six,wider,four") == "wider"
    assert counts_towards(atlas, "10.1.0.0/24", "four,gone,wider") == "wider"
    assert counts_towards(atlas, "10.1.0.0/24", "four,six") == "old"


def test_then_the_size_then_the_age_then_the_name() -> None:
    """P3: without an annotation, pools with this block size come first, then the oldest, then by name."""
    size = spec("z-size", "10.0.0.0/8 /24", created="2025")
    old = spec("y-old", "10.0.0.0/16 /26", created="2020")
    assert counts_towards(atlas_of(old, size), "10.0.0.0/24") == "z-size"
    assert counts_towards(atlas_of(old, size), "10.0.0.0/25") == "y-old"
    older = spec("z-older", "10.0.0.0/16 /24", created="2019-12-31T23:59:59Z")
    younger = spec("a-younger", "10.0.0.0/16 /24", created="2020-01-01T00:00:00Z")
    assert counts_towards(atlas_of(younger, older), "10.0.0.0/24") == "z-older"
    twins = [spec(name, "10.0.0.0/16 /24", created="2020") for name in ("b", "a", "c")]
    assert counts_towards(atlas_of(*twins), "10.0.0.0/24") == "a"


def test_the_size_is_that_of_the_blocks_family() -> None:
    """P3, S7: a dual-stack pool's IPv6 blocks are compared with its IPv6 size."""
    atlas = atlas_of(
        spec("dual", "fd00::/48 /64", "10.0.0.0/16 /24", created="2025"), spec("six", "fd00::/32 /72", created="2020")
    )
    assert counts_towards(atlas, "fd00::/64") == "dual"
    assert counts_towards(atlas, "fd00::/72") == "six"
    assert counts_towards(atlas, "10.0.0.0/24") == "dual"


@pytest.mark.parametrize("block", ["10.0.0.0/15", "10.1.0.0/24", "9.255.255.0/24", "a00::/24", "0.0.0.0/0"])
def test_what_is_not_wholly_inside_is_in_no_pool(block: str) -> None:
    """N5, pitfall 7: a block around a range, beside it, or of the other family, is in no pool."""
    assert counts_towards(atlas_of(spec("p", "10.0.0.0/16 /24")), block, "p") is None


def test_the_range_itself_is_inside() -> None:
    """N5: a block as large as the range is wholly inside it."""
    assert counts_towards(atlas_of(spec("p", "10.0.0.0/16 /24")), "10.0.0.0/16") == "p"


RANGES = ["10.0.0.0/8 /24", "10.0.0.0/16 /24", "10.0.0.0/16 /20", "10.1.0.0/16 /24", "0.0.0.0/0 /8", "fd00::/16 /64"]
blocks = st.builds(
    Prefix.masked,
    st.just(Family.IPV4),
    st.sampled_from([10 << 24, (10 << 24) + (1 << 16), 11 << 24]),
    st.integers(0, 32),
) | st.just(prefix("fd00::/64"))


def naive(pools: list[Pool], block: Prefix, annotation: str) -> str | None:
    """P3 as it is written, looking at every pool."""
    around = [
        (length != block.length, each.spec.created, each.name)
        for each in pools
        for cidr, length in each.spec.ranges
        if cidr.family is block.family and cidr.network <= block.network <= block.last <= cidr.last
    ]
    if annotation in [name for _, _, name in around]:
        return annotation
    return min(around)[2] if around else None


@given(
    st.lists(st.tuples(st.sampled_from(RANGES), st.sampled_from("012"), st.booleans()), max_size=10),
    st.lists(st.tuples(blocks, st.sampled_from(["", "p0", "p1"])), min_size=1, max_size=5),
)
def test_the_pool_that_counts_is_found_without_looking_at_each(
    pools: list[tuple[str, str, bool]], asked: list[tuple[Prefix, str]]
) -> None:
    """P3: at any time the pool that counts is the one that comparing the block with every pool gives."""
    atlas = Atlas()
    present: list[Pool] = []
    for number, (cidr, created, stays) in enumerate(pools):
        made = pool(spec(f"p{number}", cidr, created=created))
        atlas.add(made)
        if stays:
            present.append(made)
        else:
            atlas.remove(made)
        for block, annotation in asked:
            found = atlas.counts_towards(block, annotation)
            assert (found.name if found else None) == naive(present, block, annotation)
    for each in present:
        atlas.remove(each)
    for attribute in Atlas.__slots__:
        assert getattr(atlas, attribute) == {}, attribute


@pytest.mark.parametrize("annotation", ["", "elsewhere", "p7"])
def test_a_block_costs_one_look_for_each_length_of_ranges(annotation: str) -> None:
    """A9: among a thousand pools, on 250 ranges of one length and one of another, it takes a look for each length."""
    atlas = atlas_of(*(spec(f"p{number}", f"10.{number % 250}.0.0/16 /24") for number in range(1000)))
    atlas.add(pool(spec("all", "10.0.0.0/8 /24")))
    meter = Meter()
    for key, places in atlas._by_length.items():
        atlas._by_length[key] = CountingDict(
            {place: CountingDict(rows, meter) for place, rows in places.items()}, meter
        )
    assert counts_towards(atlas, "10.7.0.0/24", annotation) == (
        "all" if annotation == "" else "p7" if annotation == "p7" else "all"
    )
    assert meter.during() <= 2 * 3
