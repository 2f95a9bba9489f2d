"""However somebody has set up their browser, the page goes along: colours, sizes of text, narrow screens, paper."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from cidrella.web.board import News
from tests.page.chromium import FLAGS, find_chromium
from tests.page.site import Site
from tests.page.viewer import Viewer, settle
from tests.page.worlds import PoolPlan, of_plans, ranges_of, served, showcase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

LARGE = 32
"""Pixels: twice as large as usual."""
BROADER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = """() => [...document.querySelectorAll(".figure .value, .number, .tabs button, .card-head > *")]
    .filter(each => each.getBoundingClientRect().right > each.closest(".card, .figure").getBoundingClientRect().right)
    .map(each => each.textContent)"""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(showcase()) as serving:
        yield serving


@pytest.fixture
def large(chromium: Browser, serve: object) -> Iterator[Viewer]:
    """Somebody who needs large text."""
    assert serve
    with tempfile.TemporaryDirectory() as directory:
        args = [*FLAGS, f"--crash-dumps-dir={directory}", f"--blink-settings=defaultFontSize={LARGE}"]
        browser = chromium.browser_type.launch(executable_path=find_chromium(), args=args)
        looking = Viewer(browser)
        yield looking
        looking.close()
        browser.close()
        assert looking.errors == []


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_large_text(large: Viewer, site: Site, width: int) -> None:
    """Text grows with the browser's, the page is laid out for it, and nothing is cut off or scrolls sideways."""
    page = large.look(site.url, width=width, height=900)
    expect(page.locator("body")).to_have_css("font-size", f"{LARGE * 15 / 16:g}px")
    settle(page)
    assert page.evaluate(BROADER) == 0
    assert page.evaluate(CUT) == []


@pytest.mark.parametrize("width", [320, 360, 768])
def test_narrow(viewer: Viewer, site: Site, width: int) -> None:
    """Nothing is cut off, however narrow."""
    page = viewer.look(site.url, width=width, height=640)
    settle(page)
    assert page.evaluate(BROADER) == 0
    assert page.evaluate(CUT) == []


def test_the_map_can_be_left_by_finger(viewer: Viewer, site: Site) -> None:
    """On a phone, a map that one came close to takes what fingers do: what shows all of it again stays in view."""
    page = viewer.look(site.url, width=360, height=640, reduced_motion="reduce")
    page.locator("#closer").click()
    page.locator("#stage").evaluate("stage => window.scrollBy(0, stage.getBoundingClientRect().bottom - 500)")
    expect(page.get_by_role("button", name="Show all")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Show all").click(trial=True)


def test_the_focus_is_not_below_the_head(viewer: Viewer, site: Site) -> None:
    """Who goes back by keyboard sees where they are: the head, which stays in view, does not cover it."""
    page = viewer.look(site.url, height=500)
    page.locator("footer a").focus()
    for _ in range(40):
        page.keyboard.press("Shift+Tab")
        where = page.evaluate("""() => {
            const at = document.activeElement.getBoundingClientRect();
            const head = document.querySelector(".top");
            return head.contains(document.activeElement) ? 0 : head.getBoundingClientRect().bottom - at.bottom;
        }""")
        assert where < 0 or page.evaluate("document.activeElement.closest('.top, .skip') !== null")


def test_forced_colours(viewer: Viewer, site: Site) -> None:
    """Where the system chooses the colours, bars and the pools' colours are still there."""
    page = viewer.look(site.url, forced_colors="active")
    bar = page.locator("#pools .bar > span").first
    expect(bar).to_have_css("background-color", "rgb(179, 38, 30)")
    colours = page.locator("#pools .swatch").evaluate_all(
        "all => all.map(each => getComputedStyle(each).backgroundColor)"
    )
    assert len(set(colours)) == 6


def test_on_paper(viewer: Viewer, site: Site) -> None:
    """Lists are printed as a whole, and what can only be used on a screen is not."""
    page = viewer.look(site.url)
    page.emulate_media(media="print")
    for hidden in ("#search", "#theme", "#closer"):
        expect(page.locator(hidden)).to_be_hidden()
    inside = "list => list.scrollHeight <= list.clientHeight + 1"
    assert page.locator("#entries").evaluate(inside)
    assert page.locator("#troubles").evaluate(inside)


def test_nothing_there(viewer: Viewer, serve: Callable[..., Site]) -> None:
    """Where there is no pool and no node, that is said, and nothing else is."""
    page = viewer.look(serve(of_plans([])).url)
    expect(page.locator("#figure-nodes .note")).to_have_text("none yet")
    expect(page.locator("#figure-pools .note")).to_have_text("none yet")
    expect(page.locator("#pools")).to_contain_text("There is no pool. Nodes wait until there is one.")
    expect(page.locator("#calm")).to_have_text("No node yet.")
    expect(page.locator("#map-card")).to_contain_text("There is no range yet")
    assert "NaN" not in page.locator("main").inner_text()


def test_the_first_pool(viewer: Viewer, serve: Callable[..., Site]) -> None:
    """The map comes with the first range, also for who began to look before."""
    site = serve(of_plans([]))
    page = viewer.look(site.url)
    plan = PoolPlan("first", [("10.0.0.0/22", 24)], 1, "node")
    pools = [plan.pool(1)]
    site.post(News(pools=pools, ranges=ranges_of(pools, []), nodes=[served("node-1", plan.blocks(0), "first")]))
    expect(page.locator("#no-range")).to_be_hidden()
    settle(page)
    box = page.locator("#map").bounding_box()
    assert box
    assert box["height"] > 300
    page.mouse.move(box["x"] + 5, box["y"] + 60)
    expect(page.locator("#tooltip strong")).to_have_text("node-1")
