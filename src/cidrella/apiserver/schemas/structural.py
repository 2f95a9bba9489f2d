"""A structural schema, read once: what every later pass over an object walks along.

A schema says two things: what there is (types, properties, items), which decides on pruning and defaults, and what a
value must be like (bounds, patterns, alternatives). Both are read into one tree of nodes, which has at hand what the
definition would have to be searched for with every object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.formats import FORMATS, NUMBERS, UNKNOWN
from cidrella.apiserver.schemas.patterns import compile_pattern
from cidrella.apiserver.words import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.schemas.rules import Rule
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

NOTHING: Final = object()
"""Where there is no value; None is one."""
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\['((?:[^'\\]|\\.)*)'\]", re.ASCII)
_COMBINED: Final = ("allOf", "anyOf", "oneOf")


@dataclass(slots=True)
class Node:
    """What a schema says of one value."""

    definition: Json
    type: str = ""
    format: str = ""
    nullable: bool = False
    preserves: bool = False
    """Whether unknown fields stay."""
    default: Any = NOTHING
    properties: dict[str, Node] = field(default_factory=dict)
    defaults: tuple[tuple[str, Node], ...] = ()
    """Those of them that have a default."""
    additional: Node | None = None
    """Of every property that is not named."""
    items: Node | None = None
    required: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    list_keys: tuple[str, ...] | None = None
    """What tells the items of a list apart: the values of these fields, or with none the items themselves."""
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    none_of: Node | None = None
    rules: tuple[Rule, ...] = ()
    ruled: bool = False
    """Whether there are rules here or anywhere within."""

    def children(self) -> Iterator[tuple[str, Node]]:
        """What is directly within, with its path in the definition."""
        for name, child in self.properties.items():
            yield f".properties[{name}]", child
        if self.additional is not None:
            yield ".additionalProperties", self.additional
        if self.items is not None:
            yield ".items", self.items


def read(definition: Json, path: str, found: list[Fault]) -> Node:
    """The tree of a definition. What cannot be read is added to what was found, under its path."""
    node = Node(
        definition,
        type=definition.get("type", ""),
        format=_format(definition),
        nullable=bool(definition.get("nullable")),
        preserves=bool(definition.get("x-kubernetes-preserve-unknown-fields")),
        default=definition.get("default", NOTHING),
        required=tuple(definition.get("required", ())),
    )
    if definition.get("format") in UNKNOWN:
        told = "Kubernetes enforces this format, and it is not known here"
        found.append(faults.invalid(f"{path}.format", definition["format"], told))
    for name, child in (definition.get("properties") or {}).items():
        node.properties[name] = read(child, f"{path}.properties[{name}]", found)
    node.defaults = tuple(each for each in node.properties.items() if each[1].default is not NOTHING)
    if isinstance(additional := definition.get("additionalProperties"), dict):
        node.additional = read(additional, f"{path}.additionalProperties", found)
    elif additional is True:
        node.additional = Node({}, preserves=True)
    if isinstance(items := definition.get("items"), dict):
        node.items = read(items, f"{path}.items", found)
    _read_kind(node, definition)
    _read_pattern(node, definition, path, found)
    _read_combined(node, definition, path, found)
    return node


def _format(definition: Json) -> str:
    """The format, if it is one that anything comes of."""
    written: str = definition.get("format", "")
    enforced = NUMBERS if definition.get("type") in ("integer", "number") else FORMATS
    return written if written in enforced else ""


def _read_kind(node: Node, definition: Json) -> None:
    match definition.get("x-kubernetes-list-type"):
        case "map":
            node.list_keys = tuple(definition.get("x-kubernetes-list-map-keys", ()))
        case "set":
            node.list_keys = ()


def _read_pattern(node: Node, definition: Json, path: str, found: list[Fault]) -> None:
    if not (pattern := definition.get("pattern")):
        return
    try:
        node.pattern = compile_pattern(pattern)
    except ValueError as error:
        why = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
        found.append(faults.invalid(f"{path}.pattern", pattern, why))


def _read_combined(node: Node, definition: Json, path: str, found: list[Fault]) -> None:
    read_all = {
        word: tuple(read(each, f"{path}.{word}[{at}]", found) for at, each in enumerate(definition.get(word) or ()))
        for word in _COMBINED
    }
    node.all_of, node.any_of, node.one_of = (read_all[word] for word in _COMBINED)
    if isinstance(unwanted := definition.get("not"), dict):
        node.none_of = read(unwanted, f"{path}.not", found)


def resolve(node: Node, path: str) -> tuple[str, Node] | None:
    """A field under a node, by a path such as `.a['b']`: its path as faults have it, and what is said of it.

    None where there is no such field.
    """
    shown, at = "", 0
    while at < len(path):
        if (step := _STEP.match(path, at)) is None:
            return None
        name = step[1] or re.sub(r"\\(.)", r"\1", step[2] or "")
        below = node.properties.get(name, node.additional)
        if below is None:
            return None
        shown += f".{name}" if name in node.properties else f"[{name}]"
        node, at = below, step.end()
    return shown, node
