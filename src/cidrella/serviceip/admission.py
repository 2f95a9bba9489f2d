"""What a Service that is created or changed will need of addresses, as Kubernetes decides it. No I/O.

Kubernetes decides after the webhooks were asked, from the same fields: what an update leaves out is carried over, the
policy and the families are inferred from each other and from the addresses, and then addresses are given. The same
steps are taken here, in the same order, so that what the webhook puts into a Service is what Kubernetes was about to
look for: no more, since it would be refused, and no less, since Kubernetes would then give an address of its own.

Rules:

- Only clusterIP and clusterIPs are set. Families and policy are for Kubernetes to fill in, which comes to the same.
- A Service that Kubernetes will refuse gets nothing, and is let through to be refused: its own words are better known.
- An address goes with the Service for life: an update gets one only where it had none for that family.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from cidrella.core.address import Address
from cidrella.core.prefix import Family, PrefixError
from cidrella.model.serviceip import HEADLESS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.model.admission import ServiceSpec

_EXTERNAL_NAME: Final = "ExternalName"
_WITH_ADDRESS: Final = ("ClusterIP", "NodePort", "LoadBalancer")
_FAMILIES: Final = {"IPv4": Family.IPV4, "IPv6": Family.IPV6}
_OTHER: Final = {Family.IPV4: Family.IPV6, Family.IPV6: Family.IPV4}


class Policy(Enum):
    """A Service's `ipFamilyPolicy`."""

    SINGLE = "SingleStack"
    PREFER_DUAL = "PreferDualStack"
    REQUIRE_DUAL = "RequireDualStack"


class Left(Enum):
    """Why a Service is let through as it is."""

    NEEDS_NOTHING = "it needs no address that it does not have"
    INVALID = "Kubernetes will refuse it"


class Plan(NamedTuple):
    """What a Service's fields will be, and which of its addresses are new."""

    policy: Policy
    families: tuple[Family, ...]
    addresses: tuple[str, ...]
    """One for each family, as they will be written; "" for one that is still to be given."""
    new: tuple[int, ...]
    """The places among them to be given, or taken if it is written there which."""

    @property
    def wanted(self) -> tuple[tuple[Family, Address | None], ...]:
        """For each new place its family, and the address that is asked for, or None for any."""
        return tuple((self.families[each], _asked(self.addresses[each])) for each in self.new)

    def filled(self, given: Sequence[str]) -> tuple[str, ...]:
        """The addresses, with what was given for each new place."""
        found = dict(zip(self.new, given, strict=True))
        return tuple(written or found[place] for place, written in enumerate(self.addresses))


