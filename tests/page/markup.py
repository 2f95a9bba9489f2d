"""Text that would harm if it were read as markup, and where somebody could have put it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.testenv.client import Json

BAD = '<img src=x onerror="window.harmed=1"><b>bold</b>'


def bad_event(node: str) -> Json:
    """An event about a node with such a message, as an API server takes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{node}.1", "namespace": "default"},
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node},
        "reason": "Odd",
        "action": "Odd",
        "note": BAD,
        "type": "Warning",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "cidrella.dev/somebody",
        "reportingInstance": "x",
    }


def assert_harmless(page: Page) -> None:
    """Nothing of it has become an element."""
    assert page.evaluate("window.harmed") is None
    assert page.locator("img[src=x], main b").count() == 0
