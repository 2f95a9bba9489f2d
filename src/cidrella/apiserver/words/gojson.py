"""JSON that cannot be read, and fields that are there twice, told as Go's decoder tells them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from cidrella.apiserver.words.faults import quoted

_LITERALS: Final = ("null", "true", "false")
_EXPECTED: Final = {
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting value": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}
_END: Final = "unexpected end of JSON input"


def why(data: bytes) -> str:
    """Why this is no JSON; nothing if it is.

    >>> why(b"{nope"), why(b"nope"), why(b'{"a":1'), why(b"[1}")
    ("invalid character 'n' looking for beginning of object key string", "invalid character 'o' in literal null \
(expecting 'u')", 'unexpected end of JSON input', "invalid character '}' after array element")
    """
    text = data.decode("latin-1")  # which is how it is looked at: byte by byte
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _words(text, error)
    except RecursionError:
        return "exceeded max depth"
    except ValueError:
        return "a number of too many digits"
    return ""


def _words(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :]
    if error.msg.startswith("Unterminated string") or not rest.strip():
        return _END
    for literal in _LITERALS:
        if error.msg == "Expecting value" and rest[0] == literal[0]:
            return _broken(literal, rest)
    expected = _EXPECTED.get(error.msg)
    if error.msg == "Expecting ',' delimiter":
        expected = "after object key:value pair" if _in_object(text[: error.pos]) else "after array element"
    if error.msg.startswith("Invalid \\"):
        return f"invalid character {_letter(rest[1:2] or ' ')} in string escape code"
    return f"invalid character {_letter(rest[0])} {expected or 'looking for beginning of value'}"


def _broken(literal: str, rest: str) -> str:
    for wanted, found in zip(literal[1:], rest[1:], strict=False):
        if wanted != found:
            return f"invalid character {_letter(found)} in literal {literal} (expecting {_letter(wanted)})"
    return _END


def _letter(letter: str) -> str:
    return {"'": "'\\''", '"': "'\"'"}.get(letter) or f"'{quoted(letter)[1:-1]}'"


def _in_object(text: str) -> bool:
    """Whether the end of this text, which is well so far, stands in an object."""
    open_ones: list[str] = []
    inside = escaped = False
    for letter in text:
        if inside:
            inside, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            inside = True
        elif letter in "{[":
            open_ones.append(letter)
        elif letter in "}]":
            open_ones.pop()
    return bool(open_ones) and open_ones[-1] == "{"


class _Repeating(dict[str, Any]):
    """An object of which some fields are there more than once."""

    repeated: tuple[str, ...] = ()


def repeated_fields(data: bytes) -> list[str]:
    """The paths of fields that are there more than once, each once."""
    found: list[str] = []
    _collect(json.loads(data, object_pairs_hook=_pairs), "", found)
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    counts = Counter(name for name, _ in pairs)
    repeating = _Repeating(plain)
    repeating.repeated = tuple(name for name, count in counts.items() if count > 1)
    return repeating


def _collect(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, list):
        for index, each in enumerate(value):
            _collect(each, f"{path}[{index}]", found)
    if not isinstance(value, dict):
        return
    prefix = f"{path}." if path else ""
    if isinstance(value, _Repeating):
        found.extend(f"{prefix}{name}" for name in value.repeated)
    for name, each in value.items():
        _collect(each, f"{prefix}{name}", found)
