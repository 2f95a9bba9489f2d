"""The repairer on the real API server, whose own allocator gives the Services their addresses here."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import TYPE_CHECKING

import pytest

from cidrella.core.prefix import Family
from cidrella.serviceip.errors import OutOfRangeError, UnusableError
from cidrella.serviceip.repairer import Repairer
from tests.real.behind import proxy_before
from tests.real.conftest import KEPT_LOGS
from tests.real.desks import (
    INTERVAL,
    IP_ADDRESSES,
    RANGES,
    SERVICE_CIDRS,
    SETTLE,
    SHORT_LEASE,
    FreezingClient,
    Registry,
    RunningDesk,
    desk_account,
    install,
)
from tests.real.site import eventually
from tests.real.test_without_service_cidrs import FLAGS
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster
from tests.testenv.faults import answer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "10.96.0.0-16"
SMALL = "10.96.0.0/24"
SMALL_NAME = "10.96.0.0-24"
FINALIZER = "cidrella.dev/test"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield an API server of its own: what others leave in the books would be found here."""
    failed_before = request.session.testsfailed
    with Cluster.temporary() as running:
        install(running)
        yield running
        if request.session.testsfailed > failed_before:
            running.copy_logs(KEPT_LOGS)


@pytest.fixture
def registry(cluster: Cluster) -> Iterator[Registry]:
    """Yield the cluster without Services and books."""
    made = Registry(cluster)
    made.clean()
    yield made
    made.clean()


@pytest.fixture
def config(cluster: Cluster, tmp_path: Path) -> Path:
    """Return the kubeconfig of the account that desks run under."""
    return desk_account(cluster, tmp_path)


def test_what_the_books_lack_is_put_back(config: Path, registry: Registry) -> None:
    """B5, B8: Services there are at the start make the books; those that come past the webhook are put back, and told.

    One whose bit is lost later is put back by the next round.
    """
    registry.namespace("shop")
    early = registry.service("shop/early")
    with RunningDesk(config) as running:
        running.ready()
        assert registry.held(NAME) >= {early, "10.96.0.1"}
        assert registry.reasons("early", "shop") == set()
        late = registry.service("shop/late", clusterIP="10.96.7.7")
        eventually(lambda: late in registry.held(NAME))
        eventually(lambda: bool(registry.events("late", "shop")))
        (event,) = registry.events("late", "shop")
        assert event["reason"] == "ClusterIPNotAllocated"
        assert late in event["note"]
        assert event["regarding"]["namespace"] == "shop"
        registry.edit(NAME, data="AQ==")
        eventually(lambda: {early, late} <= registry.held(NAME))
        eventually(lambda: "ClusterIPNotAllocated" in registry.reasons("early", "shop"))


def test_what_a_service_lets_go_is_freed(config: Path, registry: Registry) -> None:
    """B7, B8: the end of a Service, or its change to one without an address, frees what it had, without a round.

    A round that frees would be the third, hours from now.
    """
    with RunningDesk(config, repair_interval=3600.0) as running:
        running.ready()
        gone, changed = registry.service("default/gone"), registry.service("default/changed")
        eventually(lambda: {gone, changed} <= registry.held(NAME))
        registry.remove("default/gone")
        eventually(lambda: gone not in registry.held(NAME))
        patch = {"spec": {"type": "ExternalName", "externalName": "a.example", "clusterIP": "", "clusterIPs": None}}
        registry.admin.patch("/api/v1/namespaces/default/services/changed", patch)
        eventually(lambda: changed not in registry.held(NAME))


def test_nobody_has_it_for_three_rounds(config: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """B8: an address that was given and that no Service came for is freed in the third round, not before."""

    async def no_rounds(_: Repairer) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Repairer, "run", no_rounds)  # they are gone one by one, from here
    with RunningDesk(config) as running:
        running.ready()
        given = running.give("default/never", "10.96.9.9")
        found = []
        for _ in range(3):
            running.call(running.desk._repairer.round)
            found.append(given in registry.held(NAME))
        assert found == [True, True, False]
        assert "10.96.0.1" in registry.held(NAME)


