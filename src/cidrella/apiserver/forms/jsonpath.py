"""The part of JSONPath that printer columns and selectable fields of CRDs use.

`.a.b`, `['a']`, `[0]`, `[-1]`, `[*]`, and items that are chosen by what they hold: `[?(@.type=="Ready")]`. Where a path
leads to several values, columns show the first. What is not there is no fault: then there is no value.
"""

from __future__ import annotations

import operator
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]
    Step = Callable[[Any], Iterator[Any]]

_PART: Final = re.compile(
    r"""
    \.(?P<name>(?:\\.|[^.\[\]'"*?@\\\s])+)
    | \[(?P<quote>['"])(?P<quoted>[^'"]*)(?P=quote)\]
    | \[(?P<index>-?[0-9]+)\]
    | \[(?P<every>\*)\]
    | \[\?\(\s*@(?P<left>(?:[^=!<>()"'\s])*)\s*(?:(?P<compare>==|!=|<=|>=|<|>)\s*(?P<right>[^()]+?))?\s*\)\]
    """,
    re.VERBOSE,
)
_COMPARE: Final = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class JsonPathError(ValueError):
    """A path that cannot be read, or is of a kind that is not supported here."""


def json_path(expression: str) -> Callable[[Any], list[Any]]:
    """All that a path leads to, as a function of an object. Raises `JsonPathError`.

    >>> json_path(".a[*].b")({"a": [{"b": 1}, {"c": 2}, {"b": 3}]})
    [1, 3]
    """
    steps = list(_steps(expression))
    return lambda value: list(_walk(value, steps))


def field_reader(expression: str) -> Callable[[Json], str]:
    """What a field selector compares: the text of the value at a path, empty where there is none.

    >>> field_reader(".spec.ready")({"spec": {"ready": True}})
    'true'
    """
    find = json_path(expression)

    def read(obj: Json) -> str:
        found = next(iter(find(obj)), None)
        if found is None:
            return ""
        return str(found).lower() if isinstance(found, bool) else str(found)

    return read


def _steps(expression: str) -> Iterator[Step]:
    at = 0
    while at < len(expression):
        match = _PART.match(expression, at)
        if match is None:
            raise JsonPathError(f"cannot read the path {expression!r} from {expression[at:]!r} on")
        yield from _step(match)
        at = match.end()


def _step(match: re.Match[str]) -> Iterator[Step]:
    match match.lastgroup:
        case "name":
            yield partial(_member, name=re.sub(r"\\(.)", r"\1", match["name"]))
        case "quoted":
            # As in a path, dots lead further, and have a backslash before them where they do not.
            for name in re.findall(r"(?:\\.|[^.\\])+", match["quoted"]):
                yield partial(_member, name=re.sub(r"\\(.)", r"\1", name))
        case "index":
            yield partial(_item, index=int(match["index"]))
        case "every":
            yield _items
        case _:
            left = json_path(match["left"])
            compare = _COMPARE[match["compare"]] if match["compare"] else None
            right = _literal(match["right"]) if match["compare"] else None
            yield partial(_chosen, left=left, compare=compare, right=right)


def _walk(value: Any, steps: list[Step]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    for each in steps[0](value):
        yield from _walk(each, steps[1:])


def _member(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _item(value: Any, index: int) -> Iterator[Any]:
    if isinstance(value, list) and -len(value) <= index < len(value):
        yield value[index]


def _items(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _chosen(
    value: Any, left: Callable[[Any], list[Any]], compare: Callable[[Any, Any], Any] | None, right: Any
) -> Iterator[Any]:
    for each in value if isinstance(value, list) else ():
        found = left(each)
        if found and (compare is None or (_comparable(found[0], right) and compare(found[0], right))):
            yield each


def _comparable(one: Any, other: Any) -> bool:
    numbers = (int, float)
    return type(one) is type(other) or (type(one) in numbers and type(other) in numbers)


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return float(text)
    raise JsonPathError(f"cannot compare with {text!r}")
