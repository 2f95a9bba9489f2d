"""A server that is killed and comes back: nothing that was acknowledged is lost, and watches begin anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conformance.bodies import CRDS, NODES, POOLS, await_kind, made, node, pool, service, services, version
from tests.conformance.conftest import SERVERS, install
from tests.conformance.talking import Talk
from tests.real.conftest import KEPT_LOGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.api import Api


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.kind)
def own(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A server for these tests alone."""
    server: type[Api] = request.param
    with server.temporary(keep_logs_in=KEPT_LOGS) as running:
        install(running)
        yield running


def kill(api: Api) -> None:
    """End it as a power cut would, and start it again."""
    api.restart(api.apiserver)


def test_what_was_told_is_kept(own: Api) -> None:
    """Objects, definitions and addresses are as they were, and versions go on from where they were."""
    talk = Talk(own.admin)
    body = pool("kept")
    body["metadata"]["finalizers"] = ["example.com/guard"]
    before = [
        made(talk, NODES, node("kept", podCIDR="10.1.0.0/24", podCIDRs=["10.1.0.0/24"])),
        made(talk, POOLS, body),
        made(talk, services("default"), service("kept")),
    ]
    last = talk.delete(f"{POOLS}/kept").granted()
    talk.close()
    kill(own)

    talk = Talk(own.admin)
    await_kind(talk, POOLS)
    assert talk.get(f"{NODES}/kept").granted() == before[0]
    assert talk.get(f"{POOLS}/kept").granted() == last
    assert talk.get(f"{services('default')}/kept").granted() == before[2]
    assert talk.get(f"{CRDS}/clustercidrs.networking.x-k8s.io").granted()["status"]["conditions"]
    assert version(made(talk, NODES, node("later"))) > version(last)
    taken = service("other", clusterIP=before[2]["spec"]["clusterIP"])
    talk.create(services("default"), taken).refused(422, "Invalid", "provided IP is already allocated")
    talk.patch(f"{POOLS}/kept", {"metadata": {"finalizers": None}}).granted()
    talk.close()


def test_a_version_that_is_forgotten(own: Api) -> None:
    """A watch from before is told that it is too old (410), and a client that lists again goes on."""
    talk = Talk(own.admin)
    start = talk.get(NODES).granted()["metadata"]["resourceVersion"]
    for number in range(3):
        made(talk, NODES, node(f"before-{number}"))
    talk.close()
    kill(own)

    talk = Talk(own.admin)
    with talk.watch(NODES, resourceVersion=start) as watching:
        kind, told = watching.next()
        assert kind == "ERROR"
        assert (told["kind"], told["code"], told["reason"]) == ("Status", 410, "Expired")
        assert told["message"].startswith(f"too old resource version: {start} (")
        assert list(watching) == []
    fresh = talk.get(NODES).granted()["metadata"]["resourceVersion"]
    with talk.watch(NODES, resourceVersion=fresh) as watching:
        made(talk, NODES, node("after"))
        assert watching.take(1) == [("ADDED", "after")]
    talk.close()
