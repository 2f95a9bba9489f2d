"""Somebody who looks at the page: opens it, waits until it is drawn, finds what is on it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

PATIENCE = 60_000
"""Milliseconds: a machine with much to do takes its time, and no test is about that."""
DRAWN = "cidrella-drawn"
_FRAMES = """async count => {
    for (let at = 0; at < count; at++) await new Promise(done => requestAnimationFrame(done));
}"""
_FITS = """() => {
    const canvas = document.getElementById("map-base");
    const { clientWidth, clientHeight } = document.getElementById("stage");
    return canvas.width === Math.round(clientWidth * devicePixelRatio) &&
        canvas.height === Math.round(clientHeight * devicePixelRatio);
}"""

expect.set_options(timeout=PATIENCE)


class Viewer:
    """A window at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []

    def open(self, url: str, *, width: int = 1440, height: int = 900, **options: Any) -> Page:
        """A new window, at an address."""
        self.close()
        self._context = self._browser.new_context(viewport={"width": width, "height": height}, **options)
        self._context.set_default_timeout(PATIENCE)
        page = self._context.new_page()
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        return page

    def look(self, url: str, **options: Any) -> Page:
        """The page, drawn and live."""
        page = self.open(url, **options)
        wait_drawn(page)
        expect(page.locator("#link-word")).to_have_text("Live")
        return page

    def close(self) -> None:
        """Close the window."""
        if self._context is not None:
            self._context.close()
            self._context = None


def wait_until(page: Page, script: str, argument: Any = None) -> None:
    """Wait until a script says yes. Asked from here: Playwright's own waiting is kept out by the page's policy."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(script, argument):
        assert time.monotonic() < deadline, f"it never came true: {script}"
        page.wait_for_timeout(20)


def wait_drawn(page: Page) -> float:
    """Wait for the first picture; the milliseconds that it took since the page was asked for."""
    wait_until(page, "name => performance.getEntriesByName(name).length > 0", DRAWN)
    taken: float = page.evaluate("name => performance.getEntriesByName(name)[0].startTime", DRAWN)
    return taken


def settle(page: Page) -> None:
    """Wait until the map is as large as its place, stands still, and is drawn so."""
    for _ in range(2):  # a new size may bring a new height, which is a new size
        wait_frames(page)
        wait_until(page, _FITS)
    expect(page.locator("#map")).not_to_have_attribute("aria-busy", "true")
    wait_frames(page)


def wait_frames(page: Page, count: int = 3) -> None:
    """Wait for so many pictures: what was to be drawn, or measured, is then."""
    page.evaluate(_FRAMES, count)


def search(page: Page, text: str) -> Locator:
    """Type something into the search box; the hits."""
    page.locator("#search").fill(text)
    return page.get_by_role("option")


def chosen(page: Page) -> Locator:
    """The heading of the details: what is chosen."""
    return page.locator("#details h2")


def pixel(page: Page, x: float, y: float) -> tuple[int, int, int]:
    """The colour of the map at a point, in CSS pixels of it."""
    script = """([x, y]) => {
        const canvas = document.getElementById("map-base");
        const ratio = canvas.width / canvas.clientWidth;
        return [...canvas.getContext("2d").getImageData(x * ratio, y * ratio, 1, 1).data];
    }"""
    red, green, blue, _ = page.evaluate(script, [x, y])
    return red, green, blue
