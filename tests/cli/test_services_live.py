"""`cidrella services` on a cluster, as far as one can be made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cidrella.app.live import read_services
from cidrella.kube.access import load_access
from tests.cli.fake_api import SERVICES as SERVICE_CIDRS
from tests.cli.fake_api import FakeApi, refusal, serving
from tests.cli.service_objects import (
    FLAG,
    KUBERNETES,
    RANGE,
    allocation,
    ip_address,
    lines,
    service,
    service_cidr,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.run import Cidrella

    Json = dict[str, Any]


SERVICES = "/api/v1/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
ALLOCATIONS = "/apis/cidrella.dev/v1alpha1/rangeallocations"


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """A cluster that the environment's kubeconfig leads to, with a range and its own Service."""
    with serving(tmp_path) as running:
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))
        running.collections |= {SERVICE_CIDRS: [RANGE], SERVICES: [KUBERNETES], ADDRESSES: [], ALLOCATIONS: []}
        yield running


def test_from_a_cluster(cidrella: Cidrella, api: FakeApi) -> None:
    """B5, B8: the same from a cluster, which is read and never written; RangeAllocations after the Services."""
    api.collections[SERVICES] += [service("a/web", "10.96.0.20"), service("b/web", "10.96.0.9")]
    api.collections[ADDRESSES].append(ip_address("10.96.0.2", "gateways", "g"))
    api.collections[ALLOCATIONS].append(allocation("10.96.0.0/24", 0, 2, 8, 19))
    result = cidrella("services")
    assert (result.code, result.err) == (0, "")
    assert lines(result)[5:] == [
        "10.96.0.1 static default/kubernetes ClusterIP",
        "10.96.0.2 static gateways a/g - by its IPAddress",
        "10.96.0.3 static - - by its RangeAllocation; no Service has it",
        "10.96.0.9 static b/web ClusterIP",
        "10.96.0.20 dynamic a/web ClusterIP",
    ]
    assert {each.split()[0] for each in api.asked} == {"GET"}
    assert api.asked[-1].endswith("rangeallocations")
    assert cidrella("services", "--next-static", "2").out == "10.96.0.4\n10.96.0.5\n"
    assert cidrella("services", "--check", "10.96.0.3", "--context", "staging").code == 3


def test_a_corrupt_allocation_in_a_cluster(cidrella: Cidrella, api: FakeApi) -> None:
    """B5: data that is no base64 is a warning there, for nobody wrote it by hand."""
    api.collections[ALLOCATIONS] += [allocation("10.96.0.0/24") | {"data": "!"}, {"range": "x"}]
    result = cidrella("services")
    assert result.code == 0
    assert "the RangeAllocation 10.96.0.0-24 is corrupt" in result.err
    assert "RangeAllocation without a name" in result.err


def test_a_service_that_cannot_be_read(cidrella: Cidrella, api: FakeApi) -> None:
    """A Service that makes no sense is said to be so, by its full name, and the others are shown."""
    api.collections[SERVICES].append(service("a/odd") | {"spec": {"clusterIPs": 7}})
    result = cidrella("services")
    assert result.code == 0
    assert "the cluster staging: Service a/odd: cannot be read: spec.clusterIPs: must be a list" in result.err


def test_older_clusters(cidrella: Cidrella, api: FakeApi) -> None:
    """B9: a cluster without ServiceCIDRs, IPAddresses and our CRD is shown by the flag, which is asked for."""
    for path in (SERVICE_CIDRS, ADDRESSES, ALLOCATIONS):
        del api.collections[path]
    result = cidrella("services", FLAG, "10.96.0.0/24")
    assert (result.code, result.err) == (0, "")
    refused = cidrella("services")
    assert refused.code == 2
    assert "the cluster staging has no ServiceCIDR" in words(refused.err)


def test_permissions_that_are_missing(cidrella: Cidrella, api: FakeApi) -> None:
    """Whoever may do nothing learns in one go what to ask for; what is no API server is called that."""
    for path in (SERVICES, SERVICE_CIDRS, ADDRESSES, ALLOCATIONS):
        api.instead[path] = refusal(403, "Forbidden")
    result = cidrella("services")
    assert (result.code, result.out) == (2, "")
    needed = "services, servicecidrs.networking.k8s.io, ipaddresses.networking.k8s.io, rangeallocations.cidrella.dev"
    assert f"the user needs the permission to list {needed}" in result.err
    api.instead = {SERVICES: refusal(404, "NotFound")}
    assert "is no Kubernetes API server: it serves no services" in cidrella("services").err


def test_ten_thousand_services(cidrella: Cidrella, api: FakeApi) -> None:
    """A large cluster is read in pages, with its progress told, and the table stays a screen."""
    api.collections[SERVICE_CIDRS] = [service_cidr("kubernetes", "10.96.0.0/16")]
    api.collections[SERVICES] = [service(f"a/s{n}", f"10.96.{n // 250 + 1}.{n % 250 + 1}") for n in range(10_000)]
    told_progress: list[tuple[int, int]] = []
    read_services(load_access("", ""), lambda done, total: told_progress.append((done, total)))
    assert told_progress[-1] == (10_001, 10_001)
    assert len(told_progress) >= 20
    result = cidrella("services")
    assert lines(result)[2].split()[4:7] == ["65278", "10000", "55278"]
    assert lines(result)[-1] == "and 9960 more; --all lists them"
