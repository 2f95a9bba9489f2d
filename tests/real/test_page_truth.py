"""What the page says is true, also where replicas change places, and where nobody knows what is true."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.real.behind import behind_proxy
from tests.real.site import eventually
from tests.testenv.faults import reset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.behind import Behind
    from tests.real.site import Replica, Site

SECONDS = 180.0


@pytest.fixture
def behind(site: Site) -> Iterator[Behind]:
    """A site whose replicas are behind a proxy."""
    with behind_proxy(site) as made:
        yield made


def look(replica: Replica) -> dict[str, Any]:
    """The state, as the page of a replica has it."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=30)
    try:
        connection.request("GET", "/api/v1/state")
        state: dict[str, Any] = json.loads(connection.getresponse().read())
        return state
    finally:
        connection.close()


def states(state: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["state"] for each in state["nodes"]}


def told(state: dict[str, Any]) -> dict[str, Any]:
    """All that does not depend on whom one asks."""
    nodes = [{**each, "since": ""} for each in state["nodes"]]
    pools = [{**each, "forecast": None} for each in state["pools"]]
    rows = {"nodes": nodes, "pools": pools, "services": state["services"]}
    return {what: sorted(each, key=json.dumps) for what, each in rows.items()}


def test_a_replica_that_takes_over(site: Site) -> None:
    """F5: a standby tells what the leader tells, but that it does not lead; then it does, and goes on telling."""
    site.create_pool("pool", ipv4="10.1.0.0/23")
    site.create_config("part", "10.2.0.0/24", 24, {"rack": "1"})
    leader, standby = site.run(), site.run()
    for name in ("a", "b", "c"):
        site.create_node(name)
    site.create_node("d", labels={"rack": "1"})
    wanted = ["served", "served", "served", "waiting"]
    for replica in (leader, standby):
        eventually(lambda replica=replica: sorted(states(look(replica)).values()) == wanted, SECONDS)  # type: ignore[misc]
    eventually(lambda: told(look(leader)) == told(look(standby)), SECONDS, lambda: f"{look(leader)}\n{look(standby)}")
    assert [look(each)["cluster"]["leading"] for each in (leader, standby)] == [True, False]
    version = look(standby)["version"]
    leader.stop()
    eventually(lambda: look(standby)["cluster"]["leading"], SECONDS)
    site.create_pool("more", ipv4="10.3.0.0/23")
    eventually(lambda: set(states(look(standby)).values()) == {"served"}, SECONDS)
    state = look(standby)
    assert state["cluster"]["missing"] == []
    assert state["version"] > version
    assert {each["what"] for each in state["allocations"]} == {"given"}


def test_while_the_api_server_is_away(behind: Behind) -> None:
    """What was seen is shown, and that it may be old is said; when it is back, what happened meanwhile is shown."""
    site, proxy = behind.site, behind.proxy
    site.create_pool("pool", ipv4="10.1.0.0/23")
    site.create_node("a")
    replica = behind.run()
    eventually(lambda: states(look(replica)) == {"a": "served"}, SECONDS)
    assert (look(replica)["cluster"]["missing"], look(replica)["cluster"]["remarks"]) == ([], [])
    away = proxy.add(reset())
    proxy.lose_connections()

    def said() -> bool:
        cluster = look(replica)["cluster"]
        return any(each.startswith("nodes cannot be followed: ") for each in cluster["missing"]) and any(
            each.startswith("Services may have changed since they were seen: ") for each in cluster["remarks"]
        )

    eventually(said, SECONDS, lambda: str(look(replica)["cluster"]))
    site.admin.delete("/api/v1/nodes/a")
    site.create_node("b")
    assert states(look(replica)) == {"a": "served"}
    proxy.remove(away)
    eventually(lambda: states(look(replica)) == {"b": "served"}, SECONDS)
    eventually(lambda: look(replica)["cluster"]["missing"] == look(replica)["cluster"]["remarks"] == [], SECONDS)
    assert [(each["what"], each["node"]) for each in look(replica)["allocations"]][-2:] == [
        ("released", "a"),
        ("given", "b"),
    ]


def test_the_old_way(site: Site) -> None:
    """F4: without pools in the API, the pool of the flags is shown."""
    site.create_node("a", podCIDR="10.7.0.0/24", podCIDRs=["10.7.0.0/24"])
    flags = ("--cidr-allocator-type=RangeAllocator", "--cluster-cidr=10.7.0.0/22", "--leader-elect=false")
    replica = site.run(*flags)
    site.create_node("b")
    eventually(lambda: states(look(replica)) == {"a": "served", "b": "served"}, SECONDS)
    (pool,) = look(replica)["pools"]
    (family,) = pool["families"]
    assert (pool["name"], pool["kind"], pool["state"], pool["nodes"]) == ("--cluster-cidr", "", "active", 2)
    assert (family["range"], family["total"], family["used"], family["free"]) == ("10.7.0.0/22", 4, 2, 2)
    assert [each["range"] for each in look(replica)["ranges"] if each["pools"]] == ["10.7.0.0/22"]
