"""While everything changes, who uses the page keeps their place, and is not talked to all the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from playwright.sync_api import expect

from cidrella.web import api
from cidrella.web.board import News
from tests.page.viewer import chosen, search, wait_drawn, wait_until
from tests.page.worlds import PoolPlan, of_plans, served, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    from tests.page.site import Site
    from tests.page.viewer import Viewer

NODES = 40
PLAN = PoolPlan("first", [("10.0.0.0/18", 24)], NODES, "node")
SECOND = PoolPlan("second", [("10.1.0.0/22", 24)], 1, "other")
QUICK = """
    const { setTimeout } = window;
    window.setTimeout = (job, pause) => setTimeout(job, pause / 50);
"""
LISTEN = """() => {
    window.heard = [];
    const live = "[aria-live], [role=status], [role=alert]";
    const note = changes => {
        for (const { target } of changes) {
            const region = (target.nodeType === Node.TEXT_NODE ? target.parentElement : target).closest(live);
            if (region) window.heard.push(region.textContent);
        }
    };
    new MutationObserver(note).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""


@pytest.fixture
def site(serve: Callable[..., Site]) -> Site:
    state = of_plans([PLAN, SECOND])
    late = [waiting("late-1", "no pool applies to it"), waiting("late-2", "every pool that applies is full: second")]
    return serve(msgspec.structs.replace(state, nodes=[*state.nodes, *late]))


@pytest.fixture
def page(viewer: Viewer, site: Site) -> Page:
    return viewer.look(site.url, reduced_motion="reduce")


def wait_nodes(page: Page, count: int) -> None:
    expect(page.locator("#figure-nodes .value")).to_have_text(str(count))


class TestFocus:
    """The keyboard's focus is never lost."""

    def test_a_row_that_goes(self, page: Page, site: Site) -> None:
        """Who stands on a row that goes stands on the one that comes to its place then."""
        page.get_by_role("tab", name="Nodes").click()
        page.locator("#nodes").get_by_role("button", name="node-0", exact=True).focus()
        site.post(News(nodes_gone=["node-0"]))
        wait_nodes(page, NODES + 2)
        expect(page.locator("#nodes").get_by_role("button", name="node-1", exact=True)).to_be_focused()

    def test_all_rows_go(self, page: Page, site: Site) -> None:
        """Where nothing comes to its place, the focus is at the table's, and Tab goes on from there."""
        page.get_by_role("tab", name="Nodes").click()
        page.locator("#nodes").get_by_role("button", name="node-0", exact=True).focus()
        names = [f"node-{at}" for at in range(NODES)]
        site.post(News(nodes_gone=[*names, "other-0", "late-1", "late-2"]))
        wait_nodes(page, 0)
        expect(page.locator("#nodes")).to_be_focused()

    def test_a_trouble_that_is_over(self, page: Page, site: Site) -> None:
        """Who stands on a node that waits stands on the next one when it does no more, or on what told of it."""
        page.locator("#troubles").get_by_role("button", name="late-1").focus()
        site.post(News(nodes=[served("late-1", ["10.1.1.0/24"], "second")]))
        expect(page.locator(".trouble")).to_have_count(1)
        expect(page.locator("#troubles").get_by_role("button", name="late-2")).to_be_focused()
        site.post(News(nodes=[served("late-2", ["10.1.2.0/24"], "second")]))
        expect(page.locator(".trouble")).to_have_count(0)
        expect(page.locator("#attention")).to_be_focused()

    def test_the_last_page(self, page: Page) -> None:
        """Who turns pages by keyboard is still on the button when there are no more."""
        page.get_by_role("tab", name="Nodes").click()
        button = page.locator("#nodes").get_by_role("button", name="Next page")
        button.focus()
        for shown in ("16\u201330 of 43", "31\u201343 of 43", "31\u201343 of 43"):
            page.keyboard.press("Enter")
            expect(page.locator("#nodes .range")).to_have_text(shown)
        expect(button).to_be_focused()
        expect(button).to_have_attribute("aria-disabled", "true")

    def test_details_of_what_goes(self, page: Page, site: Site) -> None:
        """Who stands in the details of a node that goes is not thrown out of them."""
        search(page, "node-3")
        page.keyboard.press("Enter")
        page.locator("#details").get_by_role("button", name="first").focus()
        site.post(News(nodes_gone=["node-3"]))
        expect(page.locator("#details")).to_contain_text("It is gone.")
        expect(chosen(page)).to_be_focused()


class TestVoice:
    """A screen reader is told what matters, and not all the time."""

    @pytest.mark.parametrize("tab", ["Pools", "Nodes", "Services"])
    def test_silent(self, page: Page, site: Site, tab: str) -> None:
        """Nodes that come and are served, and pools that fill, are nothing to be told of, whichever table is open."""
        page.get_by_role("tab", name=tab).click()
        page.evaluate(LISTEN)
        for count in range(NODES, NODES + 5):
            news = News(nodes=[served(f"node-{count}", PLAN.blocks(count), "first")], pools=[PLAN.pool(count + 1)])
            site.post(news)
            wait_nodes(page, count + 4)
        assert page.evaluate("window.heard") == []

    def test_turning_pages(self, page: Page) -> None:
        """What was asked for is told: which rows are shown now, or that there are none."""
        page.get_by_role("tab", name="Nodes").click()
        page.evaluate(LISTEN)
        page.locator("#nodes").get_by_role("button", name="Next page").click()
        wait_until(page, "window.heard.includes('16\u201330 of 43')")
        page.get_by_label("Filter nodes by name, block, pool or state").fill("nobody")
        wait_until(page, "window.heard.includes('Nothing matches the filter.')")

    def test_the_last_word(self, viewer: Viewer, site: Site) -> None:
        """Of changes that follow each other closely the last is told, too, though nothing happens after it."""
        page = viewer.open("about:blank")
        page.add_init_script(QUICK)
        page.goto(site.url)
        wait_drawn(page)
        for count in (3, 4):
            site.post(News(nodes=[waiting(f"late-{count}", "no pool applies to it")]))
            expect(page.locator("#figure-waiting .value")).to_have_text(str(count))
        expect(page.locator("#voice")).to_have_text("4 nodes waiting, 0 full pools, 0 problems.")


class TestSearch:
    """The hits are those of now."""

    def test_one_that_comes(self, page: Page, site: Site) -> None:
        """A node that comes while one looks for it is found, and what was marked stays so."""
        search(page, "node-1")
        page.keyboard.press("ArrowDown")
        marked = page.locator("#hits [aria-selected=true] .title")
        expect(marked).to_have_text("node-10")
        site.post(News(nodes=[served("node-1b", PLAN.blocks(60), "first")]))
        expect(page.locator("#hits .title", has_text="node-1b")).to_be_visible()
        expect(marked).to_have_text("node-10")
        page.keyboard.press("Enter")
        expect(chosen(page)).to_have_text("node-10")


def test_an_explanation_stays_true(page: Page, site: Site) -> None:
    """Why a node waits is asked for again when it does no more."""
    search(page, "late-2")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Which pools apply, and why").click()
    expect(page.locator("#details")).to_contain_text("No pool applies")
    site.post(News(nodes=[served("late-2", ["10.1.2.0/24"], "second")]))
    expect(page.locator("#details")).to_contain_text("Pools that apply, in this order")


def test_how_long(page: Page, site: Site) -> None:
    """What has just begun lasts a moment."""
    late = msgspec.structs.replace(waiting("late-3", "it is new"), since="2999-01-01T00:00:00Z")
    event = api.Event(
        id="1", time="2999-01-01T00:00:00Z", type="Normal", reason="Told", kind="Node", name="n", note="", count=1
    )
    site.post(News(nodes=[late], events=[event]))
    expect(page.locator(".trouble", has_text="it is new").locator("h3")).to_have_text("1 node waiting for a moment")
    expect(page.locator(".entry time")).to_have_text("now")
