"""YAML as Kubernetes' own tools read it, and no more than is safe to read.

The parser's events are built into plain data here, one by one and without recursion, because the ready-made loaders
crash on what is nested deeply, expand aliases without bound, and take a key given twice for granted. What is left out
is what nobody writes in a manifest: timestamps, numbers to base 60, tags other than those of plain data.

`places` reads a text a second time, to tell on which line each field stands; nobody pays for that who has no fault to
report.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_DEPTH_MAX = 200
"""Levels that are more than any object of ours has, and far fewer than anything would break at."""
_ALIASED_MAX = 100_000
"""Values that aliases may stand for in a document: a few bytes can stand for billions."""
_DIGITS_MAX = 400

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_TRUTHS = {
    word: truth
    for truth, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for lower in words
    for word in (lower, lower.capitalize(), lower.upper())
}
_INT = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = tuple(f"{_TAG}{name}" for name in ("null", "bool", "int", "float"))
_NUMBER_STARTS = frozenset("+-.0123456789")
_COLLECTION_TAGS = (None, "!", f"{_TAG}map", f"{_TAG}seq")
_MERGE = "<<"


class YamlError(Exception):
    """Text that cannot be read: what is wrong, and on which line where that is known."""

    def __init__(self, line: int | None, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


class Place(NamedTuple):
    """The line of a value, and the places of what is in it: for a field of a mapping, that of its key."""

    line: int
    inside: dict[object, Place]


def read(stream: IO[bytes] | bytes) -> Iterator[object]:
    """The documents of a stream as plain data, one by one. Raises `YamlError`."""
    builder = _Builder()
    for event in _events(stream):
        if isinstance(event, yaml.DocumentStartEvent):
            builder = _Builder()
        elif isinstance(event, yaml.DocumentEndEvent):
            yield builder.result
        else:
            builder.take(event)


def places(data: bytes) -> list[Place]:
    """Where things stand in each document, as far as the text can be read."""
    found: list[Place] = []
    stack: list[Place] = []
    keys: list[object] = []
    try:
        for event in _events(data):
            if isinstance(event, yaml.CollectionEndEvent):
                stack.pop()
                keys.pop()
            elif isinstance(event, yaml.NodeEvent):
                place = _put(event, stack[-1] if stack else None, keys)
                if not stack:
                    found.append(place)
                if isinstance(event, yaml.CollectionStartEvent):
                    stack.append(place)
                    keys.append(0 if isinstance(event, yaml.SequenceStartEvent) else _NO_KEY)
    except YamlError:
        pass  # what is wrong was said when the text was read; what stands before it still has its lines
    return found


def _put(event: yaml.NodeEvent, around: Place | None, keys: list[object]) -> Place:
    """Note where a value stands within what is around it. `keys` ends with the key or index that is next there."""
    line = _line(event)
    if around is None:
        return Place(line, {})
    key = keys[-1]
    if isinstance(key, int):
        keys[-1] = key + 1
    elif key is _NO_KEY:
        keys[-1] = _Key(getattr(event, "value", None), line)
        return Place(line, {})
    elif isinstance(key, _Key):
        keys[-1] = _NO_KEY
        key, line = key
    return around.inside.setdefault(key, Place(line, {}))


class _Key(NamedTuple):
    value: object
    line: int


_NO_KEY = object()


class _Open:
    """A collection that is being read."""

    __slots__ = ("anchor", "before", "key", "merged", "value")

    def __init__(self, value: dict[object, object] | list[object], anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before
        """How many values had been read when it began."""
        self.key: object = _NO_KEY
        self.merged: list[dict[object, object]] = []
        """What merge keys bring, to be overruled by the keys written out."""


class _Builder:
    """One document, built from its events."""

    def __init__(self) -> None:
        self.result: object = None
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        """What an anchor stands for, and how many values that is."""
        self._read = 0
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        """Take in what comes next. Raises `YamlError`."""
        line = _line(event)
        if isinstance(event, yaml.ScalarEvent):
            self._read += 1
            value = _scalar(event, line)
            if event.anchor:
                self._anchors[event.anchor] = value, 1
            self._add(value, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end(line)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event.anchor or "", line), line)

    def _begin(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if len(self._stack) == _DEPTH_MAX:
            raise YamlError(line, f"is nested more than {_DEPTH_MAX} deep; no object of ours is")
        if event.tag not in _COLLECTION_TAGS:
            raise YamlError(line, f"has the tag {event.tag!r}, which is not known here; remove it")
        self._read += 1
        value: dict[object, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._stack.append(_Open(value, event.anchor, self._read))

    def _end(self, line: int) -> None:
        closed = self._stack.pop()
        if closed.merged and isinstance(closed.value, dict):
            for brought in closed.merged:
                for key, value in brought.items():
                    closed.value.setdefault(key, value)
        if closed.anchor:
            self._anchors[closed.anchor] = closed.value, self._read + self._aliased - closed.before + 1
        self._add(closed.value, line)

    def _alias(self, anchor: str, line: int) -> object:
        if anchor not in self._anchors:
            raise YamlError(line, f"the alias *{anchor} stands for nothing that was read before it")
        value, size = self._anchors[anchor]
        self._aliased += size
        if self._aliased > _ALIASED_MAX:
            raise YamlError(line, f"its aliases stand for more than {_ALIASED_MAX:,} values; write them out")
        return value

    def _add(self, value: object, line: int) -> None:
        """Put a value where it belongs: it is the document, an item, a key, or what a key leads to."""
        if not self._stack:
            self.result = value
            return
        around = self._stack[-1]
        if isinstance(around.value, list):
            around.value.append(value)
        elif around.key is _NO_KEY:
            around.key = _key(value, around.value, line)
        elif around.key == _MERGE:
            around.merged += _merged(value, line)
            around.key = _NO_KEY
        else:
            around.value[around.key] = value
            around.key = _NO_KEY


def _key(value: object, mapping: dict[object, object], line: int) -> object:
    if isinstance(value, dict | list):
        raise YamlError(line, "has a key that is a list or a mapping; a key is a name")
    if value in mapping:
        raise YamlError(line, f"the key {value!r} is given twice; keep one")
    return value


def _merged(value: object, line: int) -> list[dict[object, object]]:
    """What a merge key leads to: a mapping, or a list of them of which the first counts most."""
    listed: list[object] = value if isinstance(value, list) else [value]
    mappings = [each for each in listed if isinstance(each, dict)]
    if len(mappings) < len(listed):
        raise YamlError(line, f"the merge key {_MERGE} must lead to a mapping, or a list of them")
    return mappings


def _scalar(event: yaml.ScalarEvent, line: int) -> object:
    """A text, or what a plain word means."""
    tag, text = event.tag, event.value
    if tag in ("!", f"{_TAG}str") or (tag is None and not event.implicit[0]):
        return text
    if tag is not None and tag not in _SCALAR_TAGS:
        raise YamlError(line, f"has the tag {tag!r}, which is not known here; remove it")
    if text in _NULLS:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    if text[0] in _NUMBER_STARTS:
        return _number(text, line)
    return text


def _number(text: str, line: int) -> object:
    if _INT.fullmatch(text):
        if len(text) > _DIGITS_MAX:
            raise YamlError(line, f"has a number of {len(text)} digits; if it is text, put it in quotes")
        digits = text.replace("_", "")
        octal = digits.lstrip("+-")
        return int(digits, 8) if len(octal) > 1 and octal[0] == "0" and octal[1].isdecimal() else int(digits, 0)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _events(stream: IO[bytes] | bytes) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(stream, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else None, _one_line(error.context, error.problem)) from error
    except yaml.YAMLError as error:
        raise YamlError(None, f"is no YAML: {_one_line(str(error))}") from error


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def _one_line(*parts: str | None) -> str:
    return re.sub(r"\s+", " ", ": ".join(part for part in parts if part))
