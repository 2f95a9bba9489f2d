"""Nodes whose PATCH fails, on a real API server: other nodes are served, and an operator is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real.behind import NODE_PATCH, behind_proxy
from tests.real.site import LEASE, SHORT_LEASE, eventually
from tests.testenv.faults import server_error
from tests.testenv.nodes import NODES, assert_no_overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.behind import Behind
    from tests.real.site import Replica, Site

_WITHOUT = "cidrella_nodes_without_cidr"


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site with a pool, in which every PATCH of a node whose name begins with "bad" fails."""
    site.create_pool("p", ipv4="10.0.0.0/12")
    with behind_proxy(site) as made:
        made.proxy.add(server_error(), method="PATCH", path=f"{NODE_PATCH}bad-")
        yield made


def test_others_are_served_while_more_fail_than_the_record_has_first_attempts(behind: Behind, site: Site) -> None:
    """N4, N9, promise 6: 520 nodes whose PATCH fails keep none waiting; the next leader takes all of them over."""
    bad = [f"bad-{number}" for number in range(520)]
    replica = behind.run(*SHORT_LEASE)
    for name in bad:
        site.create_node(name)
    eventually(lambda: _without(replica, "UnknownOutcome") == len(bad), explain=lambda: str(_counts(replica)))
    good = _serves(site, "good")
    assert replica.metric("cidrella_nodes_waiting") == 0
    eventually(lambda: len(_recorded(site)) == len(bad))
    eventually(lambda: replica.metric("cidrella_lease_record_bytes") == len(_record(site)))

    replica.process.kill()
    successor = behind.run(*SHORT_LEASE)
    good |= _serves(site, "better")
    eventually(lambda: _without(successor, "UnknownOutcome") == len(bad), explain=lambda: str(_counts(successor)))
    recorded = {uid: block for uid, _, block in _recorded(site)}

    behind.proxy.clear()
    given = site.wait_served(*bad)
    assert {site.node(name)["metadata"]["uid"]: blocks[0] for name, blocks in given.items()}.items() <= recorded.items()
    eventually(lambda: not any(_counts(successor).values()))
    eventually(lambda: not _recorded(site))
    assert len({blocks[0] for blocks in (*given.values(), *good.values())}) == len(bad) + len(good)
    assert_no_overlap(site.admin.items(NODES))


def test_without_a_lease(behind: Behind, site: Site) -> None:
    """N4, promise 6: without leader election nodes whose PATCH fails keep none waiting, either."""
    replica = behind.run()
    for number in range(60):
        site.create_node(f"bad-{number}")
    eventually(lambda: _without(replica, "UnknownOutcome") == 60, explain=lambda: str(_counts(replica)))
    _serves(site, "good")


def _serves(site: Site, name: str) -> dict[str, list[str]]:
    """Some nodes are served."""
    names = [f"{name}-{number}" for number in range(20)]
    for each in names:
        site.create_node(each)
    return site.wait_served(*names)


def _record(site: Site) -> str:
    annotations = site.admin.get(LEASE)["metadata"].get("annotations", {})
    return str(annotations.get("cidrella.dev/intents", ""))


def _recorded(site: Site) -> list[list[str]]:
    """The entries in the Lease."""
    return list(json.loads(_record(site) or "[]"))


def _without(replica: Replica, reason: str) -> float | None:
    return replica.metric(_WITHOUT, reason=reason)


def _counts(replica: Replica) -> dict[str, float]:
    return {each.labels["reason"]: each.value for each in replica.samples() if each.name == _WITHOUT}
