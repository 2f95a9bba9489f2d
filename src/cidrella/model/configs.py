"""`ClusterCIDRConfig`: a range of one family, with the length of a node's block and a selector of its own (K1).

It is the earlier shape of a pool (kep-2594). Metadata, status and the rules for ranges are those of `ClusterCIDR`; its
selector is the one that Kubernetes has for labels everywhere else, and is the one field that may change (K2).
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, field

from cidrella.model import configrules, objects, rules
from cidrella.model.objects import ApiStruct, Nullable, ObjectMeta, PoolStatus

VERSION: Final = "v1alpha1"
PLURAL: Final = "clustercidrconfigs"
API_VERSION: Final = f"{objects.GROUP}/{VERSION}"
KIND: Final = "ClusterCIDRConfig"


class LabelSelectorRequirement(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One condition on one label of a node."""

    key: Annotated[str, Meta(description="The label that is looked at.", extra_json_schema=rules.LABEL_KEY_SCHEMA)]
    operator: Annotated[
        str,
        Meta(description="How the values are compared with what the node has.", extra_json_schema=configrules.OPERATOR),
    ]
    values: Annotated[
        Nullable[list[Annotated[str, Meta(extra_json_schema=configrules.LABEL_VALUE_SCHEMA)]]],
        Meta(description="In, NotIn: one or more. Exists, DoesNotExist: none."),
    ] = field(default_factory=list)


class LabelSelector(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requirements on labels that a node must meet together. None at all is as no selector."""

    match_labels: Annotated[
        Nullable[dict[str, Annotated[str, Meta(extra_json_schema=configrules.LABEL_VALUE_SCHEMA)]]],
        Meta(description="Labels that the node has, with these values.", extra_json_schema=configrules.MATCH_LABELS),
    ] = field(default_factory=dict)
    match_expressions: Annotated[
        Nullable[list[Annotated[LabelSelectorRequirement, Meta(extra_json_schema=configrules.EXPRESSION)]]],
        Meta(description="Requirements on the node's labels.", extra_json_schema=configrules.EXPRESSIONS),
    ] = field(default_factory=list)


class ClusterCIDRConfigSpec(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The range of a pool, the length of a node's block, and the nodes it is for."""

    cidr: Annotated[
        str,
        Meta(
            description="The range that blocks are taken from, as 10.1.0.0/16 or fd12:3456:789a::/48. Immutable.",
            extra_json_schema=configrules.CIDR,
        ),
    ]
    per_node_mask_size: Annotated[
        int,
        Meta(
            description="The length of a node's block: 24 gives each node a /24. A block has at least 16 addresses: "
            "IPv4 goes up to 28, IPv6 up to 124. Immutable.",
            extra_json_schema=configrules.MASK_SIZE,
        ),
    ]
    node_selector: Annotated[
        LabelSelector | None,
        Meta(
            description="The nodes that this pool is for. Absent or empty: any node that no pool with a selector "
            "serves. It may be changed: nodes that have a block keep it.",
            extra_json_schema=rules.ATOMIC,
        ),
    ] = None


class ClusterCIDRConfig(ApiStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pool of Pod addresses of one family: a range, from which each node that the pool is for gets a block."""

    # Made by a factory, for a default proper would be left out of the JSON.
    api_version: Nullable[str] = field(default_factory=lambda: API_VERSION)
    kind: Nullable[str] = field(default_factory=lambda: KIND)
    metadata: Nullable[ObjectMeta] = field(default_factory=ObjectMeta)
    spec: Annotated[ClusterCIDRConfigSpec, Meta(extra_json_schema=configrules.SPEC)]
    status: PoolStatus | None = None