def test_what_cannot_be_mended_is_told(config: Path, registry: Registry) -> None:
    """B8: one address of two Services, and one outside of the range, are events on the Service; nothing is revoked."""
    first = registry.service("default/first", clusterIP="10.96.0.77")
    registry.service("default/outside", clusterIP="10.96.5.5")

    def second() -> bool:
        """The API server gives an address twice only where somebody takes its note of it away."""
        registry.admin.delete(f"{IP_ADDRESSES}/{first}")
        try:
            registry.service("default/second", clusterIP=first)
        except ApiError as error:
            if "already allocated" not in str(error):
                raise
            return False
        return True

    eventually(second)
    with RunningDesk(config, SMALL) as running:
        running.ready()
        eventually(lambda: registry.reasons("second") == {"ClusterIPAlreadyAllocated"})
        eventually(lambda: registry.reasons("outside") == {"ClusterIPOutOfRange"})
        assert registry.reasons("first") == set()
        assert "default/first" in registry.events("second")[0]["note"]
        assert running.desk.ranges.warnings == ()
    found = {each["metadata"]["name"]: each["spec"] for each in registry.admin.items("/api/v1/services")}
    assert [found[name]["clusterIP"] for name in ("first", "second", "outside")] == [first, first, "10.96.5.5"]
    registry.remove("default/second")


def test_an_address_that_is_none(cluster: Cluster, registry: Registry, tmp_path: Path) -> None:
    """B8: what no API server of today lets through, and an older one may have, is an event on the Service."""
    good = registry.service("default/odd")
    listed = registry.admin.get("/api/v1/services")
    for each in listed["items"]:
        if each["metadata"]["name"] == "odd":
            each["spec"] |= {"clusterIP": "10.96.0.900", "clusterIPs": ["10.96.0.900"]}
    with proxy_before(cluster) as proxy:
        proxy.add(answer(200, json.dumps(listed)), method="GET", path=r"^/api/v1/services\?limit=")
        with RunningDesk(desk_account(cluster, tmp_path, proxy.url), SMALL) as running:
            running.ready()
            eventually(lambda: registry.reasons("odd") == {"ClusterIPNotValid"})
    assert registry.admin.get("/api/v1/namespaces/default/services/odd")["spec"]["clusterIP"] == good


@pytest.mark.parametrize(
    "fields",
    [
        {"data": base64.b64encode(b"\1" * 33).decode()},
        {"data": base64.b64encode(b"\x80" + b"\0" * 31).decode()},
        {"range": "10.97.0.0/24"},
    ],
    ids=["wrong length", "bits beyond", "another range"],
)
def test_a_corrupt_object(config: Path, registry: Registry, fields: dict[str, object]) -> None:
    """B5: nothing is given from it, an event says what is wrong, and it is rebuilt from the Services."""
    held = registry.service("default/held", clusterIP="10.96.0.50")
    with RunningDesk(config, SMALL) as running:
        running.ready()
        running.give("default/recent", "10.96.0.60")
        uid = registry.allocation(SMALL_NAME)["metadata"]["uid"]
        registry.edit(SMALL_NAME, **fields)
        with pytest.raises(UnusableError, match="corrupt"):
            running.give("default/refused", "10.96.0.61")
        eventually(lambda: "RangeAllocationCorrupt" in registry.reasons(SMALL_NAME))
        assert running.desk.readiness()
        running.ready()
        assert registry.held(SMALL_NAME) == {"10.96.0.1", held, "10.96.0.60"}
        eventually(lambda: "RangeAllocationRebuilt" in registry.reasons(SMALL_NAME))
        assert registry.allocation(SMALL_NAME)["metadata"]["uid"] == uid
        assert running.give("default/later", "10.96.0.61") == "10.96.0.61"


def test_a_deleted_object(config: Path, registry: Registry) -> None:
    """B5: nothing is given while it is missing, and it is made anew from the Services."""
    held = registry.service("default/held", clusterIP="10.96.0.50")
    with RunningDesk(config, SMALL) as running:
        running.ready()
        began = time.monotonic()
        registry.admin.delete(f"{RANGES}/{SMALL_NAME}")
        with pytest.raises(UnusableError, match="there is no RangeAllocation"):
            running.give("default/refused")
        running.ready()
        eventually(lambda: bool(registry.admin.items(RANGES)))
        assert time.monotonic() - began > SETTLE
        assert registry.held(SMALL_NAME) == {"10.96.0.1", held}
        uid = registry.allocation(SMALL_NAME)["metadata"]["uid"]
        eventually(lambda: uid in {each["regarding"]["uid"] for each in registry.events(SMALL_NAME)})


@pytest.mark.parametrize("now", ["10.96.0.0/25", "10.96.0.0/20"], ids=["shrank", "grew"])
def test_a_range_that_moved(config: Path, registry: Registry, now: str) -> None:
    """B5: the books of the range as it was are not overwritten: a clear error, until somebody deletes them."""
    held = registry.service("default/held", clusterIP="10.96.0.50")
    with RunningDesk(config, SMALL) as running:
        running.ready()
    before = registry.allocation(SMALL_NAME)
    with RunningDesk(config, now) as running:
        eventually(lambda: "is not used" in " ".join(running.desk.readiness()))
        time.sleep(SETTLE + 4 * INTERVAL)
        (words,) = running.desk.readiness()
        assert f"kubectl delete rangeallocation {SMALL_NAME}" in words
        assert registry.admin.items(RANGES) == [before]
        assert registry.reasons("held") == set()
        registry.admin.delete(f"{RANGES}/{SMALL_NAME}")
        running.ready()
        assert registry.held(f"10.96.0.0-{now[-2:]}") == {"10.96.0.1", held}


