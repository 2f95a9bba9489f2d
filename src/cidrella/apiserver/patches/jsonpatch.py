"""JSON patches (RFC 6902), as the real server applies them.

It is laxer than the RFC: a member that is replaced need not be there, one that is copied or tested and is not there is
null, and lists may be counted from their end. A patch that does not apply is refused without saying why.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.words.statuses import StatusError, bad_request
from cidrella.apiserver.words.wording import as_json, json_kind

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

OPERATIONS_MAX: Final = 10_000
COPIED_MAX: Final = 3 * 1024 * 1024
"""Bytes of JSON that the operations of a patch may copy together."""

_DIGITS_MAX: Final = 18
_FIELDS: Final = ("op", "path", "from", "value")


class _InapplicableError(Exception):
    """The patch does not fit the object."""


def json_patch(target: Json, patch: Any) -> Any:
    """The target with the patch applied to it; the target stays as it is. Raises `StatusError`."""
    operations = _decoded(patch)
    if len(operations) > OPERATIONS_MAX:
        told = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {told}")
    document = _Document(deepcopy(target))
    try:
        for operation in operations:
            document.apply(operation)
    except _InapplicableError:
        told = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", told, {}) from None
    return document.root


def unknown_fields(patch: Any) -> list[str]:
    """What the operations of a patch have that operations have not, as in warnings: `json patch unknown field "…"`."""
    return [f"[{index}].{name}" for index, each in enumerate(patch or []) for name in each or {} if name not in _FIELDS]


def _decoded(patch: Any) -> list[Json]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, "value of type []handlers.jsonPatchOp")
    for operation in patch:
        if operation is not None and not isinstance(operation, dict):
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = (operation or {}).get(name)
            if value is not None and not isinstance(value, str):
                raise _undecodable(value, f"struct field jsonPatchOp.{name} of type string")
    return [operation or {} for operation in patch]


def _undecodable(value: Any, wanted: str) -> StatusError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_kind(value)} into Go {wanted}")


class _Document:
    """The object while operations are applied to it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied = 0
        self._operations: dict[str, Callable[[Json], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Json) -> None:
        kind = self._operations.get(operation.get("op") or "")
        if kind is None:
            raise _InapplicableError
        kind(operation)

    def _add(self, operation: Json) -> None:
        _insert(*self._find(operation, "path"), deepcopy(operation.get("value")))

    def _remove(self, operation: Json) -> None:
        _take(*self._find(operation, "path"))

    def _replace(self, operation: Json) -> None:
        value = deepcopy(operation.get("value"))
        if operation.get("path") == "":
            if not isinstance(value, dict | list):
                raise _InapplicableError
            self.root = value
            return
        container, key = self._find(operation, "path")
        if isinstance(container, list):
            container[_index(key, len(container))] = value
        else:
            container[key] = value

    def _move(self, operation: Json) -> None:
        value = _take(*self._find(operation, "from"))
        _insert(*self._find(operation, "path"), value)

    def _copy(self, operation: Json) -> None:
        value = _get(*self._find(operation, "from"))
        self._copied += len(as_json(value).encode(errors="surrogatepass"))
        if self._copied > COPIED_MAX:
            raise _InapplicableError
        _insert(*self._find(operation, "path"), deepcopy(value))

    def _test(self, operation: Json) -> None:
        found = self.root if operation.get("path") == "" else _get(*self._find(operation, "path"))
        if not same_json(found, operation.get("value")):
            raise _InapplicableError

    def _find(self, operation: Json, name: str) -> tuple[Any, str]:
        """The object or list that a pointer leads into, and the key within it."""
        keys = (operation.get(name) or "").split("/")[1:]  # what is before the first slash is not looked at
        if not keys:
            raise _InapplicableError
        container = self.root
        for key in keys[:-1]:
            container = _get(container, _unescaped(key))
            if not isinstance(container, dict | list):
                raise _InapplicableError
        return container, _unescaped(keys[-1])


def _unescaped(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")


def _get(container: Any, key: str) -> Any:
    return container[_index(key, len(container))] if isinstance(container, list) else container.get(key)


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, list):
        container.insert(len(container) if key == "-" else _index(key, len(container) + 1), value)
    else:
        container[key] = value


def _take(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container.pop(_index(key, len(container)))
    if key not in container:
        raise _InapplicableError
    return container.pop(key)


def _index(key: str, size: int) -> int:
    """Of an item in a list of a size; negative ones count from the end."""
    digits = key[1:] if key[:1] in ("+", "-") else key
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX:
        raise _InapplicableError
    index = int(key)
    if not -size <= index < size:
        raise _InapplicableError
    return index % size


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON. 1, 1.0 and true, all alike to Python, are not."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
