"""What the input holds: objects, and what is wrong with them (`intake` reads it from files).

A cluster is an input, too (`live`). What is wrong in it is nobody's slip of the pen, and stops nothing: a pool that got
in although it is invalid stands in `invalid`, and gives nothing (C4).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cidrella.model.kinds import pool_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from cidrella.core.pool import PoolSpec
    from cidrella.model import objects
    from cidrella.model.chosen import Service
    from cidrella.model.kinds import PoolObject
    from cidrella.model.serviceip import IPAddress, SeenRangeAllocation

    K = TypeVar("K", bound=PoolObject | objects.Node | objects.ServiceCIDR)


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem with the input: where it is, in which object and field, what is wrong and what to do."""

    source: str
    line: int | None
    subject: str
    """The object, as `Kind name`; empty where it is the file itself."""
    field: str
    message: str

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return printable(": ".join(part for part in (place, self.subject, self.field, self.message) if part))


def printable(text: str) -> str:
    """Text from the input on one line, with what a terminal would act on written out."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class InputError(Exception):
    """The input is wrong: every fault that was found."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} problems with the input")
        self.faults = faults


class ClusterError(Exception):
    """The cluster cannot be read, or not be reached: why, and what to do, in one line."""


@dataclass
class Input:
    """What the input holds beside the objects that are looked for."""

    ignored: Counter[str] = field(default_factory=Counter)
    """Objects of kinds that are no concern of ours, by kind."""
    faults: list[Fault] = field(default_factory=list)
    place: str = "the input"
    """Where all this was found, for messages."""

    def require_sound(self) -> Self:
        """Itself, or `InputError` if anything was wrong."""
        if self.faults:
            raise InputError(self.faults)
        return self


@dataclass
class Inventory(Input):
    """What the input holds of pools and nodes."""

    pools: list[PoolObject] = field(default_factory=list)
    """Of every kind."""
    nodes: list[objects.Node] = field(default_factory=list)
    services: list[objects.ServiceCIDR] = field(default_factory=list)
    invalid: list[PoolSpec] = field(default_factory=list)
    """Pools of a cluster that cannot be used, each with its problem and without a range. Files have none: there, what
    is wrong is a fault."""

    def overlaid(self, files: Inventory) -> Inventory:
        """What there would be if the objects of files were applied: each is added, or replaces its namesake.

        A pool that is new is younger than all others, which bears on the blocks that it would count (P3).
        """
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pools = [each if each.metadata.creation_timestamp else _created(each, now) for each in files.pools]
        given = set(map(pool_name, pools))
        return replace(
            self,
            pools=_overlay(self.pools, pools, pool_name),
            nodes=_overlay(self.nodes, files.nodes, _name_of),
            services=_overlay(self.services, files.services, _name_of),
            ignored=self.ignored + files.ignored,
            invalid=[each for each in self.invalid if each.name not in given],
            place=f"{self.place} and the input",
        )


@dataclass
class ServiceInventory(Input):
    """What the input holds of Services and of what gives them addresses."""

    cidrs: list[objects.ServiceCIDR] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    addresses: list[IPAddress] = field(default_factory=list)
    allocations: list[SeenRangeAllocation] = field(default_factory=list)
    """Those of a cluster may be corrupt. In files, that is a fault."""


def _overlay(below: list[K], above: list[K], name: Callable[[K], str]) -> list[K]:
    merged: dict[str, K] = {name(each): each for each in below}
    merged.update((name(each), each) for each in above)
    return list(merged.values())


def _name_of(obj: objects.Node | objects.ServiceCIDR) -> str:
    return obj.metadata.name


def _created(pool: PoolObject, when: str) -> PoolObject:
    metadata = msgspec.structs.replace(pool.metadata, creation_timestamp=when)
    return msgspec.structs.replace(pool, metadata=metadata)
