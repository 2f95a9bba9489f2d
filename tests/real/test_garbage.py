"""What no API server should send, and something in between may: it is survived, logged once, and others are served."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.real.behind import NODE_PATCH, NODE_WATCH, behind_proxy
from tests.real.site import POOLS, SERVICE_CIDRS
from tests.testenv.faults import answer, cut, cut_reply, gone_event, html
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.behind import Behind
    from tests.real.site import Replica, Site
    from tests.testenv.client import Json
    from tests.testenv.faults import Fault

THRICE = range(1, 4)
ODD_NODES: list[object] = [
    {"metadata": {"uid": "u1"}},
    {"metadata": {"name": "labels", "uid": "u2", "labels": 5}},
    {"metadata": {"name": "blocks", "uid": "u3"}, "spec": {"podCIDRs": "x"}},
    {"metadata": {"name": "taints", "uid": "u4"}, "spec": {"taints": [7]}},
    {"metadata": 5},
    "a node",
    7,
    [],
    None,
]
ODD_POOLS: list[object] = [{"metadata": {"name": "ranges", "uid": "u5"}, "spec": {"ipv4": 5}}, {"spec": {}}, "a pool"]
ODD_SERVICE = {"metadata": {"name": "cidrs", "uid": "u6"}, "spec": {"cidrs": ["x", "10.1.0.0/33"]}}
ODD_SERVICES: list[object] = [ODD_SERVICE, 7]
UNREADY = {**ODD_SERVICE, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
"""The same, of which something else has changed."""


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site whose replicas are behind a proxy."""
    with behind_proxy(site) as made:
        yield made


def events(*changes: tuple[str, object]) -> str:
    """The lines of a watch."""
    return "".join(json.dumps({"type": kind, "object": each}) + "\n" for kind, each in changes)


def complaints(replica: Replica) -> list[tuple[object, ...]]:
    """Of whom, of what and how the log complains."""
    assert "Traceback" not in replica.log.read_text()
    lines = [line for line in replica.logged() if line["level"] in {"warning", "error"}]
    return [
        (line.get("path", ""), line.get("name") or line.get("node", ""), line.get("kind") or line["event"])
        for line in lines
    ]


def assert_said_once(said: list[tuple[object, ...]]) -> None:
    """Nothing is said twice."""
    assert not [each for each, times in Counter(said).items() if times > 1]


def with_odd(site: Site, collection: str, odd: list[object]) -> str:
    """A collection as it is, with what should not be in it."""
    listed: Json = site.admin.get(collection)
    return json.dumps(listed | {"items": [*odd, *listed["items"]]})


def test_odd_objects(behind: Behind) -> None:
    """N2, C4, pitfall 10: objects of the wrong shape, in lists and in watches, again and again, are each told once.

    Those beside them are served, also one with a label of a megabyte, and what is held stays held.
    """
    site, proxy = behind.site, behind.proxy
    site.create_pool("pool", ipv4="10.1.0.0/22")
    site.create_node("held", podCIDR="10.1.0.0/24", podCIDRs=["10.1.0.0/24"])
    huge = site.create_node("huge")
    huge["metadata"]["labels"] = {"huge": "x" * 1_000_000}
    for collection, odd in ((NODES, ODD_NODES), (POOLS, ODD_POOLS), (SERVICE_CIDRS, ODD_SERVICES)):
        proxy.add(answer(200, with_odd(site, collection, odd)), path=rf"^{collection}\?(?!.*watch=)", nth=THRICE)
        proxy.add(gone_event(), path=rf"^{collection}\?.*watch=", nth=range(1, 3))
    seen = events(("MODIFIED", huge), *(("ADDED", each) for each in ODD_NODES))
    proxy.add(answer(200, seen), path=NODE_WATCH, nth=range(3, 5))
    proxy.add(answer(200, events(("MODIFIED", UNREADY))), path=rf"^{SERVICE_CIDRS}\?.*watch=", nth=3)
    replica = behind.replica().start(until_ready=False)
    site.create_node("good")
    served = site.wait_served("huge", "good")
    replica.wait_ready()
    proxy.wait_for(lambda entry: "/nodes?" in entry.path and "watch=" in entry.path, count=5)
    proxy.wait_for(lambda entry: "/servicecidrs?" in entry.path and "watch=" in entry.path, count=4)
    site.create_node("after")
    served |= site.wait_served("after")
    assert sorted(block for (block,) in served.values()) == ["10.1.1.0/24", "10.1.2.0/24", "10.1.3.0/24"]
    said = complaints(replica)
    assert_said_once(said)
    assert {name for path, name, _ in said if path == NODES} >= {"(no name)", "labels", "blocks", "taints"}
    assert ("", "cidrs", "a ServiceCIDR cannot be read") in said


def test_odd_streams(behind: Behind) -> None:
    """N9, pitfall 26: HTML for a list, a watch and a PATCH, half lines, an ERROR event, a line that is no event.

    All of it is borne with, told once for each kind, and no block is given twice.
    """
    site, proxy = behind.site, behind.proxy
    site.create_pool("pool", ipv4="10.1.0.0/16")
    names = [f"n{number}" for number in range(8)]
    for name in names:
        site.create_node(name)
    failure = {"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": "etcd left"}
    odd: dict[str, list[Fault]] = {
        NODES: [html(200), answer(200, events(("ERROR", failure))), answer(200, '{"type": "ADDED", "object": {"meta')],
        POOLS: [answer(200, "}\n[]\n"), answer(200, events(("ODD", failure))), cut_reply(mid_line=True)],
        SERVICE_CIDRS: [answer(200, events(("ERROR", "what?"))), answer(200, events(("DELETED", failure))), cut()],
    }
    for nth, (collection, faults) in enumerate(odd.items()):
        for number, fault in enumerate(faults, 1):
            proxy.add(fault, path=rf"^{collection}\?.*watch=", nth=number)
        proxy.add((html(200), html(502), answer(200, '{"items": []}'))[nth], path=rf"^{collection}\?limit", nth=1)
    proxy.add(html(200), method="PATCH", path=NODE_PATCH, nth=THRICE)
    proxy.add(html(502), method="PATCH", path=NODE_PATCH, nth=4)
    proxy.add(answer(200, "{"), method="PATCH", path=NODE_PATCH, nth=5)
    replica = behind.replica().start(until_ready=False)
    site.wait_served(*names)
    site.create_node("during")
    site.wait_served("during")
    proxy.clear()
    site.create_node("after")
    site.wait_served("after")
    assert_no_overlap(site.admin.items(NODES))
    assert_said_once(complaints(replica))
    replica.wait_ready()
