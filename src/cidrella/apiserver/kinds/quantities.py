"""Amounts of resources, in the one form that Kubernetes writes each in: `16777216Ki` as `16Gi`, `1.5` as `1500m`."""

from __future__ import annotations

import re
from fractions import Fraction
from math import ceil
from typing import Final

_FORM: Final = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_SUFFIX: Final = re.compile(r"[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+")
_MALFORMED: Final = f"quantities must match the regular expression '^{_FORM.pattern}$'"
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def canonical(text: str) -> str:
    """The form of an amount, in thousandths at the least. Raises ValueError.

    >>> canonical("4.0"), canonical("16777216Ki"), canonical("0.5"), canonical("12e6"), canonical("1n")
    ('4', '16Gi', '500m', '12e6', '1m')
    """
    found = _FORM.fullmatch(text.strip())
    if found is None or found[1].count(".") > 1 or not any(map(str.isdigit, found[1])):
        raise ValueError(_MALFORMED)
    digits, suffix = found.groups()
    if not _SUFFIX.fullmatch(suffix):
        raise ValueError("unable to parse quantity's suffix")
    number = Fraction(digits)
    if suffix in _BINARY:
        return _binary(number * (1 << _BINARY[suffix]))
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    return _decimal(number * Fraction(10) ** exponent, scientific=suffix not in _DECIMAL)


def _binary(amount: Fraction) -> str:
    """In powers of 1024, unless it is small or no whole number: then as others are."""
    if abs(amount) < 1024 or amount.denominator != 1:
        return _decimal(amount, scientific=False)
    number = int(amount)
    for suffix, bits in reversed(_BINARY.items()):
        if number % (1 << bits) == 0:
            return f"{number >> bits}{suffix}"
    return str(number)


def _decimal(amount: Fraction, *, scientific: bool) -> str:
    """In powers of 1000, rounded up."""
    number, power = ceil(amount * 1000), -3
    if number == 0:
        return "0"
    while number % 1000 == 0 and power < 18:
        number, power = number // 1000, power + 3
    if scientific:
        return f"{number}e{power}" if power else str(number)
    return str(number) + next(suffix for suffix, each in _DECIMAL.items() if each == power)