class _Invalid(Exception):  # noqa: N818 - no error of ours
    """Kubernetes will refuse the Service."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """What of a Service bears on its addresses. Absent, null and empty are the same."""

    type: str
    address: str
    addresses: tuple[str, ...]
    families: tuple[str, ...]
    policy: str

    @classmethod
    def of(cls, spec: ServiceSpec) -> _Fields:
        return cls(
            spec.type or "ClusterIP",
            spec.cluster_ip or "",
            tuple(spec.cluster_ips or ()),
            tuple(spec.ip_families or ()),
            spec.ip_family_policy or "",
        )

    @property
    def external(self) -> bool:
        return self.type == _EXTERNAL_NAME

    @property
    def headless(self) -> bool:
        return self.addresses[:1] == (HEADLESS,)


def decide(spec: ServiceSpec, old: ServiceSpec | None, configured: Sequence[Family]) -> Plan | Left:
    """What becomes of a Service that is created, or was `old` before, where the cluster has these families.

    The cluster's default family is the first of them; there is at least one.
    """
    asked = _Fields.of(spec)
    before = None if old is None else _as_read(_Fields.of(old))
    after = _with_both(asked) if before is None else _carried_over(asked, before)
    if after.external or after.headless or (before is not None and (before.headless or _unmoved(after, before))):
        return Left.NEEDS_NOTHING
    try:
        policy = _policy(after, before)
        after = after if before is None else _reduced(after, before, policy)
        families = _families(after, policy, configured)
    except _Invalid:
        return Left.INVALID
    if before is None or before.external:
        addresses = after.addresses + ("",) * (len(families) - len(after.addresses))
        return Plan(policy, families, addresses, tuple(range(len(families))))
    return _second(after, before, policy, families)


def patch(addresses: Sequence[str]) -> bytes:
    """The JSON patch that gives a Service these addresses."""
    both = (("clusterIP", addresses[0]), ("clusterIPs", list(addresses)))
    return msgspec.json.encode([{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in both])


def _second(after: _Fields, before: _Fields, policy: Policy, families: tuple[Family, ...]) -> Plan | Left:
    """What becomes of a Service that has an address: the one change that needs another is from one family to two."""
    if len(before.families) != 1 or len(families) != 2:
        return Left.NEEDS_NOTHING
    first = before.addresses[:1]
    if not first or after.addresses[:1] != first or _family(before.families[0]) is not families[0]:
        return Left.INVALID  # the first ones stay for life
    return Plan(policy, families, (*after.addresses, "")[:2], (1,))


def _with_both(asked: _Fields) -> _Fields:
    """With clusterIPs where only clusterIP was given, as old clients do. The other way round it is a mistake."""
    return replace(asked, addresses=(asked.address,)) if asked.address and not asked.addresses else asked


def _as_read(stored: _Fields) -> _Fields:
    """A stored Service with what it lacks if it was written before there were two families."""
    stored = _with_both(stored)
    if stored.external or stored.families or stored.headless:
        return stored
    families = tuple("IPv6" if ":" in each else "IPv4" for each in stored.addresses)
    policy = Policy.SINGLE if len(families) == 1 else Policy.REQUIRE_DUAL
    return replace(stored, families=families, policy=policy.value)


def _carried_over(asked: _Fields, before: _Fields) -> _Fields:
    """What is asked for, with the addresses that it leaves out."""
    after = asked
    if not before.external and not asked.external:
        after = replace(asked, address=asked.address or before.address, addresses=asked.addresses or before.addresses)
    if after.address != before.address and after.addresses == before.addresses:
        # A client that knows one field only changed that.
        after = replace(after, addresses=(after.address,) if after.address else ())
    return after


def _unmoved(after: _Fields, before: _Fields) -> bool:
    """Whether a Service that takes what there is, one family or two, is to stay with what it was given."""
    prefers = Policy.PREFER_DUAL.value
    return (
        after.policy == prefers
        and before.policy in {"", prefers}
        and after.type == before.type
        and after.addresses == before.addresses
        and after.families == before.families
    )


def _policy(after: _Fields, before: _Fields | None) -> Policy:
    """The policy: as given, else as it was, else a single family. Raises if the fields contradict each other."""
    text = after.policy or (before.policy if before else "") or Policy.SINGLE.value
    if after.type not in _WITH_ADDRESS or text not in {each.value for each in Policy}:
        raise _Invalid
    if after.addresses[:1] != ((after.address,) if after.address else ()):
        raise _Invalid
    named = [_family(each) for each in after.families]
    held = [_address(each).family for each in after.addresses]
    if len(set(named)) < len(named) or len(set(held)) < len(held):
        raise _Invalid
    if any(one is not other for one, other in zip(named, held, strict=False)):
        raise _Invalid
    return Policy(text)


def _reduced(after: _Fields, before: _Fields, policy: Policy) -> _Fields:
    """An update that goes from two families to one: by the policy alone, or by the policy and the fields."""
    if policy is not Policy.SINGLE:
        fewer = 0 < len(after.addresses) < len(before.addresses) or 0 < len(after.families) < len(before.families)
        if fewer:
            raise _Invalid
        return after
    if after.addresses == before.addresses:
        after = replace(after, addresses=after.addresses[:1])
    if after.families == before.families:
        after = replace(after, families=after.families[:1])
    return after


def _families(after: _Fields, policy: Policy, configured: Sequence[Family]) -> tuple[Family, ...]:
    """The families: as given, else those of the addresses, else the cluster's default; and the other, if it is due."""
    if policy is Policy.SINGLE and (len(after.addresses) > 1 or len(after.families) > 1):
        raise _Invalid
    if policy is Policy.REQUIRE_DUAL and len(configured) < 2:
        raise _Invalid
    named = tuple(_family(each) for each in after.families)
    found = named + tuple(_address(each).family for each in after.addresses[len(named) :])
    if any(each not in configured for each in found):
        raise _Invalid
    found = found or (configured[0],)
    if policy is not Policy.SINGLE and len(found) == 1 and len(configured) == 2:
        found = (found[0], _OTHER[found[0]])
    return found


def _family(name: str) -> Family:
    if name not in _FAMILIES:
        raise _Invalid
    return _FAMILIES[name]


def _asked(text: str) -> Address | None:
    return _address(text) if text else None


def _address(text: str) -> Address:
    """An address as any version of Kubernetes takes one: what it accepts has to be accounted for."""
    try:
        return Address.parse_lenient(text)
    except PrefixError as error:
        raise _Invalid from error
