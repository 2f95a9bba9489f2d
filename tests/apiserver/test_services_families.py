"""The families of Services, as a real API server decides them, in clusters that have one family or two."""

from __future__ import annotations

from typing import Any

import pytest

from cidrella.apiserver.services.families import fill_families
from cidrella.core.prefix import Family
from tests.apiserver.kinds import kind, read, told

Json = dict[str, Any]

SERVICES = kind("services")
ONE = (Family.IPV4,)
TWO = (Family.IPV4, Family.IPV6)
FOUR, SIX, BOTH, TURNED = ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"
ANYTHING: Json = {"clusterIP": "None"}
SELECTING: Json = {"clusterIP": "None", "selector": {"a": "b"}}
NOT_TWO = f'spec.ipFamilyPolicy: Invalid value: "{REQUIRE}": this cluster is not configured for dual-stack services'
CONTRADICTION = (
    f'spec.ipFamilyPolicy: Invalid value: "{SINGLE}": '
    "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
)


def absent(place: int) -> str:
    """The fault of a family that the cluster does not have."""
    return f'spec.ipFamilies[{place}]: Invalid value: "IPv6": not configured on this cluster'


def spec_of(**fields: Any) -> Json:
    """A spec as it is created."""
    obj = read(SERVICES, spec={"ports": [{"port": 80}], **fields})
    SERVICES.strategy.prepare_create(obj)
    return obj["spec"]  # type: ignore[no-any-return]


def decide(configured: tuple[Family, ...], **fields: Any) -> tuple[str, list[str]] | list[str]:
    """The policy and the families of a new Service, or what is wrong with it."""
    spec = spec_of(**{name: value for name, value in fields.items() if value is not None})
    if faults := fill_families(spec, None, configured):
        return told(faults)
    return spec["ipFamilyPolicy"], spec["ipFamilies"]


@pytest.mark.parametrize(
    ("policy", "families", "one", "two"),
    [
        (None, None, (SINGLE, FOUR), (SINGLE, FOUR)),
        (None, SIX, [absent(0)], (SINGLE, SIX)),
        (None, BOTH, [CONTRADICTION], [CONTRADICTION]),
        (SINGLE, None, (SINGLE, FOUR), (SINGLE, FOUR)),
        (SINGLE, TURNED, [CONTRADICTION], [CONTRADICTION]),
        (PREFER, None, (PREFER, FOUR), (PREFER, BOTH)),
        (PREFER, SIX, [absent(0)], (PREFER, TURNED)),
        (PREFER, BOTH, [absent(1)], (PREFER, BOTH)),
        (REQUIRE, None, [NOT_TWO], (REQUIRE, BOTH)),
        (REQUIRE, SIX, [NOT_TWO, absent(0)], (REQUIRE, TURNED)),
    ],
)
@pytest.mark.parametrize("kind_of", [{}, SELECTING], ids=["plain", "headless"])
def test_policies(kind_of: Json, policy: str | None, families: list[str] | None, one: Any, two: Any) -> None:
    """The policy says how many; what it does not say is the cluster's default. A headless Service is no other."""
    assert decide(ONE, **kind_of, ipFamilyPolicy=policy, ipFamilies=families) == one
    assert decide(TWO, **kind_of, ipFamilyPolicy=policy, ipFamilies=families) == two


@pytest.mark.parametrize(
    ("policy", "families", "expected"),
    [
        (None, None, (REQUIRE, BOTH)),
        (None, SIX, (REQUIRE, TURNED)),
        (SINGLE, None, (SINGLE, FOUR)),
        (SINGLE, SIX, (SINGLE, SIX)),
        (SINGLE, BOTH, [CONTRADICTION]),
        (PREFER, None, (PREFER, BOTH)),
        (REQUIRE, TURNED, (REQUIRE, TURNED)),
    ],
)
@pytest.mark.parametrize("configured", [ONE, TWO])
def test_nobody_selected(
    configured: tuple[Family, ...], policy: str | None, families: list[str] | None, expected: Any
) -> None:
    """A headless Service that selects no Pods has both families, whatever the cluster has."""
    assert decide(configured, **ANYTHING, ipFamilyPolicy=policy, ipFamilies=families) == expected


