"""The page of `cidrella run`: a real API server, the rights of `deploy/`, and what somebody sees of that."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.page.markup import BAD, assert_harmless, bad_event
from tests.page.viewer import chosen, search
from tests.real.rbac import DEPLOY, account_token, controller_account
from tests.real.site import EVENTS, POOL_ANNOTATION, Site
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.page.viewer import Viewer
    from tests.real.site import Replica

ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
RED = "rgb(179, 38, 30)"
_SECONDS = 180


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Cluster]:
    """The real one: kube-apiserver and its etcd."""
    with Cluster.temporary() as running:
        yield running


@pytest.fixture
def site(kubernetes: Cluster, tmp_path: Path) -> Iterator[Site]:
    """With all of `deploy/`, and neither nodes nor pools."""
    made = Site(kubernetes, tmp_path, controller_account(kubernetes))
    made.clean()
    yield made
    made.clean()


def url(replica: Replica) -> str:
    """The page's address."""
    return f"http://127.0.0.1:{replica.port}/"


def store(cluster: Cluster, name: str, pod_cidr: str) -> None:
    """Put a node into etcd, past the API server, which would never have taken its podCIDR."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": "4f1d0c2a-0000-4000-8000-000000000001"},
        "spec": {"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]},
    }
    pair = {"key": f"/registry/minions/{name}", "value": json.dumps(node)}
    body = {key: base64.b64encode(text.encode()).decode() for key, text in pair.items()}
    with urlopen(Request(f"{cluster.etcd_url}/v3/kv/put", json.dumps(body).encode()), timeout=_SECONDS) as reply:
        assert reply.status == 200


def test_from_the_first_node_to_a_second_pool(site: Site, viewer: Viewer) -> None:
    """N4: nodes appear while one looks; a pool fills and turns red; a second is added, and those who waited move."""
    page = viewer.look(url(site.run()))
    site.create_pool("first", ipv4="10.0.0.0/23", ipv6="fd00::/119", perNodeHostBits=8)
    row = page.locator("#pools tr", has_text="10.0.0.0/23")
    expect(row).to_contain_text("0 %")
    site.create_node("node-1")
    expect(page.locator("#figure-nodes .value")).to_have_text("1")
    expect(row).to_contain_text("50 %")
    site.create_node("node-2")
    expect(row.locator(".meter .value")).to_have_text("full")
    expect(row.locator(".bar > span")).to_have_css("background-color", RED)
    site.create_node("node-3")
    expect(page.locator("#troubles")).to_contain_text("1 node waiting")
    expect(page.locator("#troubles")).to_contain_text("every pool that applies is full: first")

    site.create_pool("second", ipv4="10.1.0.0/23", ipv6="fd01::/119", perNodeHostBits=8)
    expect(page.locator("#calm")).to_have_text("Nothing waits, nothing is wrong.")
    expect(page.locator("#entries")).to_contain_text("node-3 got 10.1.0.0/24, fd01::/120 from second")
    for text in ("node-3", "10.1.0.7", "fd01::7"):
        expect(search(page, text).first.locator(".title")).to_have_text("node-3")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("node-3")


def test_markup_is_text(kubernetes: Cluster, site: Site, viewer: Viewer) -> None:
    """A podCIDR, an event's message and an annotation that are markup show as text, and harm nobody."""
    page = viewer.look(url(site.run()))
    site.create_node("marked", metadata={"annotations": {POOL_ANNOTATION: BAD}}, podCIDRs=["192.168.5.0/24"])
    store(kubernetes, "garbage", BAD)
    site.admin.create(EVENTS, bad_event("marked"))
    expect(page.locator("#entries")).to_contain_text(BAD)
    expect(page.locator("#troubles")).to_contain_text("img src=x")
    search(page, "garbage")
    page.keyboard.press("Enter")
    expect(chosen(page)).to_have_text("garbage")
    expect(page.locator("#details")).to_contain_text("img src=x")
    search(page, "marked")
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_contain_text("192.168.5.0/24")
    assert_harmless(page)


def test_a_token_of_the_cluster(site: Site, viewer: Viewer) -> None:
    """Who has a token and may list nodes signs in with it; who may not list them is told that it was not right."""
    site.cluster.kubectl("apply", "-k", DEPLOY / "page-auth")
    replica = site.run("--web-auth=kubernetes")
    site.create_pool("pool", ipv4="10.0.0.0/16")
    site.create_node("node")
    page = viewer.open(url(replica))
    expect(page).to_have_title("Sign in · Cidrella")
    site.admin.create(ACCOUNTS, {"metadata": {"name": "nobody-special"}})
    page.locator("input[type=password]").fill(account_token(site.cluster, "nobody-special"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That was not right. Try again.")
    page.locator("input[type=password]").fill(account_token(site.cluster))
    page.keyboard.press("Enter")
    expect(page.locator("#link-word")).to_have_text("Live")
    expect(page.locator("#figure-nodes .value")).to_have_text("1")
    expect(page.locator("#pools")).to_contain_text("10.0.0.0/16")
    assert {path: replica.get(path)[0] for path in ("/api/v1/state", "/metrics", "/healthz", "/readyz")} == {
        "/api/v1/state": 401,
        "/metrics": 401,
        "/healthz": 200,
        "/readyz": 200,
    }
