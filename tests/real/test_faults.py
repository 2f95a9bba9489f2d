"""The fault proxy before the real API server: what happened, and what the client was told, are two things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.testenv.client import ApiError, Client
from tests.testenv.faults import answer, cut_reply, gone, swallow, too_many_requests, too_many_requests_status
from tests.testenv.nodes import NODES, create_nodes, delete_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.api import Api
    from tests.testenv.proxy import FaultProxy

RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}]


@pytest.fixture(scope="module")
def token(cluster: Api) -> str:
    """The bearer token of a client that may patch nodes."""
    client, _ = cluster.service_account("behind-the-proxy", RULES)
    return client.token


@pytest.fixture
def client(cluster: Api, proxy: FaultProxy, token: str) -> Iterator[Client]:
    """A plain client that talks to the proxy."""
    made = Client(proxy.url, cluster.authority.certificate, token=token)
    yield made
    made.close()


@pytest.fixture
def node(cluster: Api) -> Iterator[str]:
    """A node, gone afterwards."""
    create_nodes(cluster.admin, ["faulty"])
    yield f"{NODES}/faulty"
    delete_nodes(cluster.admin, ["faulty"])


def test_lost_reply_is_not_a_lost_write(cluster: Api, proxy: FaultProxy, client: Client, node: str) -> None:
    """N9: a PATCH whose reply is lost went through all the same; sent again as it was, it is answered with 200."""
    patch = {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}
    lost = proxy.add(swallow(), method="PATCH", nth=1)
    with pytest.raises(OSError, match="PATCH"):
        client.patch(node, patch)
    assert lost.hits == 1
    assert cluster.admin.get(node)["spec"]["podCIDRs"] == ["10.0.0.0/24"]
    assert client.patch(node, patch)["spec"]["podCIDRs"] == ["10.0.0.0/24"]


def test_answers_that_the_api_server_never_gave(proxy: FaultProxy, client: Client, node: str) -> None:
    """A client is told 429 or 410 as Kubernetes tells it, and nothing reaches the API server."""
    proxy.add(too_many_requests(1), method="PATCH", nth=1)
    proxy.add(too_many_requests_status(1), method="PATCH", nth=2)
    for reason in ("", "TooManyRequests"):
        with pytest.raises(ApiError) as refused:
            client.patch(node, {"metadata": {"labels": {"a": "b"}}})
        assert (refused.value.code, refused.value.reason) == (429, reason)
    proxy.add(gone(), method="GET", path="watch=true", nth=1)
    with pytest.raises(ApiError) as expired:
        list(client.watch(NODES, "1", timeout=5))
    assert (expired.value.code, expired.value.reason) == (410, "Expired")
    assert "a" not in client.get(node)["metadata"]["labels"]


def test_storage_in_the_making_is_waited_for(proxy: FaultProxy, client: Client, node: str) -> None:
    """While the API server makes the storage of a kind anew it answers 429; the tests wait that out."""
    made_anew = answer(429, '{"reason": "TooManyRequests", "message": "storage is (re)initializing"}')
    told = [proxy.add(made_anew, method="GET", nth=1), proxy.add(made_anew, method="GET", path="watch=true", nth=1)]
    version = client.get(node)["metadata"]["resourceVersion"]
    client.patch(node, {"metadata": {"labels": {"seen": "later"}}})
    assert next(client.watch(NODES, version, timeout=10))["type"] == "MODIFIED"
    assert [each.hits for each in told] == [1, 1]


def test_watch_cut_in_the_middle_of_a_line(cluster: Api, proxy: FaultProxy, client: Client, node: str) -> None:
    """A watch that is cut within an event leaves half a line, which is no event."""
    proxy.add(cut_reply(mid_line=True), method="GET", path="watch=true", nth=1)
    version = cluster.admin.get(NODES)["metadata"]["resourceVersion"]
    cluster.admin.patch(node, {"metadata": {"labels": {"seen": "once"}}})
    with pytest.raises((OSError, ValueError)):
        list(client.watch(NODES, version, timeout=10))
