"""Whether a value is what its schema asks for: types, bounds, patterns, formats, alternatives.

The words are those of Kubernetes. Where alternatives (`anyOf`, `oneOf`) all fail, it tells what the nearest one misses:
that of which most was looked at, which is why every check returns how much it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.schemas.correlating import same_as, within
from cidrella.apiserver.schemas.formats import FORMATS
from cidrella.apiserver.schemas.structural import INT_OR_STRING, NOTHING
from cidrella.apiserver.words import faults
from cidrella.apiserver.words.statuses import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.apiserver.schemas.structural import Node

    Json = dict[str, Any]

_NIL: Final = "<nil>"
_JSON_TYPES: Final = {
    type(None): ("null", ""),
    bool: ("boolean", ""),
    float: ("number", "float64"),
    str: ("string", ""),
    list: ("array", ""),
    dict: ("object", ""),
}
_WHOLE_MAX: Final = 1 << 53
"""Below it, every whole number is one of the floating-point numbers."""
_INT64: Final = range(-(1 << 63), 1 << 63)
_INT_RANGES: Final = {"int32": range(-(1 << 31), 1 << 31), "int64": _INT64}
_LIMITS: Final = frozenset({"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"})
_FLOAT32_MAX: Final = 3.4028234663852886e38


def conform(root: Node, value: Any, old: Any) -> list[Fault]:
    """What is wrong with a value, but for what was so before."""
    found: list[Fault] = []
    _check(root, value, "", found, NOTHING if old is None else old)
    return list(dict.fromkeys(found))


def placed(found: list[Fault], path: str) -> list[Fault]:
    """What was found wrong with a value by itself, under the path at which it stands."""
    return [each._replace(field=path if each.field in ("", _NIL) else f"{path}.{each.field}") for each in found]


def wrong_defaults(node: Node, where: str) -> list[Fault]:
    """What is wrong with the defaults of a node and of all within it."""
    found: list[Fault] = []
    if node.default is not NOTHING:
        found = placed(conform(node, node.default, None), f"{where}.default")
    for step, child in node.children():
        found += wrong_defaults(child, f"{where}{step}")
    return found


def _check(node: Node, value: Any, path: str, found: list[Fault], old: Any = NOTHING) -> int:
    before = len(found)
    looked = _check_value(node, value, path, found, old)
    if len(found) > before and same_as(value, old):
        del found[before:]
    return looked


def _check_value(node: Node, value: Any, path: str, found: list[Fault], old: Any) -> int:
    looked = 2
    if node.type:
        found += _type_fault(node, value, path)
    elif node.definition.get(INT_OR_STRING) and json_type(value)[0] not in ("integer", "string"):
        found += _neither(value, path)
    if value is None:
        return looked + _check_choice(node, value, path, found)
    if node.all_of or node.any_of or node.one_of or node.none_of:
        looked += _check_alternatives(node, value, path, found)
    if isinstance(value, str):
        found += _string_faults(node, value, path)
    elif isinstance(value, dict):
        looked += _check_object(node, value, path, found, old)
    elif isinstance(value, list):
        looked += _check_list(node, value, path, found, old)
    elif not isinstance(value, bool):
        found += _number_faults(node, value, path)
    return looked + _check_choice(node, value, path, found)


def _check_choice(node: Node, value: Any, path: str, found: list[Fault]) -> int:
    """Null is no choice, not even where it is one."""
    choices = node.definition.get("enum")
    if choices is not None and (value is None or not _is_among(value, choices)):
        told = [each if isinstance(each, str) else faults.as_json(each) for each in choices]
        found.append(faults.not_supported(path, _as_go_has_it(value), told))
    return 1


def json_type(value: Any) -> tuple[str, str]:
    """The type and the format of a value as it came."""
    if isinstance(value, int) and not isinstance(value, bool):
        return ("integer", "int64") if value in _INT64 else _JSON_TYPES[float]
    return _JSON_TYPES[type(value)]


def _type_fault(node: Node, value: Any, path: str) -> Iterable[Fault]:
    kind, form = json_type(value)
    if kind == node.type or (kind == "null" and node.nullable):
        return ()
    if kind == "integer" and node.type == "number":
        return ()
    if kind == "number" and node.type == "integer" and _is_whole(value):
        return ()
    numeric = node.type in ("integer", "number")
    if node.format and kind in ("string", "array"):
        return () if not numeric else (_wrong_type(path, node.type, kind),)
    if node.format and kind != "null":
        return () if form == node.format else (_wrong_type(path, node.format, form),)
    return (_wrong_type(path, node.type, kind),)


def _is_whole(value: Any) -> bool:
    """Whether a number can be one of a whole type."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) < _WHOLE_MAX
    return value in _INT64


