"""RangeAllocations on the real API server: what is written comes back, and what is wrong is refused or put right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from cidrella.core.prefix import Prefix
from cidrella.model.objects import ObjectMeta
from cidrella.model.serviceip import (
    RANGE_ALLOCATIONS_PATH,
    Grant,
    RangeAllocation,
    grants_text,
    range_name,
    read_range_allocation,
)
from tests.testenv.client import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import Kubectl
    from tests.testenv.api import Api
    from tests.testenv.client import Client, Json

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rangeallocations.cidrella.dev"
CIDR = "10.99.0.0/24"
NAME = range_name(Prefix.parse(CIDR))
PATH = f"{RANGE_ALLOCATIONS_PATH}/{NAME}"
GOOD = RangeAllocation(
    metadata=ObjectMeta(name=NAME),
    range=CIDR,
    data=b"\x01\xff",
    recent=grants_text([Grant("10.99.0.1", "a/b", "w", again=True)]),
    writes="v w",
    repairer="r",
)


@pytest.fixture
def admin(cluster: Api, kubectl: Kubectl) -> Iterator[Client]:
    """The administrator, on a cluster that knows the kind and has none of that name."""
    yield cluster.admin
    kubectl("delete", "rangeallocation", NAME, "--ignore-not-found")


def as_json(obj: RangeAllocation) -> Json:
    made: Json = json.loads(msgspec.json.encode(obj))
    return made


def test_crd_is_established(cluster: Api, kubectl: Kubectl) -> None:
    """B5: the API server takes the CRD: names accepted, established, nothing wrong with its schema."""
    assert kubectl("get", "rangeallocations").returncode == 0
    conditions = {each["type"]: each["status"] for each in cluster.admin.get(CRD)["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions


@pytest.mark.parametrize("data", [b"", b"\x01\xff", b"\xff" * 32])
def test_what_is_written_comes_back(admin: Client, kubectl: Kubectl, data: bytes) -> None:
    """B5: every field is kept as it was written, also no bits at all; `kubectl get` shows the range."""
    written = msgspec.structs.replace(GOOD, data=data)
    made = read_range_allocation(json.dumps(admin.create(RANGE_ALLOCATIONS_PATH, as_json(written))).encode())
    assert made.allocation is not None
    assert made.version
    assert msgspec.structs.replace(made.allocation, metadata=GOOD.metadata) == written
    assert kubectl("get", "rangeallocation", NAME).stdout.split()[:5] == ["NAME", "RANGE", "AGE", NAME, CIDR]


def test_the_largest_range(admin: Client) -> None:
    """B2, B5: a full IPv4 /12 is stored and read; there is room for what is kept beside it."""
    bits = (1 << ((1 << 20) - 2)) - 1
    full = msgspec.structs.replace(
        GOOD, range="10.96.0.0/12", data=bits.to_bytes(1 << 17, "big"), recent=f"{GOOD.recent}\n" * 256
    )
    seen = read_range_allocation(json.dumps(admin.create(RANGE_ALLOCATIONS_PATH, as_json(full))).encode())
    assert seen.allocation is not None
    assert int.from_bytes(seen.allocation.data, "big") == bits


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"range": "rubbish"}, "must be a range such as"),
        ({"range": "10.99.0.0"}, "must be a range such as"),
        ({"range": None}, "range"),
        ({"range": 7}, "range"),
        ({"data": 7}, "data"),
        ({"data": None}, "data"),
        ({"data": "A" * 174_768}, "data"),
        ({"writes": ["w"]}, "writes"),
        ({"writes": "w" * 20_000}, "writes"),
        ({"recent": ["x"]}, "recent"),
        ({"recent": "x" * 300_000}, "recent"),
        ({"repairer": ["r"]}, "repairer"),
    ],
)
def test_nonsense_is_refused(admin: Client, fields: Json, said: str) -> None:
    """B5: what no reader could make anything of is refused, on the way in and later, and the field is named."""
    with pytest.raises(ApiError) as refused:
        admin.create(RANGE_ALLOCATIONS_PATH, as_json(GOOD) | fields)
    assert refused.value.code == 422
    assert said in refused.value.message
    admin.create(RANGE_ALLOCATIONS_PATH, as_json(GOOD))
    with pytest.raises(ApiError):
        admin.patch(PATH, fields)


@pytest.mark.parametrize(
    ("fields", "readable"),
    [
        ({"data": "not base64!"}, False),
        ({"data": "AAA"}, False),
        ({"data": "/" * 4_000}, True),
        ({"range": "10.98.0.0/24"}, True),
        ({"range": "10.99.0.7/24"}, True),
        ({"recent": "x"}, True),
    ],
)
def test_what_gets_in_can_be_read_and_put_right(admin: Client, fields: Json, readable: bool) -> None:
    """B5, B8: whatever the API server lets in is read, if only as corrupt, and replaced by the version read."""
    admin.create(RANGE_ALLOCATIONS_PATH, as_json(GOOD) | fields)
    seen = read_range_allocation(json.dumps(admin.get(PATH)).encode())
    assert (seen.allocation is not None, not seen.problem) == (readable, readable)
    repaired = msgspec.structs.replace(GOOD, metadata=seen.metadata)
    admin.replace(PATH, as_json(repaired))
    again = read_range_allocation(json.dumps(admin.get(PATH)).encode())
    assert again.allocation is not None
    assert (again.allocation.range, again.allocation.data, again.uid) == (GOOD.range, GOOD.data, seen.uid)
    with pytest.raises(ApiError) as lost:
        admin.replace(PATH, as_json(repaired))
    assert lost.value.code == 409
