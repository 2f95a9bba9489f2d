"""5,000 nodes over 1,000 pools: all of it is drawn and found, and what changes costs no more than what changed.

How long that takes depends on the machine, and is measured by `make bench-page`. Here it is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from cidrella.web.board import News
from tests.page.site import Site
from tests.page.viewer import search, settle, wait_drawn
from tests.page.worlds import crowd, plan_of_crowd, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from tests.page.viewer import Viewer

NODES, POOLS = 5000, 1000
ELEMENTS = 3000
"""On the page, however many nodes there are."""
FILLS = 40
"""Rectangles that are drawn for a pool whose nodes changed, at most: it has some eight blocks, of two families."""
BUILT = 80
"""Elements that are built for a change: rows of the table, an entry of the activity."""
COUNTING = """() => {
    window.fills = 0;
    window.built = 0;
    const { fillRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillRect = function (...where) {
        if (this.canvas.id === "map-base") window.fills++;
        fillRect.apply(this, where);
    };
    const { createElement } = document;
    document.createElement = (...what) => { window.built++; return createElement.apply(document, what); };
}"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(crowd(NODES, POOLS)) as serving:
        yield serving


def look(viewer: Viewer, site: Site) -> Page:
    """The page, which counts what it draws and builds."""
    page = viewer.open("about:blank")
    page.add_init_script(f"({COUNTING})()")
    page.goto(site.url)
    wait_drawn(page)
    expect(page.locator("#link-word")).to_have_text("Live")
    return page


def test_everything(viewer: Viewer, site: Site) -> None:
    """Every block of a node and every Service's address is drawn, a node is found, and the page itself stays small."""
    state = crowd(NODES, POOLS)
    page = look(viewer, site)
    assert page.evaluate("window.fills") > sum(len(each.blocks) for each in state.nodes) + len(state.services)
    expect(search(page, "node-0777-2").first.locator(".title")).to_have_text("node-0777-2.rack-777.example.com")
    expect(page.locator("#figure-nodes .value")).to_have_text("5,000")
    expect(page.locator("#figure-pools .value")).to_have_text("1,000")
    assert page.locator("*").count() < ELEMENTS


@pytest.mark.parametrize("nodes", [1, 250])
def test_update(viewer: Viewer, site: Site, nodes: int) -> None:
    """Of a change, only the ranges in which it happened are drawn anew, and only what is in view is built."""
    page = look(viewer, site)
    settle(page)
    before, built = page.evaluate("[window.fills, window.built]")
    plans = [plan_of_crowd(number, NODES // POOLS) for number in range(nodes)]
    fresh = [served(f"fresh-{nodes}-{at}", plan.blocks(7), plan.name) for at, plan in enumerate(plans)]
    site.post(News(nodes=fresh, pools=[plan.pool(plan.nodes + 1) for plan in plans]))
    last = fresh[-1].name
    expect(search(page, last).first.locator(".title")).to_have_text(last)
    settle(page)
    assert 0 < page.evaluate("window.fills") - before <= FILLS * nodes
    assert page.evaluate("window.built") - built <= BUILT + 10 * 15  # all rows in view may be others


def test_a_change_of_everything(viewer: Viewer, site: Site) -> None:
    """Also when every node changes at once, the page goes on: what comes is shown."""
    page = viewer.look(site.url)
    site.post(News(nodes=[msgspec.structs.replace(each, terminating=True) for each in crowd(NODES, POOLS).nodes]))
    page.get_by_role("tab", name="Nodes").click()
    page.get_by_label("Filter nodes by name, block, pool or state").fill("node-0777")
    expect(page.locator("#nodes tbody tr")).to_have_count(5)
    expect(page.locator("#nodes tbody tr").last).to_contain_text("served, being deleted")