def _neither(value: Any, path: str) -> Iterable[Fault]:
    """What is wrong with a value that has to be a whole number or a text."""
    kind, _ = json_type(value)
    return () if kind == "number" and _is_whole(value) else (_wrong_type(path, "integer,string", kind),)


def _wrong_type(path: str, wanted: str, got: str) -> Fault:
    told = f"{_of(path)} must be of type {wanted}: {faults.quoted(got)}"
    return Fault("FieldValueTypeInvalid", path or _NIL, f"Invalid value: {faults.quoted(got)}: {told}")


def _of(path: str) -> str:
    return f"{path} in body"


def _plain(path: str, value: Any, why: str) -> Fault:
    return faults.invalid(path or _NIL, _as_go_has_it(value), f"{_of(path)} {why}")


def _as_go_has_it(value: Any) -> Any:
    """A value that is printed as Go prints it: whole numbers without a point, whatever they were written as."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _number(value: float) -> str:
    return str(_as_go_has_it(value))


def _string_faults(node: Node, value: str, path: str) -> Iterable[Fault]:
    bounds = node.definition
    if "maxLength" in bounds and len(value) > bounds["maxLength"]:
        yield faults.too_long(path, bounds["maxLength"])
    elif "minLength" in bounds and len(value) < bounds["minLength"]:
        yield _plain(path, value, f"should be at least {bounds['minLength']} chars long")
    elif node.pattern is not None and node.pattern.search(value) is None:
        yield _plain(path, value, f"should match '{bounds['pattern']}'")
    if node.format in FORMATS and not FORMATS[node.format](value):
        told = f"{_of(path)} must be of type {node.format}: {faults.quoted(value)}"
        yield Fault("FieldValueTypeInvalid", path, f"Invalid value: {faults.quoted(value)}: {told}")


def _number_faults(node: Node, value: float, path: str) -> Iterable[Fault]:
    bounds = node.definition
    if not _is_in_range(node, value):
        kind = f"{node.type} with format {node.format}" if node.format else f"{node.type} (default format)"
        yield faults.invalid(_NIL, "", f"Checked value must be of type {kind} in {path}")
    if isinstance(value, int):  # is held to whole bounds
        bounds = {name: int(each) for name, each in bounds.items() if name in _LIMITS}
    if (factor := bounds.get("multipleOf")) is not None:
        yield from _factor_faults(value, factor, path)
    if (most := bounds.get("maximum")) is not None and value >= most:
        if bounds.get("exclusiveMaximum"):
            yield _plain(path, value, f"should be less than {_number(most)}")
        elif value > most:
            yield _plain(path, value, f"should be less than or equal to {_number(most)}")
    if (least := bounds.get("minimum")) is not None and value <= least:
        if bounds.get("exclusiveMinimum"):
            yield _plain(path, value, f"should be greater than {_number(least)}")
        elif value < least:
            yield _plain(path, value, f"should be greater than or equal to {_number(least)}")


def _factor_faults(value: float, factor: float, path: str) -> Iterable[Fault]:
    if factor <= 0:
        why = f"factor MultipleOf declared for {path} must be positive: {_number(factor)}"
        yield faults.invalid(path, factor, why)
    elif not float(value * (1 / factor) if factor < 1 else value / factor).is_integer():
        yield _plain(path, value, f"should be a multiple of {_number(factor)}")


def _is_in_range(node: Node, value: float) -> bool:
    if node.type == "integer":
        return _is_whole(value) and int(value) in _INT_RANGES.get(node.format, _INT64)
    return node.format != "float" or abs(value) <= _FLOAT32_MAX


def _check_object(node: Node, value: Json, path: str, found: list[Fault], old: Any) -> int:
    bounds = node.definition
    if "minProperties" in bounds and len(value) < bounds["minProperties"]:
        found.append(_plain(path, len(value), f"should have at least {bounds['minProperties']} properties"))
    if "maxProperties" in bounds and len(value) > bounds["maxProperties"]:
        found.append(_too_many(path, len(value), bounds["maxProperties"]))
    looked = 1
    for name, item in value.items():
        below = node.properties.get(name, node.additional)
        if below is not None:
            looked += _check(below, item, f"{path}.{name}" if path else name, found, within(node, old, name))
    missing = (name for name in node.required if name not in value)
    found += (faults.required(f"{path}.{name}" if path else name) for name in missing)
    return looked


def _check_list(node: Node, value: list[Any], path: str, found: list[Fault], old: Any) -> int:
    bounds = node.definition
    looked = 1
    if node.items is not None:
        for at, item in enumerate(value):
            looked += _check(node.items, item, f"{path}[{at}]", found, within(node, old, item))
    if "minItems" in bounds and len(value) < bounds["minItems"]:
        found.append(_plain(path, len(value), f"should have at least {bounds['minItems']} items"))
    if "maxItems" in bounds and len(value) > bounds["maxItems"]:
        found.append(_too_many(path, len(value), bounds["maxItems"]))
    return looked


def _too_many(path: str, count: int, most: int) -> Fault:
    items = "item" if most == 1 else "items"
    return Fault("FieldValueTooMany", path or _NIL, f"Too many: {count}: must have at most {most} {items}")


def _is_among(value: Any, choices: list[Any]) -> bool:
    if isinstance(value, float) and int(value) in (each for each in choices if isinstance(each, int)):
        return True  # as a whole number, as which it is compared with one
    return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in choices)


def _check_alternatives(node: Node, value: Any, path: str, found: list[Fault]) -> int:
    looked = 1
    if node.any_of:
        passed, nearest, looked_there = _try(node.any_of, value, path)
        looked += looked_there
        if not passed:
            found.append(faults.invalid(_NIL, "", f'"{path}" must validate at least one schema (anyOf)'))
            found += nearest
    if node.one_of:
        passed, nearest, looked_there = _try(node.one_of, value, path)
        looked += looked_there
        if passed != 1:
            count = f"Found {passed} valid alternatives" if passed else "Found none valid"
            found.append(faults.invalid(_NIL, "", f'"{path}" must validate one and only one schema (oneOf). {count}'))
            found += () if passed else nearest
    looked += _check_all(node.all_of, value, path, found)
    if node.none_of is not None and not _faults_of(node.none_of, value, path)[0]:
        found.append(faults.invalid(_NIL, "", f'"{path}" must not validate the schema (not)'))
    return looked


def _check_all(nodes: tuple[Node, ...], value: Any, path: str, found: list[Fault]) -> int:
    looked, passed = 0, 0
    for each in nodes:
        wrong, looked_there = _faults_of(each, value, path)
        looked += looked_there
        passed += not wrong
        found += wrong
    if passed < len(nodes):
        told = "" if passed else ". None validated"
        found.append(faults.invalid(_NIL, "", f'"{path}" must validate all the schemas (allOf){told}'))
    return looked


def _try(nodes: tuple[Node, ...], value: Any, path: str) -> tuple[int, list[Fault], int]:
    """How many pass, what the nearest of those that do not misses, and how much was looked at there."""
    passed, nearest, most = 0, [], -1
    for each in nodes:
        wrong, looked = _faults_of(each, value, path)
        passed += not wrong
        if wrong and looked > most:
            nearest, most = wrong, looked
    return passed, nearest, max(most, 0)


def _faults_of(node: Node, value: Any, path: str) -> tuple[list[Fault], int]:
    found: list[Fault] = []
    looked = _check(node, value, path, found)
    return found, looked
