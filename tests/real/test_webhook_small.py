"""Where there is little room: a band that is exhausted, a range that is full, addresses that others have."""

from __future__ import annotations

import base64
import shutil
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.conftest import KEPT_LOGS, Kubectl
from tests.real.site import eventually
from tests.real.webhook import CONFIGURATION, EVENTS, IP_ADDRESSES, RANGES, SERVICES, WebhookSite, offset, service
from tests.testenv.client import ApiError
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RANGE = "10.97.0.0/26"
WIDER = "10.97.0.0/25"
STATIC = 16
USABLE_WIDER = 126
USABLE = [str(each) for each in ip_network(RANGE).hosts()]


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield an API server of its own with 62 addresses for Services: 16 in the static band, 46 in the dynamic one."""
    failed_before = request.session.testsfailed
    with Cluster.temporary(flags={"service-cluster-ip-range": RANGE}) as running:
        yield running
        if request.session.testsfailed > failed_before:
            running.copy_logs(KEPT_LOGS)


@pytest.fixture(scope="module")
def installed(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """Yield the webhook, without replicas."""
    with WebhookSite(cluster, tmp_path_factory.mktemp("webhook")) as made:
        yield made


@pytest.fixture
def site(installed: WebhookSite) -> Iterator[WebhookSite]:
    """Yield the webhook for one test, without the Services of others."""
    yield installed
    installed.copy_logs(KEPT_LOGS)
    installed.stop()
    for each in installed.admin.items(SERVICES):
        if each["metadata"]["name"] != "kubernetes":
            installed.delete(each["metadata"]["name"])


def free(site: WebhookSite) -> set[str]:
    """The addresses that no Service has."""
    return set(USABLE) - {address for held in site.addresses().values() for address in held}


def places(addresses: set[str]) -> tuple[set[str], set[str]]:
    """Those of the static band, and those of the dynamic one."""
    static = {each for each in addresses if offset(each, RANGE) < STATIC}
    return static, addresses - static


def test_from_band_to_band_until_it_is_full(site: WebhookSite) -> None:
    """B3: the dynamic band to its end, then the static one, then words that say so; and on, once there is room."""
    site.run(2)
    site.wait_books()
    static, dynamic = places(free(site))
    kubectl = Kubectl(site.cluster.kubectl_path, site.cluster.kubeconfig)
    with ThreadPoolExecutor(8) as threads:
        given = [each for (each,) in threads.map(lambda n: site.create(f"upper-{n}"), range(len(dynamic)))]
        assert sorted(given) == sorted(dynamic)
        given = [each for (each,) in threads.map(lambda n: site.create(f"lower-{n}"), range(len(static)))]
        assert sorted(given) == sorted(static)
    assert free(site) == set()
    full = kubectl("create", "-f", "-", stdin=yaml.safe_dump(service("one-more")))
    assert full.returncode == 1
    assert f"no address is free in {RANGE}" in full.stderr
    patched = site.patched()
    assert all(patched[name] == [held] for name, held in site.addresses().items() if "er-" in name)
    site.delete("upper-3")
    eventually(lambda: bool(places(site.booked())) and len(site.booked()) == len(USABLE) - 1)
    assert site.create("one-more") == [given_to(patched, "upper-3")]
    site.wait_books()


def given_to(patched: dict[str, list[list[str]]], name: str) -> str:
    """The address that the webhook put into a Service."""
    ((address,),) = patched[f"default/{name}"]
    return address


def test_addresses_with_an_object_are_never_given(site: WebhookSite) -> None:
    """B3: an IPAddress that exists counts as taken, whoever made it and whatever the bitmap says."""
    site.run(1)
    site.wait_books()
    _, dynamic = places(free(site))
    left = set(sorted(dynamic)[::8])
    for each in dynamic - left:
        parent = {"group": "example.com", "resource": "gateways", "namespace": "default", "name": "gate"}
        site.admin.create(IP_ADDRESSES, {"metadata": {"name": each}, "spec": {"parentRef": parent}})
    try:
        eventually(lambda: len(taken(site, dynamic - left)) == 1)
        given = {address for number in range(len(left)) for address in site.create(f"between-{number}")}
        assert given == left
        (below,) = site.create("below")
        assert offset(below, RANGE) < STATIC
        assert all(site.patched()[f"default/between-{number}"] for number in range(len(left)))
    finally:
        for each in dynamic - left:
            site.admin.delete(f"{IP_ADDRESSES}/{each}")


def taken(site: WebhookSite, addresses: set[str]) -> set[str]:
    """One of the addresses, if the webhook says that it is taken."""
    last = max(addresses, key=lambda each: offset(each, RANGE))
    try:
        site.admin.create(SERVICES, service("asking", clusterIP=last), dryRun="All")
    except ApiError as error:
        return {last} if f"{last} is taken" in error.message and "admission webhook" in error.message else set()
    return set()


def test_a_corrupt_object_is_rebuilt(site: WebhookSite) -> None:
    """B5, B8: with bits beyond its range it is not used; an event says so, and it is made anew from the Services."""
    site.run(1)
    held = [site.create(f"kept-{number}") for number in range(5)]
    site.wait_books()
    (stored,) = site.admin.items(RANGES)
    beyond = base64.b64encode(b"\xff" * 8).decode()
    site.admin.patch(f"{RANGES}/{stored['metadata']['name']}", {"data": beyond})
    eventually(lambda: {each for (each,) in held} <= site.booked() <= set(USABLE), explain=site.tail)
    eventually(lambda: {"RangeAllocationCorrupt", "RangeAllocationRebuilt"} <= reasons(site))
    site.wait_asked()
    assert [site.create("another")] == site.patched()["default/another"]
    site.wait_books()


def reasons(site: WebhookSite) -> set[str]:
    """Of the events on RangeAllocations."""
    return {each["reason"] for each in site.admin.items(EVENTS) if each["regarding"]["kind"] == "RangeAllocation"}


def test_certificates_from_files(site: WebhookSite, tmp_path: Path) -> None:
    """Files that are replaced under way are shown from then on, with no restart and no request lost."""
    authority = site.cluster.authority
    bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
    site.configure(clientConfig={"caBundle": bundle})
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def renew(name: str) -> None:
        made = authority.server(name)
        shutil.copy(made.certificate, certificate)
        shutil.copy(made.key, key)

    renew("webhook-first")
    site.run(1, f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
    (replica,) = site.replicas
    shown = replica.certificate()
    assert [site.create("first")] == site.patched()["default/first"]
    renew("webhook-second")
    eventually(lambda: replica.certificate() != shown, explain=site.tail)
    assert [site.create("second")] == site.patched()["default/second"]
    assert replica.process.ended is None
    assert site.admin.get(CONFIGURATION)["webhooks"][0]["clientConfig"]["caBundle"] == bundle


def test_what_the_api_server_refuses_is_learnt(site: WebhookSite) -> None:
    """B6: an address that it does not take is not tried twice; the next attempt has another, until one is taken.

    Here it refuses more than half of what the webhook draws, which was told of a wider range.
    """
    for each in site.admin.items(RANGES):
        site.admin.delete(f"{RANGES}/{each['metadata']['name']}")
    site.run(1, f"--service-cluster-ip-range={WIDER}", "--repair-interval=1m")
    tried: list[str] = []
    for number in range(10):
        while not (address := attempt(site, f"stubborn-{number}", tried)):
            assert len(tried) < USABLE_WIDER
        assert address in USABLE
    assert tried, "nothing was refused"
    assert len(tried) == len(set(tried))
    assert set(tried) <= site.booked()


def attempt(site: WebhookSite, name: str, tried: list[str]) -> str:
    """The address of a new Service; nothing if the API server refused the one it was given, which is noted down."""
    try:
        (address,) = site.create(name)
    except ApiError as error:
        tried.append(next(each for each in map(str, ip_network(WIDER)) if f'"{each}"' in error.message))
        return ""
    return address


def test_ranges_that_do_not_fit_what_is_stored(site: WebhookSite) -> None:
    """B5: a range that overlaps the books of another is not used, which is said, and nothing is overwritten.

    What is said to be done about it can be done while Services come and go: they keep their addresses.
    """
    (before,) = site.admin.items(RANGES)
    assert before["range"] == WIDER  # from the test before
    replica = site.replica()
    replica.process.start()
    words = f"{RANGE} of ServiceCIDR kubernetes is not used: it overlaps {WIDER}"
    eventually(lambda: words in replica.get("/readyz")[1], explain=site.tail)
    (address,) = site.create("meanwhile")
    assert "default/meanwhile" not in site.patched()
    assert address in USABLE
    assert site.admin.items(RANGES) == [before]
    name = before["metadata"]["name"]
    assert f"kubectl delete rangeallocation {name})" in replica.get("/readyz")[1]
    held = site.addresses()
    site.admin.delete(f"{RANGES}/{name}")
    held["default/later"] = site.create("later")
    site.wait_asked()
    assert [each["range"] for each in site.admin.items(RANGES)] == [RANGE]
    site.wait_books()
    assert site.addresses() == held


def test_nothing_was_denied(installed: WebhookSite) -> None:
    """In all of this, the webhook asked for nothing that `deploy/webhook` does not allow."""
    assert installed.forbidden() == []
