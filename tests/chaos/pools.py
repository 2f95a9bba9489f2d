"""Pools of both kinds as the checker reads them: what they give, and to which nodes (C2, S1, S2, K1 to K3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.chaos.blocks import Block, block
from tests.chaos.history import CONFIGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.testenv.client import Json

FINALIZERS: Final = frozenset(
    {"networking.kubernetes.io/cluster-cidr-config-finalizer", "networking.x-k8s.io/cluster-cidr-finalizer"}
)
NAME_FIELD: Final = "metadata.name"


@dataclass(frozen=True, slots=True)
class Range:
    """Where blocks of one family come from, and how long their prefix is."""

    around: Block
    length: int

    def gives(self, given: Block) -> bool:
        """Whether a block is one of its own: aligned, of its size, and inside."""
        return self.around.contains(given) and given.length == self.length

    @property
    def capacity(self) -> int:
        """How many blocks it is made of."""
        return 1 << (self.length - self.around.length)


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool at one revision."""

    name: str
    """As annotations and metrics call it: "ccc/" stands before the name of a ClusterCIDRConfig."""
    uid: str
    created: str
    ranges: tuple[Range, ...]
    one_family: bool
    """Whether it is a ClusterCIDRConfig, of which a node gets one of each family (K3)."""
    selector: Json
    guarded: bool
    """Whether it has a finalizer, before which it gives nothing (P1)."""
    terminating: bool

    @property
    def gives(self) -> bool:
        """Whether it may hand out blocks at all (S6, P1)."""
        return self.guarded and not self.terminating

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it is for a node of this name and labels. One without a selector is for every node (S2)."""
        if self.one_family:
            return _labels_match(self.selector, labels)
        terms = self.selector.get("nodeSelectorTerms") or []
        return not terms or any(_term_matches(term, name, labels) for term in terms)


def read_pool(collection: str, obj: Json) -> Pool:
    """A pool, from an object of either kind."""
    metadata, spec = obj["metadata"], obj["spec"]
    config = collection == CONFIGS
    return Pool(
        name=f"ccc/{metadata['name']}" if config else metadata["name"],
        uid=metadata["uid"],
        created=metadata.get("creationTimestamp", ""),
        ranges=(Range(block(spec["cidr"]), spec["perNodeMaskSize"]),) if config else tuple(_ranges(spec)),
        one_family=config,
        selector=spec.get("nodeSelector") or {},
        guarded=not FINALIZERS.isdisjoint(metadata.get("finalizers", [])),
        terminating="deletionTimestamp" in metadata,
    )


def _ranges(spec: Json) -> list[Range]:
    bits = spec["perNodeHostBits"]
    made = [Range(block(spec["ipv4"]), 32 - bits)] if spec.get("ipv4") else []
    if spec.get("ipv6"):
        made.append(Range(block(spec["ipv6"]), 128 - (spec.get("perNodeHostBitsIPv6") or bits)))
    return made


def _labels_match(selector: Json, labels: Mapping[str, str]) -> bool:
    """meta/v1 LabelSelector: all of it; nothing is met by everybody."""
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_met(each, labels) for each in selector.get("matchExpressions") or [])


def _term_matches(term: Json, name: str, labels: Mapping[str, str]) -> bool:
    """core/v1 NodeSelectorTerm: all of it; nothing is met by nobody."""
    on_labels, on_fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not on_labels and not on_fields:
        return False
    return all(_met(each, labels) for each in on_labels) and all(_met(each, {NAME_FIELD: name}) for each in on_fields)


def _met(requirement: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    value, values = present.get(requirement["key"]), requirement.get("values") or []
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:
            return _compared(operator, value, values[0])


def _compared(operator: str, value: str | None, bound: str) -> bool:
    try:
        number = int(value or "")
    except ValueError:
        return False
    return number > int(bound) if operator == "Gt" else number < int(bound)
