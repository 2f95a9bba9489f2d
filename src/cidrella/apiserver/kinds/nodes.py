"""Nodes: what is particular about writing them, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.addresses import canonical_cidr, cidr_fault, two_families
from cidrella.apiserver.kinds.kind import NONE, UNKNOWN, BuiltIn, age
from cidrella.apiserver.kinds.nodeshape import DEFINITION
from cidrella.apiserver.meta.metadata import create_faults, finalizer_faults
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import as_json, forbidden, invalid, not_supported, quoted, required
from cidrella.apiserver.words.naming import key_faults, value_faults
from cidrella.apiserver.words.statuses import Fault
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_READY: Final = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


class Nodes(BuiltIn):
    """What is particular about nodes."""

    def read(self, obj: Json) -> str:
        """Both forms of the ranges are one: the older wins, and is the first of the newer."""
        if trouble := super().read(obj):
            return trouble
        spec, status = obj["spec"], obj["status"]
        first, ranges = spec.get("podCIDR", ""), spec.get("podCIDRs", [])
        if first and ranges[:1] != [first]:
            spec["podCIDRs"] = [first]
        elif ranges:
            spec["podCIDR"] = ranges[0]
        if "capacity" in status and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])
        return ""

    def prepare_create(self, new: Json) -> None:
        """A new node is not ready, and says so by a taint."""
        new["spec"].pop("configSource", None)
        taints = new["spec"].setdefault("taints", [])
        if not any(each["key"] == _NOT_READY["key"] and each["effect"] == _NOT_READY["effect"] for each in taints):
            taints.append(dict(_NOT_READY))

    def prepare_update(self, new: Json, old: Json) -> None:
        """Keep the status."""
        super().prepare_update(new, old)
        new["spec"].pop("configSource", None)

    def validate_create(self, new: Json) -> list[Fault]:
        """Taints, amounts, ranges."""
        return [*_creation_faults(new), *_amount_faults(new["status"]), *_range_faults(new["spec"])]

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """What never changes, and for a write to the node itself all that is asked of new ones.

        What a real server checks twice it tells twice, and in this order.
        """
        found: list[Fault] = []
        if new["status"] is old["status"]:  # a write to the node itself keeps the status as it was
            found += [*_creation_faults(new), *_range_faults(new["spec"])]
            found += create_faults(new["metadata"], namespaced=False)
        return [
            *found,
            *finalizer_faults(new["metadata"]),
            *_amount_faults(new["status"]),
            *_address_faults(new["status"]),
            *_change_faults(new["spec"], old["spec"]),
        ]

    def warnings(self, new: Json) -> list[str]:
        """Of what is out of use or out of form."""
        spec = new["spec"]
        found = []
        if "externalID" in spec:
            found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for place, each in enumerate(spec.get("podCIDRs", [])):
            if not cidr_fault(each) and each != (form := canonical_cidr(each)):
                found.append(
                    f"spec.podCIDRs[{place}]: IPv6 CIDR value {quoted(each)} should be in RFC 5952 canonical format "
                    f"({quoted(form)})"
                )
        return found


def _creation_faults(new: Json) -> Iterator[Fault]:
    yield from finalizer_faults(new["metadata"])
    yield from _taint_faults(new["spec"])


def _taint_faults(spec: Json) -> Iterator[Fault]:
    seen = set()
    for place, taint in enumerate(spec.get("taints", [])):
        at = f"metadata.taints[{place}]"  # so a real server calls it, though it is in the spec
        key, effect = taint["key"], taint["effect"]
        yield from (invalid(f"{at}.key", key, why) for why in key_faults(key))
        value = taint.get("value", "")
        yield from (invalid(f"{at}.value", value, why) for why in value_faults(value))
        if not effect:
            yield required(f"{at}.effect")
        elif effect not in _EFFECTS:
            yield not_supported(f"{at}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            whole = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            why = f"Duplicate value: {as_json(whole)}: taints must be unique by key and effect pair"
            yield Fault("FieldValueDuplicate", at, why)
        seen.add((key, effect))


def _amount_faults(status: Json) -> Iterator[Fault]:
    for kind in ("capacity", "allocatable"):
        for name, amount in status.get(kind, {}).items():
            at = f"status.{kind}.{name}"
            if amount.startswith("-"):
                yield invalid(at, amount, "must be greater than or equal to 0")
            if "/" in name and amount.endswith("m"):
                yield invalid(at, amount, "must be an integer")


def _range_faults(spec: Json) -> Iterator[Fault]:
    ranges = spec.get("podCIDRs", [])
    for place, each in enumerate(ranges):
        if why := cidr_fault(each):
            yield invalid(f"spec.podCIDRs[{place}]", each, why)
    if len(ranges) < 2:
        return
    both = False
    try:
        both = two_families(ranges)
    except PrefixError:
        yield _not_told_apart(ranges)
    if not both or len(ranges) > 2:
        yield invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")


def _not_told_apart(ranges: list[str]) -> Fault:
    place, text = next((place, each) for place, each in enumerate(ranges) if cidr_fault(each).startswith("must be a "))
    why = f"invalid CIDR[{place}]: <nil> (invalid CIDR address: {text})"
    words = f"Internal error: invalid PodCIDRs. failed to check with dual stack with error:{why}"
    return Fault("InternalError", "spec.podCIDRs", words)


def _address_faults(status: Json) -> Iterator[Fault]:
    seen = set()
    for place, each in enumerate(status.get("addresses", [])):
        both = (each["type"], each["address"])
        if both in seen:
            whole = as_json({"Type": each["type"], "Address": each["address"]})
            yield Fault("FieldValueDuplicate", f"status.addresses[{place}]", f"Duplicate value: {whole}")
        seen.add(both)


def _change_faults(new: Json, old: Json) -> Iterator[Fault]:
    before, after = old.get("podCIDRs", []), new.get("podCIDRs", [])
    once = 'node updates may not change {} except from "" to valid'
    if before and len(before) != len(after):
        yield forbidden("spec.podCIDRs", once.format("podCIDR"))
    elif before:
        changed = sum(one != other for one, other in zip(before, after, strict=True))
        yield from [forbidden("spec.podCIDRs", once.format("podCIDR"))] * changed
    if old.get("providerID") and new.get("providerID") != old["providerID"]:
        yield forbidden("spec.providerID", once.format("providerID"))
    yield from _taint_faults(new)
    if new.get("externalID") != old.get("externalID"):
        yield forbidden("spec.externalID", "may not be updated")


def _state(node: Json) -> str:
    ready = [each["status"] for each in node["status"].get("conditions", []) if each["type"] == "Ready"]
    words = [("Ready" if ready[-1] == "True" else "NotReady") if ready else "Unknown"]
    return ",".join([*words, "SchedulingDisabled"] if node["spec"].get("unschedulable") else words)


def _roles(node: Json) -> str:
    labels = node["metadata"].get("labels", {})
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return ",".join(sorted({*found, labels.get(_ROLE, "")} - {""})) or NONE


def _address(node: Json, kind: str) -> str:
    return next((each["address"] for each in node["status"].get("addresses", []) if each["type"] == kind), NONE)


def _told(node: Json, name: str) -> str:
    return str(node["status"]["nodeInfo"].get(name) or UNKNOWN)


def _unschedulable(node: Json) -> str:
    return str(bool(node["spec"].get("unschedulable"))).lower()


def resource() -> Resource:
    """The kind."""
    strategy = Nodes(DEFINITION)
    return Resource(
        group="",
        version="v1",
        plural="nodes",
        kind="Node",
        namespaced=False,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="node",
        short_names=("no",),
        status=True,
        fields={"spec.unschedulable": _unschedulable},
        unconditional=True,
        columns=strategy.columns(
            Column("Status", _state, description="Whether the node is ready, and takes Pods."),
            Column("Roles", _roles, description="What it is for, by its labels."),
            age(),
            Column(
                "Version",
                lambda node: node["status"]["nodeInfo"]["kubeletVersion"],
                description="The version of its kubelet.",
            ),
            Column(
                "Internal-IP",
                lambda node: _address(node, "InternalIP"),
                description="Where it is reached from inside.",
                priority=1,
            ),
            Column(
                "External-IP",
                lambda node: _address(node, "ExternalIP"),
                description="Where it is reached from outside.",
                priority=1,
            ),
            Column("OS-Image", lambda node: _told(node, "osImage"), description="Its operating system.", priority=1),
            Column(
                "Kernel-Version",
                lambda node: _told(node, "kernelVersion"),
                description="The version of its kernel.",
                priority=1,
            ),
            Column(
                "Container-Runtime",
                lambda node: _told(node, "containerRuntimeVersion"),
                description="What runs its containers.",
                priority=1,
            ),
        ),
    )