def test_ranges_that_overlap(config: Path, registry: Registry) -> None:
    """B5: a ServiceCIDR that overlaps one in use is refused in words; what is in use goes on as it is."""
    with RunningDesk(config) as running:
        running.ready()
        registry.service_cidr("inside", "10.96.64.0/24")
        eventually(lambda: bool(running.desk.ranges.refused))
        (refused,) = running.desk.ranges.refused
        assert str(refused).startswith("10.96.64.0/24 of ServiceCIDR inside is not used: it overlaps 10.96.0.0/16")
        time.sleep(SETTLE + 4 * INTERVAL)
        assert [each["metadata"]["name"] for each in registry.admin.items(RANGES)] == [NAME]
        assert running.desk.readiness() == []
        assert running.give("default/any").startswith("10.96.")


def test_a_range_comes_and_goes(config: Path, registry: Registry) -> None:
    """B3: a ServiceCIDR that is added later is used; one that is being deleted gives nothing, and is still repaired."""
    with RunningDesk(config) as running:
        running.ready()
        registry.service_cidr("more", "10.150.0.0/24", "fd00:150::/120", finalizers=(FINALIZER,))
        running.giving(3)
        running.ready()
        assert running.give("default/there", "10.150.0.9") == "10.150.0.9"
        assert running.give("default/six", family=Family.IPV6).startswith("fd00:150::")
        held = registry.service("default/held", clusterIP="10.150.0.20")
        registry.admin.delete(f"{SERVICE_CIDRS}/more")
        eventually(lambda: not all(each.gives for each in running.desk.ranges.known))
        with pytest.raises(OutOfRangeError):
            running.give("default/not", "10.150.0.10")
        eventually(lambda: registry.held("10.150.0.0-24") == {held})
        registry.remove("default/held")
        eventually(lambda: registry.held("10.150.0.0-24") == set())


def test_a_repairer_that_was_asleep(config: Path, registry: Registry) -> None:
    """B6: one that was stopped between its plan and its write, and whose lease another took, frees nothing.

    By then the address is somebody else's.
    """
    with RunningDesk(config, SMALL, client=FreezingClient, identity="first", election=SHORT_LEASE) as first:
        first.ready()
        eventually(lambda: registry.allocation(SMALL_NAME)["repairer"].startswith("first/"))
        with RunningDesk(config, SMALL, identity="second", election=SHORT_LEASE) as second:
            second.ready()
            assert second.give("default/never", "10.96.0.99") == "10.96.0.99"
            assert isinstance(first.client, FreezingClient)
            first.client.frozen = 8.0  # its next write is the one that frees
            eventually(lambda: registry.allocation(SMALL_NAME)["repairer"].startswith("second/"))
            eventually(lambda: "10.96.0.99" not in registry.held(SMALL_NAME))
            registry.service("default/owner", clusterIP="10.96.0.99")
            eventually(lambda: "10.96.0.99" in registry.held(SMALL_NAME))
            version = registry.allocation(SMALL_NAME)["metadata"]["resourceVersion"]
            time.sleep(9.0)  # the first wakes, and finds what it finds
            assert registry.allocation(SMALL_NAME)["metadata"]["resourceVersion"] == version
            assert first.client.frozen == 0.0
            assert first.desk.readiness() == []
        eventually(lambda: registry.allocation(SMALL_NAME)["repairer"].startswith("first/"))
        assert registry.held(SMALL_NAME) == {"10.96.0.1", "10.96.0.99"}


def test_a_server_without_service_cidrs(tmp_path: Path) -> None:
    """B8: by the flag alone, on a server that has neither ServiceCIDRs nor IPAddresses."""
    with Cluster.temporary(flags=FLAGS) as older:
        install(older)
        registry = Registry(older)
        with RunningDesk(desk_account(older, tmp_path), "10.96.0.0/16") as running:
            running.ready()
            held = registry.service("default/held")
            eventually(lambda: registry.held(NAME) == {"10.96.0.1", held})
            eventually(lambda: registry.reasons("held") == {"ClusterIPNotAllocated"})
            running.give("default/never", "10.96.9.9")
            eventually(lambda: registry.held(NAME) == {"10.96.0.1", held})
            registry.remove("default/held")
            eventually(lambda: registry.held(NAME) == {"10.96.0.1"})
