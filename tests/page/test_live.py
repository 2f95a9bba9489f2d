"""The page lives: what happens is seen without reloading, whatever happens to the connection."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import pytest
from playwright.sync_api import expect

from cidrella.web import api
from cidrella.web.board import News
from tests.page.site import Site
from tests.page.viewer import chosen, search, wait_until
from tests.page.worlds import FULL, PoolPlan, facts, of_plans, ranges_of, served, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Route

    from tests.page.viewer import Viewer

FIRST = PoolPlan("first", [("10.0.0.0/22", 24)], 0, "node")
SECOND = PoolPlan("second", [("10.0.4.0/22", 24)], 0, "node")


def empty() -> api.State:
    """A cluster with a pool and no node."""
    return of_plans([FIRST])


@pytest.fixture
def site(serve: Callable[..., Site]) -> Site:
    return serve(empty())


def picture(page: Page) -> str:
    drawn: str = page.evaluate("document.getElementById('map-base').toDataURL()")
    return drawn


def wait_redrawn(page: Page, before: str) -> None:
    wait_until(page, "before => document.getElementById('map-base').toDataURL() !== before", before)


def fill(site: Site, count: int, plan: PoolPlan = FIRST) -> None:
    """So many nodes come, and each has a block."""
    nodes = [served(f"{plan.name}-{at}", plan.blocks(at), plan.name) for at in range(count)]
    given = [
        api.Allocation(time="2026-01-01T00:00:00Z", what="given", node=each.name, blocks=each.blocks, pools=each.pools)
        for each in nodes
    ]
    site.post(News(nodes=nodes, pools=[plan.pool(count)], allocations=given))


def test_nodes_appear(viewer: Viewer, site: Site) -> None:
    """A node that comes is counted, drawn, told of, and found."""
    page = viewer.look(site.url)
    expect(page.locator("#calm")).to_have_text("No node yet.")
    before = picture(page)
    fill(site, 2)
    expect(page.locator("#figure-nodes .value")).to_have_text("2")
    wait_redrawn(page, before)
    expect(page.locator("#entries")).to_contain_text("first-1 got 10.0.1.0/24 from first")
    expect(search(page, "10.0.1.77").first.locator(".title")).to_have_text("first-1")
    expect(page.locator("#pools tbody tr")).to_contain_text("50 %")


def test_a_pool_fills_and_another_helps(viewer: Viewer, site: Site) -> None:
    """A pool fills and turns red; nodes wait, with the reason; a second pool comes, and they move."""
    page = viewer.look(site.url)
    fill(site, 4)
    late = [waiting(f"late-{at}", FULL.format("first")) for at in range(2)]
    site.post(News(nodes=late))
    meter = page.locator("#pools tr", has_text="first").locator(".meter")
    expect(meter.locator(".value")).to_have_text("full")
    expect(meter.locator(".bar > span")).to_have_css("background-color", "rgb(179, 38, 30)")
    expect(page.locator("#figure-waiting .value")).to_have_text("2")
    expect(page.locator("#troubles")).to_contain_text("2 nodes waiting")
    expect(page.locator("#troubles")).to_contain_text("every pool that applies is full: first")
    expect(page).to_have_title("(2 waiting) planned · Cidrella")

    before = picture(page)
    pools = [FIRST.pool(4), SECOND.pool(0)]
    site.post(News(pools=pools, ranges=ranges_of(pools, [])))
    expect(page.locator("#pools tbody tr")).to_have_count(2)
    wait_redrawn(page, before)
    moved = [served(each.name, SECOND.blocks(at), "second") for at, each in enumerate(late)]
    site.post(News(nodes=moved, pools=[SECOND.pool(2)]))
    expect(page.locator("#figure-waiting .value")).to_have_text("0")
    expect(page.locator("#calm")).to_have_text("Nothing waits, nothing is wrong.")
    expect(search(page, "10.0.5.1").first.locator(".title")).to_have_text("late-1")


def test_what_goes_is_gone(viewer: Viewer, site: Site) -> None:
    """A node that goes leaves free space, also where it is looked at; its pool has room again."""
    page = viewer.look(site.url)
    fill(site, 4)
    search(page, "first-3")
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_contain_text("10.0.3.0/24")
    site.post(News(nodes_gone=["first-3"], pools=[FIRST.pool(3)]))
    expect(page.locator("#details")).to_contain_text("It is gone.")
    expect(page.locator("#figure-nodes .value")).to_have_text("3")
    expect(search(page, "10.0.3.1").first.locator(".note")).to_have_text("nobody has it")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("10.0.3.1")
    expect(page.locator("#details")).to_contain_text("pool first")


def test_a_block_in_no_pool(viewer: Viewer, site: Site) -> None:
    """A block that lies in no range is shown all the same, in a range made up for it."""
    page = viewer.look(site.url)
    site.post(News(nodes=[served("stray", ["192.168.7.0/24"], "", "untracked")]))
    expect(page.locator("#troubles")).to_contain_text("1 node in no pool")
    search(page, "192.168.7.9")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("stray")
    expect(page.locator("#map-where")).to_have_text("192.168.0.0/16 · in no pool")


def test_an_event_told_again(viewer: Viewer, site: Site) -> None:
    """The same event with a higher count stands once, with its count."""
    page = viewer.look(site.url)
    event = api.Event(
        id="1", time="2026-01-01T00:00:00Z", type="Warning", reason="Full", kind="Node", name="n", note="no", count=1
    )
    site.post(News(events=[event]))
    expect(page.locator(".entry")).to_have_count(1)
    site.post(News(events=[msgspec.structs.replace(event, count=7)]))
    expect(page.locator(".entry")).to_contain_text("(7 times)")
    expect(page.locator(".entry")).to_have_count(1)


def test_not_ready_and_not_leading(viewer: Viewer, site: Site) -> None:
    """What keeps the replica from being ready is said at the top, and whether it leads."""
    page = viewer.look(site.url)
    expect(page.locator("#role")).to_have_text("this replica leads")
    unready = msgspec.structs.replace(facts("planned"), leading=False, missing=["nodes are not listed yet"])
    site.post(News(cluster=unready))
    expect(page.locator("#not-ready")).to_have_text("Not ready: nodes are not listed yet")
    expect(page.locator("#role")).to_have_text("this replica looks on")


def test_remarks(viewer: Viewer, site: Site) -> None:
    """What cannot be shown is said at the top, whichever table is open, a line for each reason."""
    page = viewer.look(site.url)
    expect(page.locator("#remarks")).to_be_hidden()
    remarks = ["Services are not shown: 403", "Events may have changed since they were seen: 500"]
    site.post(News(cluster=msgspec.structs.replace(facts("planned"), remarks=remarks)))
    expect(page.locator("#remarks p")).to_have_text(remarks)
    site.post(News(cluster=facts("planned")))
    expect(page.locator("#remarks")).to_be_hidden()


def test_comes_back(viewer: Viewer) -> None:
    """A server that goes is said to be gone; when there is one again, the page is as that says."""
    with Site(empty()) as first:
        port = int(first.url.rpartition(":")[2])
        page = viewer.look(first.url)
        fill(first, 3)
        expect(page.locator("#figure-nodes .value")).to_have_text("3")
    expect(page.locator("#link-word")).to_have_text("Connection lost, trying again")
    expect(page.locator("#stale")).to_contain_text("What is shown is as of 20")
    expect(page.locator("#figure-nodes .value")).to_have_text("3")
    with Site(empty(), port=port) as second:
        expect(page.locator("#link-word")).to_have_text("Live")
        expect(page.locator("#stale")).to_be_hidden()
        expect(page.locator("#figure-nodes .value")).to_have_text("0")
        fill(second, 1)
        expect(page.locator("#figure-nodes .value")).to_have_text("1")
    page.close()
    viewer.errors.clear()  # the browser's own, about the server that was not there


def test_a_server_that_is_not_ready(site: Site, viewer: Viewer) -> None:
    """Where the state, or the stream, is refused at first, it is asked for again until it is there."""
    refused: Counter[str] = Counter()

    def refuse_twice(route: Route) -> None:
        path = urlsplit(route.request.url).path
        refused[path] += 1
        if refused[path] <= 2:
            route.fulfill(status=503, body="not yet")
        else:
            route.continue_()

    page = viewer.open("about:blank")
    page.route("**/api/v1/*", refuse_twice)
    page.goto(site.url)
    expect(page.locator("#link-word")).to_have_text("Live")
    fill(site, 2)
    expect(page.locator("#figure-nodes .value")).to_have_text("2")
    assert min(refused["/api/v1/state"], refused["/api/v1/stream"]) > 2
    viewer.errors.clear()  # the browser's own, about the answers 503


def test_forgotten(viewer: Viewer, site: Site) -> None:
    """One whom the changes have passed is told to begin anew, and does."""
    page = viewer.look(site.url)
    site.forget()
    fill(site, 3)
    expect(page.locator("#figure-nodes .value")).to_have_text("3")
    expect(page.locator("#link-word")).to_have_text("Live")


@pytest.mark.parametrize(("motion", "rings"), [("no-preference", 1), ("reduce", 0)])
def test_a_ring_around_what_is_new(viewer: Viewer, site: Site, motion: str, rings: int) -> None:
    """What has just come is ringed for a moment, unless motion is not welcome."""
    page = viewer.look(site.url, reduced_motion=motion)
    page.evaluate(
        """() => { window.rings = 0; new MutationObserver(changes => {
            for (const change of changes) window.rings += change.addedNodes.length;
        }).observe(document.getElementById("rings"), { childList: true }); }"""
    )
    fill(site, 1)
    expect(page.locator("#figure-nodes .value")).to_have_text("1")
    assert page.evaluate("window.rings") == rings
    expect(page.locator("#rings span")).to_have_count(0)
