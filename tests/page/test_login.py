"""Where a password is asked for: the login, and nothing before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from cidrella.web.checkers import SecretFile
from cidrella.web.doors import GuardedDoor
from tests.page.worlds import showcase

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.page.site import Site
    from tests.page.viewer import Viewer

PASSWORD = "open sesame, please"


def test_login(viewer: Viewer, tmp_path: Path, serve: Callable[..., Site]) -> None:
    """One is asked for the password, told when it is wrong, and sees the page when it is right; axe is content."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    site = serve(showcase(), door=lambda series: GuardedDoor([SecretFile(secret, bearer=False)], series))
    page = viewer.open(site.url)
    expect(page).to_have_title("Sign in · Cidrella")
    serious = [each for each in Axe().run(page).response["violations"] if each["impact"] in {"serious", "critical"}]
    assert serious == []
    expect(page.get_by_role("alert")).to_be_hidden()
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That was not right. Try again.")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#figure-nodes .value")).to_have_text("226")
    expect(page.locator("#link-word")).to_have_text("Live")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · Cidrella")
    page.goto(site.url)
    expect(page).to_have_title("Sign in · Cidrella")


def test_nobody_can_tell(viewer: Viewer, tmp_path: Path, serve: Callable[..., Site]) -> None:
    """Who is led back because it could not be looked at is not told that it was wrong."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    site = serve(showcase(), door=lambda series: GuardedDoor([SecretFile(secret, bearer=False)], series))
    page = viewer.open(f"{site.url}/login#busy")
    expect(page.get_by_role("alert")).to_contain_text("Try again in a moment.")


def test_a_session_that_is_over(viewer: Viewer, tmp_path: Path, serve: Callable[..., Site]) -> None:
    """Who may not look any more is led to the login, without reloading by hand."""
    secret = tmp_path / "password"
    secret.write_text(PASSWORD)
    site = serve(showcase(), door=lambda series: GuardedDoor([SecretFile(secret, bearer=False)], series))
    page = viewer.open(site.url)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("#link-word")).to_have_text("Live")
    page.context.clear_cookies()
    site.drop_viewers()
    expect(page).to_have_title("Sign in · Cidrella")
    viewer.errors.clear()  # of the browser, about the answers 401
