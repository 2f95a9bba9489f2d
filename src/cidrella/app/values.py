"""The values that settings can have, each read from the text of a flag, a variable or a config file.

Flags are spelt as Go's are, since that is how operators have them in their manifests: durations as `15s` or `1m30s`,
Booleans as `true`, `t` or `1`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from cidrella.model.flags import parse_truth

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_DURATION_MAX: Final = 86_400.0
"""A day: more than anything here can sensibly wait for, and far below what timers refuse."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_ADDRESS: Final = re.compile(r"(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s\[\]:]*)):(?P<port>[0-9]{1,5})", re.ASCII)
_PORT_MAX: Final = 65_535
_VERBOSE: Final = 4
"""From this number on kube-controller-manager's `-v` asks for what is of use to developers only."""


class BadValueError(ValueError):
    """What is wrong with a value, to be said after the value itself."""


class Address(NamedTuple):
    """Where to listen: an empty host is every interface, port 0 any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A sort of value."""

    placeholder: str
    """What stands for it in the help."""
    parse: Callable[[str], T]
    """Raises `BadValueError`."""
    plain: type[bool | int | str] = str
    """What it is in YAML."""
    example: str = ""

    @property
    def is_truth(self) -> bool:
        """Whether its flag needs no value."""
        return self.plain is bool

    def parse_plain(self, raw: object) -> T:
        """Read a value from YAML, where numbers and Booleans have types of their own. Raises `BadValueError`."""
        if type(raw) is not self.plain:
            raise BadValueError(f"must be {_NAMES[self.plain]}" + (f", such as {self.example}" if self.example else ""))
        return self.parse(str(raw).lower() if self.is_truth else str(raw))


_NAMES: Final[dict[type, str]] = {bool: "true or false", int: "a whole number", str: "text"}


def _truth(text: str) -> bool:
    truth = parse_truth(text)
    if truth is None:
        raise BadValueError("is neither true nor false")
    return truth


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadValueError("is no whole number")
    return int(text)


def _duration(text: str) -> float:
    """Seconds, of what Go's durations look like.

    >>> _duration("1m30s"), _duration("500ms")
    (90.0, 0.5)
    """
    seconds = _duration_or_zero(text)
    if not seconds:
        raise BadValueError("is out of bounds; a duration here is longer than 0s and at most 24h")
    return seconds


def _duration_or_zero(text: str) -> float:
    parts = _PART.findall(text)
    if text != "0" and (not parts or "".join(number + unit for number, unit in parts) != text):
        raise BadValueError("is no duration; write it as 15s, 1m30s or 500ms")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if seconds > _DURATION_MAX:
        raise BadValueError("is out of bounds; a duration here is at most 24h")
    return seconds


def _address(text: str) -> Address:
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > _PORT_MAX:
        raise BadValueError(
            "is no address to listen on; write HOST:PORT, with an IPv6 address in brackets: [::1]:10290"
        )
    return Address(found["ipv6"] or found["host"] or "", int(found["port"]))


def _address_or_none(text: str) -> Address | None:
    return _address(text) if text else None


def _level_of_verbosity(text: str) -> str:
    """The level that kube-controller-manager's `-v N` comes nearest to."""
    return "debug" if _number(text) >= _VERBOSE else "info"


def choice(*options: str) -> Kind[str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text not in options:
            raise BadValueError(f"is not known; choose {' or '.join(options)}")
        return text

    return Kind("|".join(options), parse)


TEXT: Final = Kind("TEXT", str)
FILE: Final = Kind("FILE", str)
RANGES: Final = Kind("CIDR[,CIDR]", str, example="10.0.0.0/16")
GATES: Final = Kind("GATE=true|false[,…]", str, example="MultiCIDRRangeAllocator=true")
TRUTH: Final = Kind("true|false", _truth, bool)
MASK: Final = Kind("LENGTH", _number, int, example="24")
DURATION: Final = Kind("DURATION", _duration, example="15s")
DURATION_OR_ZERO: Final = Kind("DURATION", _duration_or_zero, example="60s")
ADDRESS: Final = Kind("HOST:PORT", _address, example="127.0.0.1:10290")
ADDRESS_OR_NONE: Final = Kind("HOST:PORT", _address_or_none, example="127.0.0.1:10290")
VERBOSITY: Final = Kind("N", _level_of_verbosity, int)
