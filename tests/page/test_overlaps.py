"""Ranges that lie within each other, and what of them is free: the page promises nothing that no node would get."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from cidrella.web import api
from tests.page.site import Site
from tests.page.viewer import chosen, search
from tests.page.worlds import PoolPlan, of_plans, served, service_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.page.viewer import Viewer

PLAN = PoolPlan("wide", [("10.96.0.0/12", 24)], 2, "node")
INNER = PoolPlan("inner", [("10.100.0.0/16", 24)], 0, "inner")


def state() -> api.State:
    """A pool with a smaller one and a range of Services in it; a node has half a block, and one a block in no range."""
    made = of_plans([PLAN, INNER])
    services = service_range("10.97.0.0/16", 256, Counter())
    nodes = [
        *made.nodes,
        served("half", ["10.98.7.0/25"], "wide"),
        served("stray", ["2001:db8::/64"], "", "untracked"),
    ]
    whole = api.Range(range="10.96.0.0/12", family="IPv4", pools=["wide", "inner"], services=["10.97.0.0/16"])
    return msgspec.structs.replace(made, ranges=[whole], nodes=nodes, service_ranges=[services])


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(state()) as serving:
        yield serving


@pytest.fixture
def page(viewer: Viewer, site: Site) -> Page:
    return viewer.look(site.url, reduced_motion="reduce")


@pytest.mark.parametrize(
    ("text", "title", "lines"),
    [
        ("10.97.7.7", "10.97.7.7", ["free, dynamic band of Services", "in 10.97.0.0/16, which no node is given"]),
        ("10.97.3.0/24", "10.97.3.0/24", ["free, dynamic band of Services", "in 10.97.0.0/16, which no node is given"]),
        ("10.98.7.0/24", "10.98.7.0/24", ["free in part", "pool wide", "half: 10.98.7.0/25"]),
        ("10.98.7.200", "10.98.7.200", ["free", "pool wide"]),
        ("10.100.1.0/24", "10.100.1.0/24", ["free", "pool inner"]),
        ("10.97.", "10.97.0.0/16", ["free, service range", "in 10.97.0.0/16, which no node is given"]),
    ],
)
def test_what_is_free(page: Page, text: str, title: str, lines: list[str]) -> None:
    """What no node is given, or not as a whole, is not said to be free for one; the innermost pool is named."""
    expect(search(page, text).first.locator(".title")).to_have_text(title)
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text(title)
    expect(page.locator("#details .lines li")).to_have_text(lines)


def test_a_block_in_no_range(page: Page) -> None:
    """It is shown in a range made up for it, of so many blocks that it can be seen there."""
    search(page, "stray")
    page.keyboard.press("Enter")
    expect(page.locator("#map-where")).to_have_text("2001:db8::/56 · in no pool")


@pytest.mark.parametrize(("text", "title"), [("10.98", "half"), ("10.98.", "half"), ("2001:db8", "stray")])
def test_the_beginning_of_an_address(page: Page, text: str, title: str) -> None:
    """Who has typed half an address sees already what is there."""
    expect(search(page, text).locator(".title", has_text=title)).to_be_visible()
