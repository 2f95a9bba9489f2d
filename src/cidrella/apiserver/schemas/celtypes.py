"""The types that rules are checked with: those of CEL, and for objects messages made from the schema.

A message for every object with properties lets CEL's checker tell a field that there is from one that there is not, and
what type it has. What a message cannot say (a list of lists, a mapping to lists) is `dyn`: what is wrong with its use
is found only when the rule runs, and breaks it. Times, durations and bytes have types that can only be compared for
equality: a rule that does more with them is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.celaddresses import CIDR, IP
from cidrella.apiserver.schemas.structural import INT_OR_STRING, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PLAIN: Final = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_UNSUPPORTED: Final = {
    "byte": "unsupported.Bytes",
    "date": "unsupported.Timestamp",
    "date-time": "unsupported.Timestamp",
    "duration": "unsupported.Duration",
}
_DYN: Final = "dyn"
_SELF: Final = "selfType"
_OWN: Final = {"net": (IP, CIDR), "unsupported": sorted(set(_UNSUPPORTED.values()))}

# As protobuf numbers them.
_FIELD_TYPES: Final = {"string": 9, "int": 3, "double": 1, "bool": 8}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3

_NAME: Final = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)
_WORDS: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_MARKS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}

_TEXT: Final = Node({}, type="string")
_METADATA: Final = Node({}, type="object", properties={"name": _TEXT, "generateName": _TEXT})
ROOT: Final[Mapping[str, Node]] = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _METADATA}
"""What rules see of every object, whatever its schema says of it."""


@lru_cache(1024)
def escaped(name: str) -> str:
    """A property's name as rules write it; empty where they cannot.

    >>> escaped("a-b"), escaped("in"), escaped("3d")
    ('a__dash__b', '__in__', '')
    """
    if name in _WORDS:
        return f"__{name}__"
    if _NAME.fullmatch(name) is None:
        return ""
    return re.sub(r"__|[./-]", lambda each: _MARKS[each[0]], name)


class Types:
    """The types of all nodes of a schema, by CEL's own notation for them."""

    def __init__(self, root: Node) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2  # noqa: PLC0415 - only for rules

        self._signatures: dict[int, str] = {}
        self._file = descriptor_pb2.FileDescriptorProto(
            name="self.proto",
            package=_SELF,
            syntax="proto3",
            dependency=["google/protobuf/struct.proto", "unsupported.proto"],
        )
        self._add(root, "Self", ROOT)
        self.pool = descriptor_pool.DescriptorPool()
        self.pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
        for package, names in _OWN.items():
            own = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
            for name in names:
                own.message_type.add(name=name.removeprefix(f"{package}."))
            self.pool.AddSerializedFile(own.SerializeToString())
        self.pool.AddSerializedFile(self._file.SerializeToString())

    def of(self, node: Node) -> str:
        """The type of a node."""
        return self._signatures[id(node)]

    def _add(self, node: Node, name: str, more: Mapping[str, Node] | None = None) -> str:
        """The type of a node, with all that is in it: "" where rules cannot look at it."""
        kind = self._kind(node, name, more)
        self._signatures[id(node)] = kind or _DYN
        return kind

    def _kind(self, node: Node, name: str, more: Mapping[str, Node] | None) -> str:
        if node.definition.get(INT_OR_STRING):
            return _DYN
        if node.type == "array" and node.items is not None:
            return f"list<{self._add(node.items, f'{name}_items') or _DYN}>"
        if node.type == "object" and node.additional is not None:
            return f"map<string, {self._add(node.additional, f'{name}_values') or _DYN}>"
        if node.type == "object":
            self._add_message(name, {**node.properties, **(more or {})}.items())
            return f"{_SELF}.{name}"
        if node.type == "string" and node.format in _UNSUPPORTED:
            return _UNSUPPORTED[node.format]
        return _PLAIN.get(node.type, "")

    def _add_message(self, name: str, properties: Iterable[tuple[str, Node]]) -> None:
        kinds = [(escaped(field), self._add(child, f"{name}_{at}")) for at, (field, child) in enumerate(properties)]
        message = self._file.message_type.add(name=name)
        message.options.deprecated_legacy_json_field_conflicts = True  # a_b and aB are the same in JSON to protobuf
        for at, (field, kind) in enumerate(kinds, start=1):
            if field and kind:
                _add_field(message, field, at, kind)


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    label = _OPTIONAL
    if kind.startswith("map<") and any(each.name == _entry_name(name) for each in message.nested_type):
        kind = _DYN  # two that protobuf cannot tell apart: a_b and aB
    if kind.startswith("map<"):
        kind, label = _add_entry(message, name, kind), _REPEATED
    elif kind.startswith("list<") and not kind.startswith(("list<list<", "list<map<")):
        kind, label = kind[len("list<") : -1], _REPEATED
    field = message.field.add(name=name, number=number, label=label, json_name=f"f{number}")
    field.type = _FIELD_TYPES.get(kind, _MESSAGE)
    if field.type == _MESSAGE:
        field.type_name = ".google.protobuf.Value" if kind == _DYN or "<" in kind else f".{kind}"


def _add_entry(message: Any, name: str, kind: str) -> str:
    """The message of a mapping's entries, which protobuf knows by its name, and what it is called."""
    entry = message.nested_type.add(name=_entry_name(name))
    entry.options.map_entry = True
    _add_field(entry, "key", 1, "string")
    value = kind[len("map<string, ") : -1]
    _add_field(entry, "value", 2, _DYN if "<" in value else value)
    return f"{_SELF}.{message.name}.{entry.name}"


def _entry_name(name: str) -> str:
    return re.sub(r"(?:^|_)(.)", lambda each: each[1].upper(), name) + "Entry"
