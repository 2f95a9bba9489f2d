"""What is known of a write whose reply was lost, or says nothing certain, once the object has been read again.

| the object | the write |
|---|---|
| has its id among the last writes | `LANDED` |
| has the version that it was built on | is `OPEN`: it may land yet, or never arrive |
| has moved on, and remembers the write that it was built on | is `LOST`: it can land no more, for its version is gone |
| has moved on too far, or is another object | nobody can tell: `UNKNOWN` |

An open one is sent again, the very same: both are for one version, so that only one of them can land, and either says
so by the one id.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cidrella.serviceip.state import State


class Fate(Enum):
    """What became of a write."""

    LANDED = auto()
    OPEN = auto()
    LOST = auto()
    UNKNOWN = auto()


def fate(write: str, base: State, found: State) -> Fate:
    """What became of the write of that id, which was built on `base`, by what was found afterwards."""
    if write in found.writes:
        return Fate.LANDED
    if found.uid != base.uid:
        return Fate.UNKNOWN
    if found.version == base.version:
        return Fate.OPEN
    return Fate.LOST if base.last_write in found.writes else Fate.UNKNOWN
