"""The parts of `make bench-page` that compute something: a wrong figure would look like any other."""

from __future__ import annotations

import ipaddress
import os
from typing import Any, cast

import pytest
from bench.page import Viewer, contradictions, gaps, pools, read_options, resident


def test_options() -> None:
    """5,000 nodes over 1,000 pools, 100 who look for ten minutes, unless told otherwise."""
    options = read_options([])
    assert (options.nodes, options.pools, options.viewers, options.minutes) == (5_000, 1_000, 100, 10.0)
    assert read_options(["--minutes", "0.5"]).minutes == 0.5


def test_pools_are_apart() -> None:
    """A thousand, none of which overlaps another, with room for all nodes."""
    ranges = [ipaddress.ip_network(cast("Any", each)["spec"]["ipv4"]) for each in pools(1000)]
    assert sum(1 for one, two in zip(sorted(ranges), sorted(ranges)[1:], strict=False) if one.overlaps(two)) == 0
    assert sum(each.num_addresses // 256 for each in ranges) == 8000


def test_gaps() -> None:
    """Whoever missed a change is found out."""
    assert gaps([]) == gaps([5]) == gaps([5, 6, 7]) == 0
    assert gaps([5, 7, 8, 11]) == 3


def tell(viewer: Viewer, text: bytes) -> None:
    for line in text.splitlines(keepends=True):
        viewer._take(line)


def test_contradictions() -> None:
    """Whoever was told something else of the same version is found out; who came later or left earlier is not."""
    viewers = [Viewer() for _ in range(3)]
    for viewer, versions in zip(viewers, ((1, 2, 3), (2, 3), (1, 2)), strict=True):
        tell(viewer, b"event: alive\ndata: {}\n")
        for version in versions:
            tell(viewer, b"event: change\nid: %d\ndata: %d\n" % (version, version))
    tell(viewers[0], b"event: alive\ndata: {}\n")
    assert contradictions(viewers) == 0
    assert (viewers[0].versions, viewers[0].bytes) == ([1, 2, 3], 2 * 22 + 3 * 28)
    tell(viewers[2], b"event: change\nid: 3\ndata: else\n")
    assert contradictions(viewers) == 1
    with pytest.raises(RuntimeError):
        tell(viewers[0], b"event: reload\n")


def test_memory() -> None:
    """Megabytes of this very process, more or less."""
    assert 10 < resident(os.getpid()) < 10_000
