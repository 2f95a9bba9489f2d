"""What Service addresses are read from: Services, IPAddresses, ServiceCIDRs, and RangeAllocations in any state."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.prefix import Family, Prefix
from cidrella.model.objects import ObjectMeta
from cidrella.model.serviceip import (
    Grant,
    RangeAllocation,
    SeenIPAddress,
    SeenService,
    SeenServiceCIDR,
    grants_text,
    range_name,
    read_grants,
    read_ip_address,
    read_range_allocation,
    read_service,
    read_service_cidr,
)
from cidrella.model.syntax import name_fault

if TYPE_CHECKING:
    from collections.abc import Callable

META: dict[str, object] = {"name": "x", "uid": "u", "resourceVersion": "7"}
GRANT = Grant(address="10.96.0.1", service="a/b", write="w")


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def allocation(**fields: object) -> bytes:
    return raw({"metadata": META, "range": "10.96.0.0/28", "data": "Aw=="} | fields)


@given(st.sampled_from(Family), st.data())
def test_ranges_have_names_of_their_own(family: Family, data: st.DataObject) -> None:
    """B5: a range's name is a valid one, and the range can be told from it: no two share a name."""
    length = data.draw(st.integers(0, family.bits))
    cidr = Prefix.masked(family, data.draw(st.integers(0, (1 << family.bits) - 1)), length)
    name = range_name(cidr)
    assert not name_fault(name)
    address, _, tail = name.rpartition("-")
    assert Prefix.parse(f"{address.replace('-', ':')}/{tail}") == cidr


def test_range_allocations_come_back_as_they_went() -> None:
    """B5: what is written is read again, and looks as Kubernetes' own does."""
    obj = RangeAllocation(
        metadata=ObjectMeta(name="10.96.0.0-28", annotations={"a": "b"}, resource_version="7"),
        range="10.96.0.0/28",
        data=b"\x03\xff",
        recent=grants_text([GRANT, GRANT._replace(again=True)]),
        writes="v w",
        repairer="r",
    )
    written = msgspec.json.encode(obj)
    assert json.loads(written) == {
        "apiVersion": "cidrella.dev/v1alpha1",
        "kind": "RangeAllocation",
        "metadata": {"name": "10.96.0.0-28", "annotations": {"a": "b"}, "resourceVersion": "7"},
        "range": "10.96.0.0/28",
        "data": "A/8=",
        "recent": "10.96.0.1 a/b w\n10.96.0.1 a/b w again",
        "writes": "v w",
        "repairer": "r",
    }
    assert read_grants(obj.recent) == [GRANT, GRANT._replace(again=True)]
    seen = read_range_allocation(written)
    assert (seen.allocation, seen.problem) == (obj, "")
    assert (seen.name, seen.uid, seen.version) == ("10.96.0.0-28", "", "7")


def test_no_bits_are_bits() -> None:
    """B5: an empty bitmap has no bytes, as in Go, and says so: the field stands there, empty."""
    empty = RangeAllocation(metadata=ObjectMeta(name="x"), range="10.96.0.0/28", data=b"")
    assert json.loads(msgspec.json.encode(empty))["data"] == ""
    assert read_range_allocation(allocation(data="")).allocation == msgspec.structs.replace(
        empty, metadata=msgspec.convert(META, ObjectMeta)
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data": "not base64!"}, "base64"),
        ({"data": "AAA"}, "base64"),
        ({"data": 7}, "$.data"),
        ({"data": None}, "$.data"),
        ({"data": ["AA=="]}, "$.data"),
        ({"range": 7}, "$.range"),
        ({"range": None}, "$.range"),
        ({"recent": ["x"]}, "$.recent"),
        ({"writes": ["w"]}, "$.writes"),
        ({"writes": {}}, "$.writes"),
        ({"repairer": 1}, "$.repairer"),
    ],
)
def test_a_corrupt_one_is_not_a_missing_one(fields: dict[str, object], said: str) -> None:
    """B5, B8: whatever stands in the fields, the object is there, with the version by which it can be replaced."""
    seen = read_range_allocation(allocation(**fields))
    assert seen.allocation is None
    assert said in seen.problem
    assert (seen.name, seen.uid, seen.version) == ("x", "u", "7")


def test_one_without_fields_is_corrupt() -> None:
    """B5, B8: an object with nothing in it is corrupt; fields of others do no harm."""
    assert "range" in read_range_allocation(raw({"metadata": META})).problem
    assert not read_range_allocation(allocation(status={"a": 1}, metadata=META | {"labels": None})).problem


