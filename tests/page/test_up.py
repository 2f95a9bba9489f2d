"""The page of `cidrella up`: everything real, from the API to the pixels."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from cidrella.model.objects import POOL_ANNOTATION
from tests.page.markup import BAD, assert_harmless, bad_event
from tests.page.viewer import chosen, search
from tests.up.running import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.page.viewer import Viewer
    from tests.up.running import Up

RED = "rgb(179, 38, 30)"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with running(tmp_path, "--bind-address=127.0.0.1:0", "--no-browser") as made:
        yield made


def url(up: Up) -> str:
    """The page's address, as it is printed."""
    found = re.search(r"^The page: (http://\S+)", up.printed, re.MULTILINE)
    assert found, up.printed
    return found[1]


def apply(up: Up, manifest: object) -> None:
    """As somebody with kubectl does."""
    up.out(f"kubectl create -f - <<'END'\n{json.dumps(manifest)}\nEND")


def test_from_the_first_node_to_a_second_pool(up: Up, viewer: Viewer) -> None:
    """Nodes appear while one looks; a pool fills and turns red; a second is added, and those who waited move."""
    page = viewer.look(url(up))
    up.out("cidrella pool add first 10.0.0.0/22")
    row = page.locator("#pools tr", has_text="10.0.0.0/22")
    expect(row).to_contain_text("0 %")
    up.out("cidrella node add node-1 node-2")
    expect(page.locator("#figure-nodes .value")).to_have_text("2")
    expect(row).to_contain_text("50 %")
    expect(page.locator("#entries")).to_contain_text("node-2 got 10.0.1.0/24 from first")
    expect(search(page, "10.0.1.7").first.locator(".title")).to_have_text("node-2")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("node-2")
    page.get_by_role("button", name="Which pools apply, and why").click()
    expect(page.locator("#details .verdicts")).to_contain_text("it has no selector: a default for every node (S2)")

    up.out("cidrella node add node-3 node-4")
    expect(row.locator(".meter .value")).to_have_text("full")
    expect(row.locator(".bar > span")).to_have_css("background-color", RED)
    up.run("cidrella node add node-5 node-6")
    expect(page.locator("#figure-waiting .value")).to_have_text("2")
    expect(page.locator("#troubles")).to_contain_text("2 nodes waiting")
    expect(page.locator("#troubles")).to_contain_text("What helps:")

    up.out("cidrella pool add second 10.1.0.0/22")
    expect(page.locator("#figure-waiting .value")).to_have_text("0")
    expect(page.locator("#calm")).to_have_text("Nothing waits, nothing is wrong.")
    expect(page.locator("#pools tr", has_text="10.1.0.0/22")).to_contain_text("50 %")
    expect(search(page, "10.1.1.200").first.locator(".title")).to_have_text(re.compile("node-[56]"))


def test_services(up: Up, viewer: Viewer) -> None:
    """A Service that comes is seen in its band, and found by its address."""
    page = viewer.look(url(up))
    up.out("kubectl create service clusterip front --tcp=80 --clusterip=10.96.0.77")
    page.get_by_role("tab", name="Services").click()
    row = page.locator("#services tbody tr", has_text="default/front")
    expect(row).to_contain_text("10.96.0.77")
    expect(row).to_contain_text("static")
    expect(search(page, "10.96.0.77").first.locator(".title")).to_have_text("default/front")


def test_markup_is_text(up: Up, viewer: Viewer) -> None:
    """An event's message and an annotation that somebody wrote as markup show as text, or not at all."""
    page = viewer.look(url(up))
    apply(
        up,
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "odd", "annotations": {POOL_ANNOTATION: BAD}},
            "spec": {"podCIDR": "192.168.5.0/24", "podCIDRs": ["192.168.5.0/24"]},
        },
    )
    apply(up, bad_event("odd"))
    expect(page.locator("#entries")).to_contain_text(BAD)
    expect(page.locator("#troubles")).to_contain_text("1 node in no pool")
    search(page, "odd")
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_contain_text("192.168.5.0/24")
    assert_harmless(page)
