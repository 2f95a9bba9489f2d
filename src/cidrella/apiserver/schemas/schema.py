"""A schema as the server uses it: it prunes objects, puts in defaults, and tells what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas import pruning, structural
from cidrella.apiserver.schemas.conforming import conform, placed, wrong_defaults
from cidrella.apiserver.schemas.listtypes import repeated
from cidrella.apiserver.schemas.rulebook import Rulebook
from cidrella.apiserver.schemas.rules import broken
from cidrella.apiserver.words import faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cidrella.apiserver.schemas.structural import Node
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid", "FieldValueNotSupported"}
)
"""Faults after which rules are not asked: they would trip over the same thing, or have too much to look at."""
_NOT_ASKED: Final = faults.invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class SchemaError(ValueError):
    """A definition that cannot be used."""

    def __init__(self, found: list[Fault]) -> None:
        super().__init__("; ".join(map(str, found)))
        self.faults = found


class Schema:
    """An OpenAPI v3 structural schema of a whole object, with `x-kubernetes-…`. Raises `SchemaError`.

    `apiVersion`, `kind` and `metadata` are known whether the schema names them or not; what is in metadata is checked
    elsewhere. `where` is the path of the definition, for what is wrong with it.
    """

    def __init__(self, definition: Json, where: str = "") -> None:
        self.definition = definition
        found: list[Fault] = []
        self._root = structural.read(definition, where, found)
        found += Rulebook(self._root).read(where)
        if found:
            raise SchemaError(found)

    def default_faults(self, where: str) -> list[Fault]:
        """What is wrong with the defaults that it names."""
        return wrong_defaults(self._root, where)

    def node_at(self, path: str) -> Node | None:
        """What it says of a field, by a path such as `.spec.color`; None where there is no such field."""
        found = structural.resolve(self._root, path)
        return found[1] if found else None

    def prune(self, obj: Json) -> list[str]:
        """Remove unknown fields, and tell their paths: `spec.foo`, `spec.terms[0].bar`."""
        return pruning.prune(self._root, obj)

    def default(self, obj: Json) -> None:
        """Put in the defaults, and take out nulls where none may be."""
        pruning.default(self._root, obj)

    def validate(
        self, obj: Json, old: Json | None = None, earlier: Sequence[Fault] = (), part: str = ""
    ) -> list[Fault]:
        """What is wrong: types and values, lists that repeat themselves, then the rules.

        What was wrong in `old` already, and did not change, is let pass. Faults that were found earlier, in metadata,
        are not told again, but may keep the rules from being asked. With a part (`status`), types and values of that
        part alone are looked at.
        """
        found = self._conform(part, obj, old) if part else conform(self._root, obj, old)
        return found + self.rule_faults(obj, old, [*earlier, *found])

    def rule_faults(self, obj: Json, old: Json | None, earlier: Sequence[Fault]) -> list[Fault]:
        """The same without types and values: lists that repeat themselves, then the rules."""
        found = repeated(self._root, obj) if old is None or not repeated(self._root, old) else []
        if not self._root.ruled:
            return found
        if not _BLOCKING.isdisjoint(each.reason for each in (*earlier, *found)):
            return [*found, _NOT_ASKED]
        return found + broken(self._root, obj, old)

    def _conform(self, part: str, obj: Json, old: Json | None) -> list[Fault]:
        node = self._root.properties.get(part)
        if node is None or part not in obj:
            return []
        return placed(conform(node, obj[part], (old or {}).get(part)), part)
