"""ServiceCIDRs: the ranges that Services have their addresses from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.addresses import canonical_cidr, cidr_fault, two_families
from cidrella.apiserver.kinds.kind import BuiltIn, age, keep_metadata
from cidrella.apiserver.meta.metadata import finalizer_faults
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import invalid, quoted, required
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_IMMUTABLE: Final = "field is immutable"

DEFINITION: Final = shapes.whole(
    "ServiceCIDR",
    "Ranges that Services have their addresses from.",
    {
        "spec": shapes.record(
            "ServiceCIDRSpec",
            "Which ranges.",
            {
                "cidrs": shapes.texts(
                    "One, or one of each family. They stay; a second family may be added.", nullable=True
                )
            },
        ),
        "status": shapes.record("ServiceCIDRStatus", "What becomes of them.", {"conditions": shapes.CONDITIONS}),
    },
)


class ServiceCIDRs(BuiltIn):
    """What is particular about ServiceCIDRs."""

    def prepare_create(self, new: Json) -> None:
        """A new one has no status."""
        new["status"] = {}

    def prepare_status(self, new: Json, old: Json) -> None:
        """Metadata stays, too."""
        super().prepare_status(new, old)
        keep_metadata(new, old)

    def validate_create(self, new: Json) -> list[Fault]:
        """Its ranges."""
        return [*finalizer_faults(new["metadata"]), *_range_faults(new["spec"].get("cidrs", []))]

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """Only a range of the other family may come."""
        before, after = old["spec"].get("cidrs", []), new["spec"].get("cidrs", [])
        found = finalizer_faults(new["metadata"])
        if len(before) != len(after) and (len(before), len(after)) != (1, 2):
            return [*found, invalid("spec.cidrs", new["spec"].get("cidrs"), _IMMUTABLE)]
        found += [
            invalid(f"spec.cidrs[{place}]", each, _IMMUTABLE)
            for place, each in enumerate(after[: len(before)])
            if each != before[place]
        ]
        return [*found, *_range_faults(after)] if len(before) < len(after) else found


def _range_faults(cidrs: list[str]) -> Iterator[Fault]:
    if not cidrs:
        yield required("spec.cidrs", "at least one CIDR required")
    if len(cidrs) > 2:
        yield invalid("spec.cidrs", {"CIDRs": cidrs}, "may only hold up to 2 values")
        return
    for place, each in enumerate(cidrs):
        why = cidr_fault(each)
        if not why and (form := canonical_cidr(each)) != each:
            why = f"must be in canonical form ({quoted(form)})"
        if why:
            yield invalid(f"spec.cidrs[{place}]", each, why)
    if len(cidrs) == 2 and not _apart(cidrs):
        why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield invalid("spec.cidrs", cidrs, why)


def _apart(cidrs: list[str]) -> bool:
    """Whether they are of both families. One that is no range is told of by itself."""
    try:
        return two_families(cidrs)
    except PrefixError:
        return True


def resource() -> Resource:
    """The kind."""
    strategy = ServiceCIDRs(DEFINITION)
    return Resource(
        group="networking.k8s.io",
        version="v1",
        plural="servicecidrs",
        kind="ServiceCIDR",
        namespaced=False,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="servicecidr",
        status=True,
        unconditional=True,
        columns=strategy.columns(
            Column("CIDRs", lambda obj: ",".join(obj["spec"].get("cidrs", [])), description="The ranges."),
            age(),
        ),
    )