def test_families_of_addresses() -> None:
    """Addresses that are named say which families."""
    assert decide(TWO, clusterIP="fd00::7") == (SINGLE, SIX)
    assert decide(ONE, clusterIP="fd00::7") == [
        'spec.clusterIPs[0]: Invalid value: ["fd00::7"]: IPv6 is not configured on this cluster'
    ]
    both = {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"]}
    assert decide(TWO, **both, ipFamilyPolicy=PREFER) == (PREFER, BOTH)
    assert decide(ONE, **both) == [
        f'spec.ipFamilyPolicy: Invalid value: "{SINGLE}": '
        "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
        'spec.clusterIPs[1]: Invalid value: ["10.96.0.7","fd00::7"]: IPv6 is not configured on this cluster',
    ]


def test_faults_come_first() -> None:
    """Fields that contradict each other are told before anything is made of them."""
    assert decide(ONE, clusterIP="10.96.0.7", ipFamilies=SIX) == [
        'spec.clusterIPs[0]: Invalid value: "10.96.0.7": expected an IPv6 value as indicated by `ipFamilies[0]`'
    ]


def test_external_names() -> None:
    """An ExternalName has no families."""
    spec = spec_of(type="ExternalName", externalName="a.b")
    before = dict(spec)
    assert fill_families(spec, None, TWO) == []
    assert spec == before


class TestUpdates:
    """What becomes of the families of a Service that is there."""

    def change(
        self, old: Json, configured: tuple[Family, ...] = TWO, **fields: Any
    ) -> tuple[str, list[str], list[str]] | list[str]:
        new = {**old, **fields}
        new = {name: value for name, value in new.items() if value is not None}
        if faults := fill_families(new, old, configured):
            return told(faults)
        return new["ipFamilyPolicy"], new["ipFamilies"], new["clusterIPs"]

    def single(self, **fields: Any) -> Json:
        """A Service with one family."""
        given = {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}
        return spec_of(**{**given, "ipFamilies": FOUR, "ipFamilyPolicy": SINGLE, **fields})

    def dual(self, policy: str = PREFER) -> Json:
        """A Service with two."""
        return self.single(clusterIPs=["10.96.0.9", "fd00::9"], ipFamilies=BOTH, ipFamilyPolicy=policy)

    def test_policy_stays(self) -> None:
        """What is left out is as it was."""
        gone: Json = {"ipFamilyPolicy": None, "ipFamilies": None}
        assert self.change(self.dual(), **gone) == (PREFER, BOTH, ["10.96.0.9", "fd00::9"])
        assert self.change(self.single(), **gone) == (SINGLE, FOUR, ["10.96.0.9"])

    def test_upgrade(self) -> None:
        """A second family comes with the policy; its address is still to be given."""
        for policy in (PREFER, REQUIRE):
            assert self.change(self.single(), ipFamilyPolicy=policy) == (policy, BOTH, ["10.96.0.9"])
        assert self.change(self.single(), ONE, ipFamilyPolicy=PREFER) == (PREFER, FOUR, ["10.96.0.9"])
        assert self.change(self.single(), ONE, ipFamilyPolicy=REQUIRE) == [NOT_TWO]

    def test_downgrade(self) -> None:
        """It goes with the policy, and that alone is enough."""
        assert self.change(self.dual(), ipFamilyPolicy=SINGLE) == (SINGLE, FOUR, ["10.96.0.9"])
        needed = f"spec.ipFamilyPolicy: Invalid value: \"{REQUIRE}\": must be 'SingleStack' to release the secondary"
        fewer: Json = {"clusterIPs": ["10.96.0.9"], "ipFamilies": FOUR}
        assert self.change(self.dual(REQUIRE), **fewer) == [f"{needed} cluster IP", f"{needed} IP family"]

    def test_cluster_changed(self) -> None:
        """One that takes what there is stays as it is when the cluster gets another family, or loses one."""
        assert self.change(self.single(ipFamilyPolicy=PREFER)) == (PREFER, FOUR, ["10.96.0.9"])
        assert self.change(self.dual(), ONE) == (PREFER, BOTH, ["10.96.0.9", "fd00::9"])
