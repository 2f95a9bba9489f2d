"""What a Service will need of addresses: a table of Services and clusters, against what Kubernetes does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.core.address import Address
from cidrella.core.prefix import Family
from cidrella.model.admission import ServiceSpec
from cidrella.serviceip.admission import Left, Plan, Policy, decide, patch

if TYPE_CHECKING:
    from collections.abc import Sequence

V4, V6 = Family.IPV4, Family.IPV6
SINGLE, PREFER, REQUIRE = Policy.SINGLE, Policy.PREFER_DUAL, Policy.REQUIRE_DUAL
NOTHING, INVALID = Left.NEEDS_NOTHING, Left.INVALID
A4, B4 = "10.96.0.10", "10.96.0.11"
A6, B6 = "fd00::a", "fd00::b"


def spec(**fields: Any) -> ServiceSpec:
    """A Service's spec by the names that the API has."""
    return msgspec.convert(fields, ServiceSpec)


def one(*addresses: str, **fields: Any) -> ServiceSpec:
    """One with addresses, as the API has stored it."""
    families = ["IPv6" if ":" in each else "IPv4" for each in addresses]
    policy = "RequireDualStack" if len(addresses) > 1 else "SingleStack"
    stored = {"clusterIP": addresses[0], "clusterIPs": list(addresses), "ipFamilies": families, "type": "ClusterIP"}
    return spec(**{"ipFamilyPolicy": policy, **stored, **fields})


class Case(NamedTuple):
    """A row: what is asked for, and what the cluster's families, the default first, make of it."""

    name: str
    asked: ServiceSpec
    configured: Sequence[Family]
    expected: Plan | Left
    old: ServiceSpec | None = None


def plan(policy: Policy, *addresses: tuple[Family, str], new: tuple[int, ...] | None = None) -> Plan:
    """What is expected: each family with its address, "" for one to be given; all of them new unless it is said."""
    families, texts = zip(*addresses, strict=True)
    return Plan(policy, families, texts, tuple(range(len(families))) if new is None else new)


