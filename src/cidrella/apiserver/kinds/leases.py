"""Leases: who leads, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.kind import BuiltIn, age
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import invalid

if TYPE_CHECKING:
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

DEFINITION: Final = shapes.whole(
    "Lease",
    "Who holds something that only one can hold at a time.",
    {
        "spec": shapes.record(
            "LeaseSpec",
            "Who holds it.",
            {
                "holderIdentity": shapes.text("The holder.", nullable=True),
                "leaseDurationSeconds": shapes.number("How long after renewTime others leave it alone.", nullable=True),
                "acquireTime": shapes.micro_time("Since when the holder has it."),
                "renewTime": shapes.micro_time("When the holder last said that it has it."),
                "leaseTransitions": shapes.number("How often it went from one holder to another.", nullable=True),
                "strategy": shapes.text("No longer kept.", "CoordinatedLeaseStrategy", nullable=True),
                "preferredHolder": shapes.text("No longer kept.", nullable=True),
            },
        ),
    },
)


class Leases(BuiltIn):
    """What is particular about leases."""

    def read(self, obj: Json) -> str:
        """How holders are elected by the server is not for this one to keep."""
        trouble = super().read(obj)
        if not trouble:
            for name in ("strategy", "preferredHolder"):
                obj["spec"].pop(name, None)
        return trouble

    def validate_create(self, new: Json) -> list[Fault]:
        """Its numbers."""
        found = []
        seconds, transitions = new["spec"].get("leaseDurationSeconds"), new["spec"].get("leaseTransitions")
        if seconds is not None and seconds <= 0:
            found.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return found

    def validate_update(self, new: Json, old: Json) -> list[Fault]:  # noqa: ARG002 - what it was does not matter
        """Likewise."""
        return self.validate_create(new)


def resource() -> Resource:
    """The kind."""
    strategy = Leases(DEFINITION)
    return Resource(
        group="coordination.k8s.io",
        version="v1",
        plural="leases",
        kind="Lease",
        namespaced=True,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="lease",
        creates=True,
        columns=strategy.columns(
            Column("Holder", lambda lease: lease["spec"].get("holderIdentity", ""), description="Who holds it."),
            age(),
        ),
    )
