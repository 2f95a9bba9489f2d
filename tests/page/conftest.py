"""A browser for all tests of the page, and a window of it for each, which must stay without errors."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.page.chromium import FLAGS, find_chromium
from tests.page.site import Site
from tests.page.viewer import Viewer
from tests.page.worlds import showcase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, with nothing of anybody's in it."""
    path = find_chromium()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, f"--crash-dumps-dir={directory}"])
        yield browser
        browser.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Site]]:
    """What serves a state until the end of the test."""
    with ExitStack() as stack:
        yield lambda state, **options: stack.enter_context(Site(state, **options))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A page of a cluster as people have them, unless a module has one of its own."""
    with Site(showcase()) as serving:
        yield serving


@pytest.fixture
def viewer(chromium: Browser, serve: object) -> Iterator[Viewer]:
    """Somebody who looks at pages; whatever the console said in the meantime must have been no error.

    It ends before what is served does: nobody looks at a server that has gone, unless that is what a test is about.
    """
    assert serve
    looking = Viewer(chromium)
    yield looking
    looking.close()
    assert looking.errors == []


@pytest.fixture
def page(viewer: Viewer, site: Site) -> Page:
    """That page, looked at."""
    return viewer.look(site.url)
