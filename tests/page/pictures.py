"""Draws the pictures of the page for the README: `python -m tests.page.pictures docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

from tests.page.chromium import FLAGS, find_chromium
from tests.page.site import Site
from tests.page.viewer import Viewer, search, settle
from tests.page.worlds import showcase

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LIGHT, DARK, PHONE = "page-light.png", "page-dark.png", "page-phone.png"


def draw(browser: Browser, directory: Path) -> None:
    """All of them, into a directory."""
    viewer = Viewer(browser)
    with Site(showcase()) as site:
        page = viewer.look(site.url, width=1360, height=1220, color_scheme="light")
        page.screenshot(path=directory / LIGHT)
        page = viewer.look(site.url, width=1360, height=860, color_scheme="dark")
        search(page, "batch-legacy")
        page.keyboard.press("Enter")
        settle(page)
        page.screenshot(path=directory / DARK)
        page = viewer.look(site.url, width=390, height=1160, color_scheme="light", device_scale_factor=2)
        page.screenshot(path=directory / PHONE)
    viewer.close()
    assert viewer.errors == []


if __name__ == "__main__":
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        draw(chromium, Path(sys.argv[1]))
        chromium.close()
