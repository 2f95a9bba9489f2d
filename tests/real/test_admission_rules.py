"""What `serviceip.admission` decides is what the API server itself does, of Services that are made up by the hundred.

No webhook is there: each Service is sent as a dry run, and what becomes of it is compared with what was decided. Then
it is sent once more with the addresses that the webhook would have put in, which have to be taken as they are.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import pytest

from cidrella.core.prefix import Family
from cidrella.model.admission import ServiceSpec
from cidrella.serviceip.admission import Left, Plan, decide
from tests.testenv.client import ApiError
from tests.testenv.cluster import WITHOUT_AUDIT, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.testenv.client import Client, Json

SERVICES = "/api/v1/namespaces/default/services"
RANGES = {Family.IPV4: "10.96.0.0/16", Family.IPV6: "fd00:96::/112"}
GIVEN = {Family.IPV4: "10.96.7.7", Family.IPV6: "fd00:96::707"}
"""What the webhook would give."""
ADDRESSES = ("10.96.7.1", "10.96.7.2", "fd00:96::701", "fd00:96::702")
CREATED, CHANGED = 400, 80
"""How many are tried: as new ones, and as what each Service that there is changes to."""


class Configured(NamedTuple):
    """An API server, and the families that it has, the default first."""

    admin: Client
    families: tuple[Family, ...]


@pytest.fixture(
    scope="module",
    params=[(Family.IPV4,), (Family.IPV4, Family.IPV6), (Family.IPV6, Family.IPV4)],
    ids=lambda families: "+".join(map(str, families)),
)
def configured(request: pytest.FixtureRequest) -> Iterator[Configured]:
    """An API server of its own, for each way to configure one."""
    flags = {**WITHOUT_AUDIT, "service-cluster-ip-range": ",".join(RANGES[each] for each in request.param)}
    if request.param[0] is Family.IPV6:
        flags |= {"advertise-address": "fd00:1::1"}  # has to be of the first family; nobody goes there
    with Cluster.temporary(flags=flags) as cluster:
        yield Configured(cluster.admin, request.param)


def test_created(configured: Configured) -> None:
    """B9: families, policy and addresses of new Services are as Kubernetes has them, whatever is asked for."""
    rng = random.Random(3070)
    seen: Counter[str] = Counter()
    for number in range(CREATED):
        spec = made_up(rng)
        decided = decide(read(spec), None, configured.families)
        stored = attempt(configured.admin, "POST", SERVICES, f"s{number}", spec)
        compare(decided, stored, spec, before=())
        if isinstance(decided, Plan):
            again = attempt(configured.admin, "POST", SERVICES, f"s{number}", with_addresses(spec, decided))
            assert_taken(again, decided, spec)
        seen[kind_of(decided)] += 1
    assert min(seen[each] for each in ("1 of 1", "invalid", "nothing")) >= 20, seen
    assert len(configured.families) == 1 or seen["2 of 2"] >= 20, seen


@pytest.mark.parametrize(
    "old",
    [
        {"type": "ExternalName", "externalName": "example.com"},
        {"ipFamilyPolicy": "SingleStack"},
        {"ipFamilyPolicy": "PreferDualStack"},
        {"ipFamilyPolicy": "RequireDualStack"},
        {"ipFamilies": ["IPv6"]},
        {"clusterIP": "None"},
        {"type": "NodePort"},
    ],
    ids=lambda old: " ".join(map(str, old.values())),
)
def test_changed(configured: Configured, old: Json) -> None:
    """B9: what an update leaves out, and what it adds, is as Kubernetes has it; the first address stays for life."""
    if len(configured.families) < 2 and ("Require" in str(old) or "IPv6" in str(old)):
        return  # no such Service can be there
    rng = random.Random(repr(old))
    stored = configured.admin.create(SERVICES, {"metadata": {"name": "old"}, "spec": {"ports": [{"port": 80}], **old}})
    before = stored["spec"]
    addresses = tuple(before.get("clusterIPs", ()))
    try:
        for _ in range(CHANGED):
            spec = made_up(rng, addresses)
            decided = decide(read(spec), read(before), configured.families)
            replaced = attempt(configured.admin, "PUT", f"{SERVICES}/old", "old", spec)
            compare(decided, replaced, spec, before=addresses)
            if isinstance(decided, Plan):
                again = attempt(configured.admin, "PUT", f"{SERVICES}/old", "old", with_addresses(spec, decided))
                assert_taken(again, decided, spec)
    finally:
        configured.admin.delete(f"{SERVICES}/old")


def made_up(rng: random.Random, mine: Sequence[str] = ()) -> Json:
    """A spec that may make sense or not; `mine` are addresses that it has already."""
    known = [*ADDRESSES, *mine, *mine]
    spec: Json = {}
    if (kind := rng.choice(["", "", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])) != "":
        spec["type"] = kind
    if kind == "ExternalName":
        spec["externalName"] = "example.com"
    if rng.random() < 0.5:
        spec["ipFamilyPolicy"] = rng.choice(["SingleStack", "PreferDualStack", "RequireDualStack"])
    if rng.random() < 0.35:
        spec["ipFamilies"] = rng.choice([["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv4", "IPv4"]])
    if rng.random() < 0.5:
        count = rng.choice([1, 1, 2])
        chosen = rng.sample(known, count) if rng.random() < 0.85 else rng.choice([["None"], ["10.96.7.256"]])
        if rng.random() < 0.9:
            spec["clusterIP"] = chosen[0]
        if rng.random() < 0.6:
            spec["clusterIPs"] = list(chosen) if rng.random() < 0.9 else [rng.choice(known)]
    if rng.random() < 0.5:
        spec["selector"] = {"app": "web"}
    return spec


def read(spec: Json) -> ServiceSpec:
    return msgspec.convert(spec, ServiceSpec)


def attempt(client: Client, method: str, path: str, name: str, spec: Json) -> Json | None:
    """The spec as it would be stored; None for what is not: refused as invalid, or beyond what it can handle.

    kube-apiserver 1.36 panics at a Service with an address that turns headless, and dual-stack where it has one family.
    """
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    body["spec"] = {"ports": [{"port": 80}], **spec}
    try:
        stored = client.request(method, path, body, parameters={"dryRun": "All"})
    except ApiError as error:
        if (error.code, error.reason) == (422, "Invalid"):
            return None
        raise
    except ConnectionError:
        return None
    found: Json = stored["spec"]
    return found


def compare(decided: Plan | Left, stored: Json | None, spec: Json, before: Sequence[str]) -> None:
    """Hold a decision against what the API server did."""
    if stored is None:
        assert isinstance(decided, Left), (decided, spec)
        return
    # Whatever an update to ExternalName says of addresses is stored as it is, and given to nobody.
    given = stored.get("clusterIPs", ()) if stored["type"] != "ExternalName" else ()
    addresses = [each for each in given if each != "None"]
    fresh = tuple(place for place, each in enumerate(addresses) if each not in before)
    if not fresh:
        assert decided is Left.NEEDS_NOTHING, (decided, spec, stored)
        return
    assert isinstance(decided, Plan), (decided, spec, stored)
    assert decided.new == fresh, (decided, spec, stored)
    assert_families(decided, stored, spec)
    for place, written in enumerate(decided.addresses):
        assert written in {"", addresses[place]}, (decided, spec, stored)


def assert_families(decided: Plan, stored: Json, spec: Json) -> None:
    assert [str(each) for each in decided.families] == stored["ipFamilies"], (decided, spec, stored)
    assert decided.policy.value == stored["ipFamilyPolicy"], (decided, spec, stored)


def with_addresses(spec: Json, decided: Plan) -> Json:
    """As the webhook would have changed it."""
    addresses = filled(decided)
    return {**spec, "clusterIP": addresses[0], "clusterIPs": addresses}


def filled(decided: Plan) -> list[str]:
    return list(decided.filled([GIVEN[decided.families[each]] for each in decided.new]))


def assert_taken(stored: Json | None, decided: Plan, spec: Json) -> None:
    """What the webhook put in is what the Service gets, and nothing else becomes of it."""
    assert stored is not None, (decided, spec)
    assert stored["clusterIPs"] == filled(decided), (decided, spec, stored)
    assert stored["clusterIP"] == stored["clusterIPs"][0]
    assert_families(decided, stored, spec)


def kind_of(decided: Plan | Left) -> str:
    if isinstance(decided, Plan):
        return f"{len(decided.new)} of {len(decided.families)}"
    return "invalid" if decided is Left.INVALID else "nothing"