@pytest.mark.parametrize(
    ("spec", "type_", "addresses"),
    [
        ({"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1", "fd00::1"]}, "ClusterIP", ("10.96.0.1", "fd00::1")),
        ({"type": "NodePort", "clusterIP": "10.96.0.1"}, "NodePort", ("10.96.0.1",)),
        ({"clusterIP": "10.96.0.1", "clusterIPs": None}, "ClusterIP", ("10.96.0.1",)),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, "ClusterIP", ()),
        ({"type": "ExternalName", "externalName": "example.com"}, "ExternalName", ()),
        ({"type": "ExternalName", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}, "ExternalName", ()),
        ({"clusterIP": "", "clusterIPs": []}, "ClusterIP", ()),
        ({"clusterIP": "010.96.0.1"}, "ClusterIP", ("010.96.0.1",)),
        ({}, "ClusterIP", ()),
        (None, "ClusterIP", ()),
    ],
)
def test_addresses_of_a_service(spec: object, type_: str, addresses: tuple[str, ...]) -> None:
    """B8: a Service has what stands in clusterIPs, else clusterIP, as it is written; a headless one has nothing."""
    seen = read_service(raw({"metadata": META | {"namespace": "n"}, "spec": spec, "status": {"loadBalancer": {}}}))
    assert seen == SeenService("n/x", "u", type_, addresses)


def test_a_service_that_goes() -> None:
    """B8: a Service that is being deleted says so, and has its addresses until it is gone."""
    meta = META | {"namespace": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    seen = read_service(raw({"metadata": meta, "spec": {"clusterIP": "10.96.0.1"}}))
    assert (seen.terminating, seen.cluster_ips) == (True, ("10.96.0.1",))


@pytest.mark.parametrize(
    ("parent", "who"),
    [
        ({"group": "", "resource": "services", "namespace": "n", "name": "s"}, "n/s"),
        ({"resource": "services", "namespace": "n", "name": "s"}, "n/s"),
        ({"group": "example.com", "resource": "services", "namespace": "n", "name": "s"}, "services n/s"),
        ({"group": "gateway.networking.k8s.io", "resource": "gateways", "name": "g"}, "gateways g"),
        ({}, ""),
        (None, ""),
    ],
)
def test_who_has_an_address(parent: object, who: str) -> None:
    """B8: an IPAddress names the address and who has it: a Service by its name, anything else with its resource."""
    seen = read_ip_address(raw({"metadata": META | {"name": "10.96.0.1"}, "spec": {"parentRef": parent}}))
    assert seen == SeenIPAddress("10.96.0.1", "u", who)
    assert read_ip_address(raw({"metadata": META})) == SeenIPAddress("x", "u", "")


@pytest.mark.parametrize(
    ("conditions", "terminating"),
    [
        (None, False),
        ([], False),
        ([{"type": "Ready", "status": "True"}], False),
        ([{"type": "Other", "status": "False"}], False),
        ([{"type": "Ready", "status": "False"}], True),
        ([{"type": "Ready", "status": "Unknown"}], True),
    ],
)
def test_ranges_that_give(conditions: Any, terminating: bool) -> None:
    """A7: a ServiceCIDR gives unless it goes, or says that it is not ready; silence is assent, as in Kubernetes."""
    meta = META | {"creationTimestamp": "2026-01-01T00:00:00Z"}
    obj = {"metadata": meta, "spec": {"cidrs": ["10.96.0.0/16", "x"]}, "status": {"conditions": conditions}}
    seen = read_service_cidr(raw(obj))
    assert seen[:4] == ("x", "u", "2026-01-01T00:00:00Z", (Prefix.parse("10.96.0.0/16"),))
    assert (len(seen.unreadable), seen.terminating) == (1, terminating)
    going = raw(obj | {"metadata": meta | {"deletionTimestamp": "2026-01-02T00:00:00Z"}})
    assert read_service_cidr(going).terminating
    assert read_service_cidr(raw({"metadata": META})) == SeenServiceCIDR("x", "u", "", ())


@pytest.mark.parametrize("read", [read_range_allocation, read_service, read_ip_address, read_service_cidr])
@pytest.mark.parametrize(
    "text", [b"{}", b'{"metadata":{}}', b'{"metadata":{"name":5}}', b"[]", b'{"metadata":{"name":""}}']
)
def test_what_has_no_name_is_no_object(read: Callable[[bytes], object], text: bytes) -> None:
    """B8: rubbish raises, for there is nobody whom it could be about."""
    with pytest.raises(msgspec.ValidationError):
        read(text)
