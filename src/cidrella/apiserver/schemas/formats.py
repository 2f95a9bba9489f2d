"""Formats that a schema may name, and what is one. Others are only words for people."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import TYPE_CHECKING, Final

from cidrella.core.prefix import drop_zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NUMBERS: Final = frozenset({"int32", "int64", "float", "double"})
"""Formats of numbers."""
UNKNOWN: Final = frozenset(
    (
        *("bsonobjectid", "creditcard", "datetime", "duration", "email", "hexcolor", "hostname", "isbn", "isbn10"),
        *("isbn13", "k8s-long-name", "k8s-short-name", "mac", "rgbcolor", "ssn", "uri", "uuid3", "uuid4", "uuid5"),
    )
)
"""Formats that Kubernetes holds texts to and we do not: a schema that names one is refused."""

_HEX: Final = "[0-9a-fA-F]"
_DATE: Final = r"\d{4}-\d\d-\d\d"
_TIME: Final = r"\d\d:\d\d:\d\d"


def _like(pattern: str, read: Callable[[str], object] = str) -> Callable[[str], bool]:
    """Whether a text has a form, and can be read."""
    compiled = re.compile(pattern, re.ASCII)

    def is_one(text: str) -> bool:
        if compiled.fullmatch(text) is None:
            return False
        try:
            read(text)
        except ValueError:
            return False
        return True

    return is_one


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _like(r"[A-Za-z0-9+/]+={0,2}", lambda text: base64.b64decode(text, validate=True)),
    "cidr": _like(r"[^%]+/\d+", lambda text: ip_network(drop_zeros(text), strict=False)),
    "date": _like(_DATE, datetime.fromisoformat),
    "date-time": _like(
        rf"{_DATE}[Tt]{_TIME}([.]\d+)?([Zz]|[+-]\d\d:\d\d)", lambda text: datetime.fromisoformat(text.upper())
    ),
    "ipv4": _like(r"[\d.]+", lambda text: IPv4Address(drop_zeros(text))),
    "ipv6": _like(r"[^%]+", IPv6Address),
    "password": _like(r"(?s:.*)"),
    "uuid": _like(rf"{_HEX}{{8}}(-?{_HEX}{{4}}){{3}}-?{_HEX}{{12}}"),
}
"""Formats of texts."""
