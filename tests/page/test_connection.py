"""Whatever happens to the connection, the page says how it stands, comes back, and asks no more than it has to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from cidrella.web.board import News
from tests.page.viewer import PATIENCE, wait_drawn, wait_until
from tests.page.worlds import PoolPlan, of_plans, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Request, Route

    from tests.page.site import Site
    from tests.page.viewer import Viewer

TABS = 8
"""More than a browser has connections to a server."""
HIDDEN = "Object.defineProperty(document, 'hidden', { get: () => window.seen !== true, configurable: true });"
NO_FRAMES = "window.requestAnimationFrame = () => 1;"
NOTHING_LATE = """
    const { setTimeout } = window;
    window.setTimeout = (job, pause) => (pause < 2500 ? setTimeout(job, pause) : 1);
"""
LATER = "() => { const { now } = Date; let late = 0; Date.now = () => now() + (late += 1_000); }"
"""At each look at the clock, it is later."""
LOOKS = """
    const { setInterval } = window;
    window.looks = 0;
    window.setInterval = (job, pause) => setInterval(() => { window.looks++; job(); }, pause / 20);
"""
TOLD = """() => {
    window.told = [];
    const word = document.getElementById("link-word");
    new MutationObserver(() => window.told.push(word.textContent)).observe(word, { childList: true });
}"""


@pytest.fixture
def site(serve: Callable[..., Site]) -> Site:
    return serve(of_plans([PoolPlan("first", [("10.0.0.0/22", 24)], 2, "node")]))


def with_script(viewer: Viewer, url: str, script: str) -> Page:
    """The page, with something else before it."""
    page = viewer.open("about:blank")
    page.add_init_script(script)
    page.goto(url)
    wait_drawn(page)
    return page


def count(page: Page, path: str) -> list[float]:
    """When something was asked for, from now on."""
    times: list[float] = []

    def note(request: Request) -> None:
        if path in request.url:
            times.append(time.monotonic())

    page.on("request", note)
    return times


def wait_for(page: Page, times: list[float], number: int) -> None:
    deadline = time.monotonic() + PATIENCE / 1000
    while len(times) < number:
        assert time.monotonic() < deadline, "it was not asked for"
        page.wait_for_timeout(20)


def test_refused_again_and_again(viewer: Viewer, site: Site) -> None:
    """Where every stream says `reload`, as that of another replica does, the state is asked for ever less often."""

    def reload(route: Route) -> None:
        route.fulfill(status=200, content_type="text/event-stream", body="event: reload\ndata: {}\n\n")

    page = viewer.open("about:blank")
    page.route("**/api/v1/stream*", reload)
    asked = count(page, "/api/v1/state")
    page.goto(site.url)
    wait_for(page, asked, 5)
    assert asked[4] - asked[1] > (1 + 2 + 4) / 2
    assert page.locator("#figure-nodes .value").inner_text() == "2"


def test_refused_for_a_while(viewer: Viewer, site: Site) -> None:
    """Where nobody can tell for a while who may look, what is shown stays, nobody has to log in, and it comes back."""
    page = viewer.look(site.url)
    asked = count(page, "/api/v1/state")
    page.route("**/api/v1/*", lambda route: route.fulfill(status=503, body='{"error": "nobody knows"}'))
    site.drop_viewers()
    wait_for(page, asked, 2)
    expect(page.locator("#link-word")).to_have_text("Connection lost, trying again")
    expect(page.locator("#figure-nodes .value")).to_have_text("2")
    page.unroute_all()
    expect(page.locator("#link-word")).to_have_text("Live")
    assert "login" not in page.url
    viewer.errors.clear()  # the browser's own, about the answers 503


def test_an_end_is_no_loss(viewer: Viewer, site: Site) -> None:
    """A stream that ends, as each does after some minutes, is taken up again, and nobody is told of a loss."""
    page = with_script(viewer, site.url, NOTHING_LATE)
    expect(page.locator("#link-word")).to_have_text("Live")
    page.evaluate(TOLD)
    streams = count(page, "/api/v1/stream")
    site.drop_viewers()
    wait_for(page, streams, 1)
    site.post(News(nodes=[waiting("late", "no pool applies to it")]))
    expect(page.locator("#figure-waiting .value")).to_have_text("1")
    assert set(page.evaluate("window.told")) <= {"Live"}


def test_silence(viewer: Viewer, site: Site) -> None:
    """A connection that went without a word, as while a laptop slept, is known by its silence, and begun anew."""
    site.streams.heartbeat = 3600
    page = viewer.look(site.url)
    asked = count(page, "/api/v1/state")
    page.evaluate("() => { const { now } = Date; Date.now = () => now() + 3_600_000; }")
    wait_for(page, asked, 1)
    expect(page.locator("#link-word")).to_have_text("Live")


def test_signs_of_life(viewer: Viewer, site: Site) -> None:
    """Where nothing happens but that the server says so, it is not silent, and nothing is begun anew."""
    site.streams.heartbeat = 0.05
    page = with_script(viewer, site.url, LOOKS)
    expect(page.locator("#link-word")).to_have_text("Live")
    asked = count(page, "/api/v1/state")
    page.evaluate(LATER)
    wait_until(page, "before => window.looks > before + 90", page.evaluate("window.looks"))
    assert asked == []


def test_many_tabs(viewer: Viewer, site: Site) -> None:
    """A browser has six connections to a server: of many tabs only the one that is seen follows, so that it can."""
    first = with_script(viewer, site.url, "")
    pages = [first]
    expect(first.locator("#link-word")).to_have_text("Live")
    for _ in range(TABS):
        pages[-1].evaluate(HIDDEN)
        page = first.context.new_page()
        page.goto(site.url)
        expect(page.locator("#link-word")).to_have_text("Live")
        pages.append(page)
    site.post(News(nodes=[waiting("late", "no pool applies to it")]))
    expect(pages[-1].locator("#figure-waiting .value")).to_have_text("1")
    expect(first.locator("#link-word")).to_have_text("Paused")
    first.evaluate("window.seen = true; document.dispatchEvent(new Event('visibilitychange'))")
    expect(first.locator("#link-word")).to_have_text("Live")
    expect(first.locator("#figure-waiting .value")).to_have_text("1")


def test_out_of_sight(viewer: Viewer, site: Site) -> None:
    """A tab that is not seen draws nothing, but its title says who waits."""
    page = with_script(viewer, site.url, "")
    expect(page.locator("#link-word")).to_have_text("Live")
    page.evaluate(HIDDEN + NO_FRAMES)
    site.post(News(nodes=[waiting("late", "no pool applies to it")]))
    expect(page).to_have_title("(1 waiting) planned · Cidrella")
