"""What the core is asked about, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.pool import Pool
    from cidrella.core.prefix import Prefix


@dataclass(frozen=True, slots=True)
class Node:
    """The facts about a node that bear on its blocks."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""
    pod_cidrs: tuple[str, ...] = ()
    """As they stand in the API, readable or not."""
    pool: str = ""
    """What the node's annotation says: the pool that gave its blocks, or, with a comma between, the pools (P3)."""
    terminating: bool = False
    uninitialized: bool = False
    """A cloud provider has yet to give it the labels that may choose its pool (N10)."""


class ServiceRange(NamedTuple):
    """The holder of a range that Services get their addresses from (A7)."""

    name: str

    def __str__(self) -> str:
        return f"service range {self.name}"


class Outcome(Enum):
    """How a node stands."""

    ASSIGNED = "Assigned"
    """It is given blocks now."""
    KEPT = "Kept"
    """It has its blocks."""
    WAITING = "Waiting"
    """It has none, and is given none for now."""
    UNTRACKED = "Untracked"
    """It has blocks that lie in no pool (N5)."""
    CONFLICT = "Conflict"
    """It has blocks of which somebody else holds addresses too (N6, A7)."""
    INVALID = "Invalid"
    """It has podCIDRs that cannot be read (N7)."""


class Reason(Enum):
    """Why, in a word that can be an event's reason."""

    NONE = ""
    NOT_AVAILABLE = "CIDRNotAvailable"
    UNTRACKED = "CIDRUntracked"
    CONFLICT = "CIDRConflict"
    INVALID = "CIDRInvalid"
    UNINITIALIZED = "WaitingForCloudProvider"
    TERMINATING = "NodeTerminating"
    ASSIGNMENT_FAILED = "CIDRAssignmentFailed"
    """Blocks were chosen, and the API server refused to write them, or the outcome is unknown."""


class Finding(NamedTuple):
    """Something that is not as it should be with the blocks of a node."""

    reason: Reason
    message: str


class Decision(NamedTuple):
    """What becomes of a node, and why."""

    node: str
    outcome: Outcome
    blocks: tuple[Prefix, ...]
    """In the order of `podCIDRs`."""
    pools: tuple[Pool | None, ...]
    """For each block, the pool that it counts towards (P3): one node may use two."""
    reason: Reason
    message: str
    tried: int = 0
    """The pools that were looked at for this, the last of them included; 0 where none had to be."""

    @property
    def pool_names(self) -> tuple[str, ...]:
        """The pools of its blocks, each once, in the order of the blocks."""
        return tuple(dict.fromkeys([pool.name for pool in self.pools if pool is not None]))

    @property
    def pool_name(self) -> str:
        """The same as one text, as the node's annotation has it: one name, or several with a comma between (N3, P3)."""
        first = self.pools[0] if self.pools else None
        if first is not None and self.pools.count(first) == len(self.pools):
            return first.name  # nearly always, and this is asked for each node
        return ",".join(self.pool_names)