CREATED = [
    Case("nothing said", spec(), [V4], plan(SINGLE, (V4, ""))),
    Case("nothing said, IPv6", spec(), [V6], plan(SINGLE, (V6, ""))),
    Case("nothing said, both", spec(), [V6, V4], plan(SINGLE, (V6, ""))),
    Case("nulls", spec(clusterIP=None, clusterIPs=None, ipFamilies=None), [V4], plan(SINGLE, (V4, ""))),
    Case("node port", spec(type="NodePort"), [V4, V6], plan(SINGLE, (V4, ""))),
    Case("load balancer", spec(type="LoadBalancer"), [V4, V6], plan(SINGLE, (V4, ""))),
    Case("no such type", spec(type="Cluster"), [V4], INVALID),
    Case("external name", spec(type="ExternalName"), [V4], NOTHING),
    Case("headless", spec(clusterIP="None"), [V4, V6], NOTHING),
    Case("headless, both fields", spec(clusterIP="None", clusterIPs=["None"]), [V4], NOTHING),
    Case("headless, dual", spec(clusterIP="None", ipFamilyPolicy="RequireDualStack"), [V4, V6], NOTHING),
    Case("static", spec(clusterIP=A4), [V4], plan(SINGLE, (V4, A4))),
    Case("static, both fields", spec(clusterIP=A4, clusterIPs=[A4]), [V4, V6], plan(SINGLE, (V4, A4))),
    Case("static, second family", spec(clusterIP=A6), [V4, V6], plan(SINGLE, (V6, A6))),
    Case("static, no such family", spec(clusterIP=A6), [V4], INVALID),
    Case("static, as written", spec(clusterIP="FD00::0:A"), [V6], plan(SINGLE, (V6, "FD00::0:A"))),
    Case("plural alone", spec(clusterIPs=[A4]), [V4], INVALID),
    Case("fields contradict", spec(clusterIP=A4, clusterIPs=[B4]), [V4], INVALID),
    Case("no address", spec(clusterIP="10.96.0.256"), [V4], INVALID),
    Case("empty address", spec(clusterIP=A4, clusterIPs=[A4, ""]), [V4, V6], INVALID),
    Case("None comes second", spec(clusterIP=A4, clusterIPs=[A4, "None"]), [V4, V6], INVALID),
    Case("three", spec(clusterIP=A4, clusterIPs=[A4, A6, B4], ipFamilyPolicy="RequireDualStack"), [V4, V6], INVALID),
    Case(
        "of one family", spec(clusterIP=A4, clusterIPs=[A4, B4], ipFamilyPolicy="RequireDualStack"), [V4, V6], INVALID
    ),
    Case("family", spec(ipFamilies=["IPv6"]), [V4, V6], plan(SINGLE, (V6, ""))),
    Case("family not there", spec(ipFamilies=["IPv6"]), [V4], INVALID),
    Case("family unknown", spec(ipFamilies=["IPv5"]), [V4], INVALID),
    Case("family twice", spec(ipFamilies=["IPv4", "IPv4"], ipFamilyPolicy="PreferDualStack"), [V4, V6], INVALID),
    Case("families without policy", spec(ipFamilies=["IPv4", "IPv6"]), [V4, V6], INVALID),
    Case("addresses without policy", spec(clusterIP=A4, clusterIPs=[A4, A6]), [V4, V6], INVALID),
    Case("family against address", spec(clusterIP=A4, ipFamilies=["IPv6"]), [V4, V6], INVALID),
    Case("policy unknown", spec(ipFamilyPolicy="Both"), [V4, V6], INVALID),
    Case("single", spec(ipFamilyPolicy="SingleStack"), [V6, V4], plan(SINGLE, (V6, ""))),
    Case("prefer, one there", spec(ipFamilyPolicy="PreferDualStack"), [V4], plan(PREFER, (V4, ""))),
    Case("prefer, both there", spec(ipFamilyPolicy="PreferDualStack"), [V4, V6], plan(PREFER, (V4, ""), (V6, ""))),
    Case("prefer, IPv6 first", spec(ipFamilyPolicy="PreferDualStack"), [V6, V4], plan(PREFER, (V6, ""), (V4, ""))),
    Case(
        "prefer, a family",
        spec(ipFamilyPolicy="PreferDualStack", ipFamilies=["IPv6"]),
        [V4, V6],
        plan(PREFER, (V6, ""), (V4, "")),
    ),
    Case("require, one there", spec(ipFamilyPolicy="RequireDualStack"), [V4], INVALID),
    Case("require, both there", spec(ipFamilyPolicy="RequireDualStack"), [V4, V6], plan(REQUIRE, (V4, ""), (V6, ""))),
    Case(
        "require, in order",
        spec(ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv6", "IPv4"]),
        [V4, V6],
        plan(REQUIRE, (V6, ""), (V4, "")),
    ),
    Case(
        "half static",
        spec(clusterIP=A6, clusterIPs=[A6], ipFamilyPolicy="RequireDualStack"),
        [V4, V6],
        plan(REQUIRE, (V6, A6), (V4, "")),
    ),
    Case(
        "half static, one there",
        spec(clusterIP=A4, ipFamilyPolicy="PreferDualStack"),
        [V4],
        plan(PREFER, (V4, A4)),
    ),
    Case(
        "all static",
        spec(clusterIP=A4, clusterIPs=[A4, A6], ipFamilyPolicy="PreferDualStack"),
        [V4, V6],
        plan(PREFER, (V4, A4), (V6, A6)),
    ),
    Case(
        "all static, one there",
        spec(clusterIP=A4, clusterIPs=[A4, A6], ipFamilyPolicy="PreferDualStack"),
        [V4],
        INVALID,
    ),
    Case(
        "family of the first only",
        spec(clusterIP=A4, clusterIPs=[A4, A6], ipFamilies=["IPv4"], ipFamilyPolicy="PreferDualStack"),
        [V4, V6],
        plan(PREFER, (V4, A4), (V6, A6)),
    ),
]
SECOND = plan(REQUIRE, (V4, A4), (V6, ""), new=(1,))
PREFERRED = one(A4, ipFamilyPolicy="PreferDualStack")
CHANGED = [
    Case("as it was", one(A4), [V4, V6], NOTHING, one(A4)),
    Case("left out", spec(type="ClusterIP"), [V4, V6], NOTHING, one(A4)),
    Case("left out, two", spec(), [V4, V6], NOTHING, one(A4, A6)),
    Case("plural left out", spec(clusterIP=A4), [V4, V6], NOTHING, one(A4, A6)),
    Case("another type", one(A4, type="NodePort"), [V4], NOTHING, one(A4)),
    Case("other address", one(B4), [V4], NOTHING, one(A4)),
    Case("to external name", spec(type="ExternalName"), [V4], NOTHING, one(A4)),
    Case("to external name, all kept", one(A4, A6, type="ExternalName"), [V4, V6], NOTHING, one(A4, A6)),
    Case("from external name", spec(), [V4, V6], plan(SINGLE, (V4, "")), spec(type="ExternalName")),
    Case("from external name, static", spec(clusterIP=A4), [V4], plan(SINGLE, (V4, A4)), spec(type="ExternalName")),
    Case("from external name, headless", spec(clusterIP="None"), [V4], NOTHING, spec(type="ExternalName")),
    Case(
        "from external name, dual",
        spec(ipFamilyPolicy="PreferDualStack", clusterIP=A6, type="LoadBalancer"),
        [V4, V6],
        plan(PREFER, (V6, A6), (V4, "")),
        spec(type="ExternalName"),
    ),
    Case("from headless", one(A4), [V4], NOTHING, spec(clusterIP="None", clusterIPs=["None"], ipFamilies=["IPv4"])),
    Case("headless stays", spec(), [V4, V6], NOTHING, spec(clusterIP="None", clusterIPs=["None"])),
    Case("to headless", spec(clusterIP="None"), [V4], NOTHING, one(A4)),
    Case("to dual", one(A4, ipFamilyPolicy="RequireDualStack"), [V4, V6], SECOND, one(A4)),
    Case("to dual, policy alone", spec(ipFamilyPolicy="RequireDualStack"), [V4, V6], SECOND, one(A4)),
    Case(
        "to dual, by preference",
        one(A4, ipFamilyPolicy="PreferDualStack"),
        [V4, V6],
        SECOND._replace(policy=PREFER),
        one(A4),
    ),
    Case("to dual, by preference, one there", one(A4, ipFamilyPolicy="PreferDualStack"), [V4], NOTHING, one(A4)),
    Case("to dual, one there", one(A4, ipFamilyPolicy="RequireDualStack"), [V4], INVALID, one(A4)),
    Case(
        "to dual, family named",
        one(A4, ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv4", "IPv6"]),
        [V4, V6],
        SECOND,
        one(A4),
    ),
    Case(
        "to dual, address named",
        one(A4, A6),
        [V4, V6],
        plan(REQUIRE, (V4, A4), (V6, A6), new=(1,)),
        one(A4),
    ),
    Case("to dual without policy", one(A4, A6, ipFamilyPolicy=None), [V4, V6], INVALID, one(A4)),
    Case("to dual, other first address", one(B4, A6), [V4, V6], INVALID, one(A4)),
    Case(
        "to dual, families turned round",
        one(A4, ipFamilies=["IPv6", "IPv4"], ipFamilyPolicy="RequireDualStack"),
        [V4, V6],
        INVALID,
        one(A4),
    ),
    Case("to single, policy alone", one(A4, A6, ipFamilyPolicy="SingleStack"), [V4, V6], NOTHING, one(A4, A6)),
    Case("to single, all of it", one(A4), [V4, V6], NOTHING, one(A4, A6)),
    Case("to single without policy", one(A4, ipFamilyPolicy=None), [V4, V6], INVALID, one(A4, A6)),
    Case(
        "to single, families only",
        one(A4, A6, ipFamilies=["IPv4"], ipFamilyPolicy="PreferDualStack"),
        [V4, V6],
        INVALID,
        one(A4, A6),
    ),
    Case("preference stays", PREFERRED, [V4, V6], NOTHING, PREFERRED),
    Case(
        "preference stays, two",
        one(A4, A6, ipFamilyPolicy="PreferDualStack"),
        [V4],
        NOTHING,
        one(A4, A6, ipFamilyPolicy="PreferDualStack"),
    ),
    Case(
        "preference, families left out",
        one(A4, ipFamilyPolicy="PreferDualStack", ipFamilies=None),
        [V4, V6],
        SECOND._replace(policy=PREFER),
        PREFERRED,
    ),
    Case(
        "preference, policy left out", one(A4, ipFamilyPolicy=None), [V4, V6], SECOND._replace(policy=PREFER), PREFERRED
    ),
    Case(
        "preference, another type",
        one(A4, ipFamilyPolicy="PreferDualStack", type="NodePort"),
        [V4, V6],
        SECOND._replace(policy=PREFER),
        PREFERRED,
    ),
    Case("stored long ago", spec(ipFamilyPolicy="RequireDualStack"), [V4, V6], SECOND, spec(clusterIP=A4)),
    Case("stored long ago, IPv6", spec(), [V4, V6], NOTHING, spec(clusterIP=A6)),
    Case(
        "stored with zeros",
        spec(ipFamilyPolicy="RequireDualStack"),
        [V4, V6],
        plan(REQUIRE, (V4, "010.96.0.10"), (V6, ""), new=(1,)),
        one("010.96.0.10"),
    ),
]


@pytest.mark.parametrize("case", CREATED, ids=lambda case: case.name)
def test_a_service_that_is_created(case: Case) -> None:
    """B9: families, policy and addresses of a new Service are those that Kubernetes would find."""
    assert decide(case.asked, None, case.configured) == case.expected


@pytest.mark.parametrize("case", CHANGED, ids=lambda case: case.name)
def test_a_service_that_is_changed(case: Case) -> None:
    """B9: a change needs an address where there was none for the family, and none in any other case."""
    assert case.old is not None
    assert decide(case.asked, case.old, case.configured) == case.expected


def test_what_is_asked_of_the_allocator() -> None:
    """B4: an address that is written is asked for, others are any; and what is given goes where it was missing."""
    found = decide(spec(clusterIP=A6, ipFamilyPolicy="RequireDualStack"), None, [V4, V6])
    assert isinstance(found, Plan)
    assert found.wanted == ((V6, Address.parse(A6)), (V4, None))
    assert found.filled([A6, B4]) == (A6, B4)


def test_the_text_of_an_address_stays() -> None:
    """B4: what people wrote is not written anew."""
    found = decide(spec(clusterIP="FD00::0:A"), None, [V6])
    assert isinstance(found, Plan)
    assert found.wanted == ((V6, Address.parse(A6)),)
    assert found.filled([A6]) == ("FD00::0:A",)


def test_the_patch() -> None:
    """B9: both fields are set, whatever they were."""
    first = {"op": "add", "path": "/spec/clusterIP", "value": A4}
    assert json.loads(patch([A4, A6])) == [first, {"op": "add", "path": "/spec/clusterIPs", "value": [A4, A6]}]


TEXTS = st.sampled_from([A4, B4, A6, B6, "None", "", "x"])
SPECS = st.builds(
    spec,
    type=st.sampled_from(["ClusterIP", "NodePort", "ExternalName", None]),
    clusterIP=TEXTS | st.none(),
    clusterIPs=st.lists(TEXTS, max_size=3) | st.none(),
    ipFamilies=st.lists(st.sampled_from(["IPv4", "IPv6", "x"]), max_size=3) | st.none(),
    ipFamilyPolicy=st.sampled_from(["SingleStack", "PreferDualStack", "RequireDualStack", "x", None]),
)


@given(SPECS, SPECS | st.none(), st.sampled_from([[V4], [V6], [V4, V6], [V6, V4]]))
def test_any_service(asked: ServiceSpec, old: ServiceSpec | None, configured: list[Family]) -> None:
    """B9: whatever comes, a plan is one address for each of one or two families, each of its family."""
    found = decide(asked, old, configured)
    if isinstance(found, Plan):
        assert len(found.addresses) == len(found.families) == len(set(found.families)) <= len(configured)
        assert set(found.families) <= set(configured)
        assert found.new
        assert all(address is None or address.family is family for family, address in found.wanted)
        assert all(found.filled(["x"] * len(found.new)))
        assert (len(found.families) == 2) >= (found.policy is REQUIRE)
