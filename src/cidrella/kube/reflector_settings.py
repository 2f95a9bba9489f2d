"""How patient a reflector is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Absence(Enum):
    """When a 404 is believed to say that the server does not serve the collection. It may be a stray one."""

    NEVER = "never"
    """It is part of every API server: whoever says so is not one, or not well."""
    UNSEEN = "unseen"
    """While nothing of it was ever seen."""
    REPEATED = "repeated"
    """Also later, if it is said several times in a row: its CRD was removed."""


@dataclass(frozen=True, slots=True)
class ReflectorSettings:
    """All times are in seconds."""

    page: int = 250
    """Objects in a page of a list: 2 MB of large nodes, which is all that is in memory at a time."""
    watch: tuple[int, int] = (300, 600)
    """How long the server is asked to keep a watch, drawn from this: so that not all of them end at once."""
    stall: float = 90.0
    """A watch without a byte for so long is dead. API servers send a bookmark every minute or so."""
    settled: float = 5.0
    """A watch that has lasted this long is a success."""
    short: float = 1.0
    """A watch that ended within this time did not end well, even if it did in good order."""
    base: float = 0.1
    """The shortest pause after something went wrong."""
    cap: float = 10.0
    """The longest pause."""
    refused_cap: float = 30.0
    """The longest pause where we are not allowed (401, 403): it takes a person to change that."""
    retry_after_max: float = 120.0
    """What a server asks for with Retry-After is granted up to this."""
    absence: Absence = Absence.REPEATED
    optional: bool = False
    """Whether it may well be missing: to be refused (403) then only counts if the server serves it at all."""
    absent_period: float = 10.0
    """How often to ask again for what the server does not serve (404)."""
