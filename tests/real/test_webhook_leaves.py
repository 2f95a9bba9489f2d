"""What the webhook leaves to Kubernetes: it denies nothing that Kubernetes would accept."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import KEPT_LOGS
from tests.real.site import eventually
from tests.real.webhook import EVENTS, RANGES, SERVICES, WebhookSite
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANGE = "10.97.0.0/28"
WIDER = "10.97.0.0/24"
USABLE = [str(each) for each in ip_network(RANGE).hosts()]
LARGE = "fd00:97::/108"
CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
NO_PORT = {"ports": [{"port": 99_999}]}
RARELY = "--repair-interval=1m"
"""So that what was given for nothing is not freed during a test."""


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WebhookSite]:
    """Yield the webhook in a cluster of its own, without replicas; its range is the test's parameter."""
    failed_before = request.session.testsfailed
    with (
        Cluster.temporary(flags={"service-cluster-ip-range": getattr(request, "param", RANGE)}) as cluster,
        WebhookSite(cluster, tmp_path) as made,
    ):
        yield made
        made.copy_logs(KEPT_LOGS)
        if request.session.testsfailed > failed_before:
            cluster.copy_logs(KEPT_LOGS)


def refuse(site: WebhookSite, name: str, **spec: str) -> None:
    """Have the webhook give an address to a Service that the API server then refuses for its port."""
    with pytest.raises(ApiError, match=r"spec\.ports"):
        site.create(name, **NO_PORT, **spec)


def add_cidr(site: WebhookSite, name: str, cidr: str) -> None:
    """Add a ServiceCIDR."""
    site.admin.create(CIDRS, {"metadata": {"name": name}, "spec": {"cidrs": [cidr]}})


def test_addresses_of_services_that_were_never_stored(site: WebhookSite) -> None:
    """B3, B4: neither a chosen address that was spent on one, nor a range that is full of such, keeps anybody out."""
    site.run(2, RARELY)
    chosen, other = sorted(free(site))[:2]
    refuse(site, "squat", clusterIP=chosen)
    assert site.create("dns", clusterIP=chosen) == [chosen]
    assert "default/dns" not in site.patched()
    with pytest.raises(ApiError, match=f"{re.escape(chosen)} is taken by the Service default/dns"):
        site.create("another", clusterIP=chosen)
    unnamed = {"metadata": {"generateName": "gen-"}}
    with pytest.raises(ApiError, match=r"spec\.ports"):
        site.admin.create(SERVICES, {**unnamed, "spec": {**NO_PORT, "clusterIP": other}})
    made = site.admin.create(SERVICES, {**unnamed, "spec": {"ports": [{"port": 80}], "clusterIP": other}})
    assert made["spec"]["clusterIP"] == other
    for number in range(2 * len(USABLE)):
        refuse(site, f"hot-{number}")
    assert site.booked() == set(USABLE)
    left = free(site)
    for number in range(len(left)):
        (address,) = site.create(f"served-{number}")
        left.remove(address)
    eventually(lambda: "no address is free" in denied(site), explain=site.tail)


def free(site: WebhookSite) -> set[str]:
    """The addresses that no Service has: the webhook's own was given one at random."""
    return set(USABLE) - {address for held in site.addresses().values() for address in held}


def denied(site: WebhookSite) -> str:
    """What the webhook, or the API server, says to one more."""
    with pytest.raises(ApiError) as raised:
        site.create("one-more")
    return raised.value.message


def test_ranges_that_come_later(site: WebhookSite) -> None:
    """B3, B4, B9: one that is not used, one that is not ready, one of a family that the cluster has not."""
    site.run(1)
    add_cidr(site, "six", "fd00:99::/112")
    add_cidr(site, "second", "10.98.0.0/24")
    eventually(lambda: site.tail().count('"gives":true') == 3, explain=site.tail)
    assert site.create("at-once", clusterIP="10.98.0.9") == ["10.98.0.9"]
    eventually(lambda: "10.98.0.9" in site.booked(), explain=site.tail)
    (address,) = site.create("prefers", ipFamilyPolicy="PreferDualStack")
    assert ":" not in address
    with pytest.raises(ApiError, match=r"spec\.ipFamilyPolicy"):
        site.create("requires", ipFamilyPolicy="RequireDualStack")
    site.admin.delete(f"{CIDRS}/second")
    add_cidr(site, "wider", WIDER)
    eventually(lambda: f'"cidr":"{WIDER}"' in site.tail(), explain=site.tail)
    given = {address for number in range(2 * len(USABLE)) for address in site.create(f"s-{number}")}
    assert len(given) == 2 * len(USABLE)
    assert not given <= set(USABLE)
    assert site.replicas[0].get("/readyz")[0] == 200


@pytest.mark.parametrize("site", [f"10.97.0.0/24,{LARGE}"], indirect=True)
def test_a_large_ipv6_range(site: WebhookSite) -> None:
    """B2, B8: the API server gives more of it than is kept here; such addresses are let through and not spoken of."""
    six = {"ipFamilies": ["IPv6"]}
    assert site.create("before", **six, clusterIP="fd00:97::5:1") == ["fd00:97::5:1"]
    site.run(1)
    assert site.create("after", **six, clusterIP="fd00:97::5:2") == ["fd00:97::5:2"]
    site.delete("before")
    assert site.create("before", **six, clusterIP="fd00:97::5:1") == ["fd00:97::5:1"]
    with pytest.raises(ApiError, match=r"fd00:97::10:1 is no usable address of a range of Services"):
        site.create("out", **six, clusterIP="fd00:97::10:1")
    (drawn,) = site.create("drawn", **six)
    assert site.patched()["default/drawn"] == [[drawn]]
    (books,) = (each for each in site.admin.items(RANGES) if each["range"] == LARGE)
    site.admin.patch(f"{RANGES}/{books['metadata']['name']}", {"data": ""})
    eventually(lambda: reasons(site, "drawn") == {"ClusterIPNotAllocated"}, explain=site.tail)  # a round is through
    assert reasons(site, "before") == reasons(site, "after") == set()


def reasons(site: WebhookSite, name: str) -> set[str]:
    """Of the webhook's events on a Service."""
    events = [each for each in site.admin.items(EVENTS) if each["regarding"]["name"] == name]
    return {each["reason"] for each in events if each["reportingController"] == "cidrella.dev/services"}
