"""Values and texts as the real server writes them into messages: it is written in Go, and so are they."""

from __future__ import annotations

import json
from typing import Any

_ESCAPES = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v", "\\": "\\", '"': '"'}
_EXPONENT_FROM = 1e21
_HTML = str.maketrans({mark: f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"})


def quoted(text: str) -> str:
    r"""A text in quotes, with escapes as Go writes them (`%q`).

    >>> print(quoted('a "b"'))
    "a \"b\""
    """
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return f"\\{_ESCAPES[letter]}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def as_json(value: Any) -> str:
    r"""A value as Go's encoder writes it: compact, and with what HTML would take for markup escaped.

    >>> print(as_json({"a": "<b>"}))
    {"a":"\u003cb\u003e"}
    """
    return json.dumps(_whole(value), separators=(",", ":"), ensure_ascii=False).translate(_HTML)


def _whole(value: Any) -> Any:
    """The same value, with 4 in place of 4.0: Go writes no point where nothing follows it."""
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < _EXPONENT_FROM else value
        case dict():
            return {name: _whole(each) for name, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case _:
            return value


def as_go(value: Any) -> str:
    """A value as Go prints it (`%v`), which some messages do with what they were sent.

    >>> as_go({"b": [1, "x", None], "a": True})
    'map[a:true b:[1 x <nil>]]'
    """
    match value:
        case dict():
            return f"map[{' '.join(f'{name}:{as_go(value[name])}' for name in sorted(value))}]"
        case list():
            return f"[{' '.join(map(as_go, value))}]"
        case None:
            return "<nil>"
        case str():
            return value
        case _:
            return as_json(value)


def json_kind(value: Any) -> str:
    """What a decoded value was in JSON, as messages call it."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case None:
            return "null"
        case _:
            return "object"


def shown(value: Any) -> str:
    """A value as a message names it."""
    return quoted(value) if isinstance(value, str) else as_json(value)
