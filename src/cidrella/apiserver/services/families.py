"""Which families of addresses a Service will have: what it says, what follows from that, and what is wrong with it.

The order of the steps is that of a real API server, for it decides which of several faults is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.addresses import family_of
from cidrella.apiserver.kinds.servicerules import FAMILIES, address_faults
from cidrella.apiserver.kinds.servicetypes import EXTERNAL_NAME, is_headless
from cidrella.apiserver.words.faults import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cidrella.apiserver.words.statuses import Fault
    from cidrella.core.prefix import Family

    Json = dict[str, Any]

_SINGLE: Final = "SingleStack"
_PREFER: Final = "PreferDualStack"
_REQUIRE: Final = "RequireDualStack"
_POLICY: Final = "spec.ipFamilyPolicy"


def fill_families(new: Json, old: Json | None, configured: Sequence[Family]) -> list[Fault]:
    """Write ipFamilyPolicy and ipFamilies into the spec of a Service, which was `old` before; or what is wrong with it.

    `configured` are the families that the cluster has, its default first; there is at least one.
    """
    if new["type"] == EXTERNAL_NAME or (old is not None and _unmoved(new, old)):
        return []
    if faults := address_faults(new):
        return faults
    present = [str(each) for each in configured]
    faults = list(_reduction(new, old)) if old is not None else []
    anything_goes = is_headless(new) and not new.get("selector")
    policy = new.setdefault("ipFamilyPolicy", _REQUIRE if anything_goes else _SINGLE)
    faults += [*_contradictions(new), *_infer(new, present)]
    if faults:
        return faults
    if not anything_goes and (faults := list(_missing(new, present))):
        return faults
    families = new.setdefault("ipFamilies", [present[0]])
    if policy != _SINGLE and len(families) == 1 and (anything_goes or len(present) == 2):
        new["ipFamilies"] = [*families, *(each for each in FAMILIES if each not in families)]
    return []


def _unmoved(new: Json, old: Json) -> bool:
    """Whether a Service that takes what there is, one family or two, is to stay with what it was given."""
    same = all(new.get(name) == old.get(name) for name in ("type", "clusterIPs", "ipFamilies", "ipFamilyPolicy"))
    return same and new.get("ipFamilyPolicy") == _PREFER


def _reduction(new: Json, old: Json) -> Iterator[Fault]:
    """An update keeps the policy. To go from two families to one takes the policy, and that is enough."""
    if "ipFamilyPolicy" in old:
        new.setdefault("ipFamilyPolicy", old["ipFamilyPolicy"])
    policy = new.get("ipFamilyPolicy")
    for name, what in (("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")):
        if policy == _SINGLE and name in new and new[name] == old.get(name):
            new[name] = new[name][:1]
        elif policy != _SINGLE and 0 < len(new.get(name, [])) < len(old.get(name, [])):
            yield invalid(_POLICY, policy, f"must be 'SingleStack' to release the secondary {what}")


def _contradictions(new: Json) -> Iterator[Fault]:
    if new["ipFamilyPolicy"] == _SINGLE:
        for name, what in (("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")):
            if len(new.get(name, [])) == 2:
                why = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                yield invalid(_POLICY, _SINGLE, why)


def _infer(new: Json, present: list[str]) -> Iterator[Fault]:
    """Families from addresses."""
    known = len(new.get("ipFamilies", []))
    addresses = [] if is_headless(new) else new.get("clusterIPs", [])
    for place, each in list(enumerate(addresses))[known:]:
        family = str(family_of(each))
        if family in present:
            new["ipFamilies"] = [*new.get("ipFamilies", []), family]
        else:
            yield invalid(f"spec.clusterIPs[{place}]", addresses, f"{family} is not configured on this cluster")


def _missing(new: Json, present: list[str]) -> Iterator[Fault]:
    if new["ipFamilyPolicy"] == _REQUIRE and len(present) < 2:
        yield invalid(_POLICY, _REQUIRE, "this cluster is not configured for dual-stack services")
    for place, each in enumerate(new.get("ipFamilies", [])):
        if each not in present:
            yield invalid(f"spec.ipFamilies[{place}]", each, "not configured on this cluster")
