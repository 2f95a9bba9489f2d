"""A browser for all tests of the page, and a window of it for each, which must stay without errors."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.page.chromium import FLAGS, find_chromium
from tests.page.viewer import Viewer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser, with nothing of anybody's in it."""
    path = find_chromium()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as directory:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, f"--crash-dumps-dir={directory}"])
        yield browser
        browser.close()


@pytest.fixture
def viewer(chromium: Browser) -> Iterator[Viewer]:
    """Somebody who looks at pages; whatever the console said in the meantime must have been no error."""
    looking = Viewer(chromium)
    yield looking
    looking.close()
    assert looking.errors == []
