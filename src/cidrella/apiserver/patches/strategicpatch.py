"""Strategic merge patches, which kubectl sends for built-in kinds: lists are merged too, where the schema says how.

A list whose schema has `x-kubernetes-patch-strategy: merge` is merged: objects by `x-kubernetes-patch-merge-key`, other
values as a set. Any other list is replaced. Directives in a patch say more:

- `$patch: replace` or `delete` in an object replaces or empties it; in an item of a list, `delete` takes the item with
  its key away, and `replace` makes the other items all there are;
- `$deleteFromPrimitiveList/<list>` takes values out of a list;
- `$setElementOrder/<list>` says in which order items come;
- `$retainKeys` names the members that an object keeps.

What is not a patch is a bad request. What cannot be done, the real server takes for a fault of its own (500), which
this one does as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.words.statuses import StatusError, bad_request
from cidrella.apiserver.words.wording import as_go, json_kind

if TYPE_CHECKING:
    Json = dict[str, Any]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"

_NOTHING: Final = object()
_GO_TYPES: Final = {
    "object": "map[string]interface {}",
    "array": "[]interface {}",
    "number": "int64",
    "null": "%!s(<nil>)",
}


def strategic_patch(target: Json, patch: Any, schema: Json) -> Json:
    """The target with the patch in it, merged as the schema says. Neither is changed. Raises `StatusError`."""
    if patch is None:
        return target
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}")
    return _merge_objects(target, patch, schema)


def _merge_objects(target: Json, patch: Json, schema: Json) -> Json:
    if _PATCH in patch:
        return _replaced(patch)
    merged = _retained(target, patch)
    rest = {name: value for name, value in patch.items() if name != _RETAIN}
    for name in [name for name in rest if name.startswith(_ORDER)]:
        order = rest.pop(name)
        _apply_order(merged, rest, _field(name, _ORDER), order, schema)
    for name, value in rest.items():
        if name.startswith(_DELETE):
            _delete_values(merged, _field(name, _DELETE), value)
        else:
            _merge_member(merged, name, value, _schema_of(schema, name))
    return merged


def _replaced(patch: Json) -> Json:
    match patch[_PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _PATCH}
        case "delete":
            return {}
        case unknown:
            raise _failure(f"unknown patch type: {as_go(unknown)} in map: {as_go(patch)}")


def _retained(target: Json, patch: Json) -> Json:
    if _RETAIN not in patch:
        return dict(target)
    names = patch[_RETAIN]
    given = [
        name for name, value in patch.items() if value is not None and not name.startswith((_RETAIN, _ORDER, _DELETE))
    ]
    if not isinstance(names, list) or any(name not in names for name in given):
        raise bad_request("invalid patch format of retainKeys")
    return {name: value for name, value in target.items() if name in names}


def _merge_member(merged: Json, name: str, value: Any, schema: Json) -> None:
    """Merge one member into the object that is being made."""
    current = merged.get(name)
    if isinstance(current, dict) and isinstance(value, dict):
        merged[name] = value if "replace" in _strategies(schema) else _merge_objects(current, value, schema)
    elif isinstance(current, list) and isinstance(value, list):
        merged[name] = _merge_lists(current, value, schema) if "merge" in _strategies(schema) else value
    else:
        fresh = _fresh(value)
        if fresh is None or fresh is _NOTHING:
            merged.pop(name, None)
        else:
            merged[name] = fresh


def _delete_values(merged: Json, name: str, values: Any) -> None:
    if values is None:
        merged.pop(name, None)
    elif isinstance(values, list) and isinstance(merged.get(name), list):
        merged[name] = [value for value in merged[name] if value not in values]


def _apply_order(merged: Json, rest: Json, name: str, order: Any, schema: Json) -> None:
    """Put a list in order, with what the patch has for it merged in first, and taken out of the rest of the patch."""
    for each in (order, merged.get(name, []), rest.get(name, [])):
        if not isinstance(each, list):
            raise _failure(f"expected a []interface {{}}, but received a {_go_type(each)}")
    if name not in merged and name not in rest:
        return
    field = _schema_of(schema, name)
    key = _merge_key(field)
    before, patch = merged.get(name, []), rest.get(name, [])
    _check_order(patch, order, key)
    if not before and not patch:
        raise _failure("no elements in any of the given slices")
    if name in rest:
        _merge_member(merged, name, rest.pop(name), field)
    merged[name] = _ordered(merged[name], _remembered(before, patch, key), order, key)


def _remembered(before: list[Any], patch: list[Any], key: str) -> list[Any]:
    """The order that the real server takes for the one there was, once a patch took items out of a list.

    It reuses the list's memory: as many new items as were taken out count as having been there, at the end.
    """
    gone = [_identity(each, key) for each in patch if isinstance(each, dict) and each.get(_PATCH) == "delete"]
    kept = [each for each in before if not gone or _identity(each, key) not in gone]
    there = [_identity(each, key) for each in kept]
    fresh = [each for each in patch if not (isinstance(each, dict) and _PATCH in each)]
    added = [each for each in fresh if _identity(each, key) not in there]
    return [*kept, *added[: len(before) - len(kept)]]


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The items of a patch must all stand in the order that it gives, one after the other."""
    if not order:
        return
    left = [each for each in patch if not (isinstance(each, dict) and each.get(_PATCH) == "delete")]
    for each in order:
        while left and isinstance(left[0], dict) and _PATCH in left[0]:
            left.pop(0)
        if left and _identity(left[0], key) == _identity(each, key):
            left.pop(0)
    if left:
        told = f"The order in patch list:\n{as_go(patch)}\n doesn't match {_ORDER} list:\n{as_go(order)}\n"
        raise _failure(told)


def _merge_lists(target: list[Any], patch: list[Any], schema: Json) -> list[Any]:
    kinds = {type(each) for each in (*target, *patch)}
    if kinds == {list}:
        told = "the server rejected our request due to an error in our request"
        raise StatusError(422, "Invalid", told, {})
    if len(kinds) > 1:
        raise _failure(f"list element types are not identical: {as_go([target, patch])}")
    if kinds != {dict}:
        return _ordered(list(dict.fromkeys((*target, *patch))), target, patch, "")
    key = _merge_key(schema)
    target, patch = _without_special(target, patch, key)
    merged = list(target)
    for each in patch:
        found = next((index for index, item in enumerate(merged) if _matches(item, each, key)), None)
        if found is None:
            merged.append(each)
        else:
            merged[found] = _merge_objects(merged[found], each, schema.get("items", {}))
    return _ordered(merged, target, patch, key)


def _without_special(target: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Do what items with `$patch` ask for; what is left of both lists."""
    plain = [each for each in patch if _PATCH not in each]
    replace = False
    for each in patch:
        match each.get(_PATCH):
            case None:
                pass
            case "delete":
                _identity(each, key)
                target = [item for item in target if not _matches(item, each, key)]
            case "replace":
                replace = True
            case "merge":
                raise _failure("merging lists cannot yet be specified in the patch")
            case unknown:
                raise _failure(f"unknown patch type: {as_go(unknown)} in map: {as_go(each)}")
    return (plain, []) if replace else (target, plain)


def _ordered(items: list[Any], before: list[Any], order: list[Any], key: str) -> list[Any]:
    """Items in their order: those that are named in `order` as there, the others as they were before.

    Where the two meet, an item of the others goes first only if both were there before, in this order. So what is new
    comes in front.
    """
    was = [_identity(each, key) for each in before]
    wanted = [_identity(each, key) for each in order]
    named = _sorted([each for each in items if _identity(each, key) in wanted], wanted, key)
    others = _sorted([each for each in items if _identity(each, key) not in wanted], was, key)
    merged: list[Any] = []
    while others and named:
        other, name = _identity(others[0], key), _identity(named[0], key)
        first = other in was and name in was and was.index(other) < was.index(name)
        merged.append((others if first else named).pop(0))
    return [*merged, *others, *named]


def _sorted(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """Items in an order, by insertion. What the order does not name goes in front, and lets what comes later pass."""
    found: list[Any] = []
    for each in items:
        identity, at = _identity(each, key), len(found)
        while at:
            other = _identity(found[at - 1], key)
            if identity in order and other in order and order.index(identity) >= order.index(other):
                break
            at -= 1
        found.insert(at, each)
    return found


def _fresh(value: Any) -> Any:
    """What a patch has where there was nothing: without nulls, and without what is only a directive."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _NOTHING
        members = {name: _fresh(each) for name, each in value.items() if each is not None}
        return {name: each for name, each in members.items() if each is not _NOTHING}
    if isinstance(value, list):
        return [each for each in map(_fresh, value) if each is not _NOTHING]
    return value


def _identity(item: Any, key: str) -> Any:
    """What an item is told by: its key, or itself."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise _failure(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    if key not in item:
        raise _failure(f"map: {as_go(item)} does not contain declared merge key: {key}")
    return item[key]


def _matches(item: Json, other: Json, key: str) -> bool:
    return key in item and item[key] == _identity(other, key)


def _merge_key(schema: Json) -> str:
    return str(schema.get("x-kubernetes-patch-merge-key", ""))


def _strategies(schema: Json) -> list[str]:
    return str(schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _schema_of(schema: Json, name: str) -> Json:
    found: Json = schema.get("properties", {}).get(name, {})
    return found


def _field(name: str, prefix: str) -> str:
    """The list that a directive is about."""
    found, slash, field = name.partition("/")
    if found != prefix or not slash:
        form = "primitive list" if prefix == _DELETE else "setElementOrder list"
        raise bad_request(f"invalid patch format of {form}")
    return field


def _go_type(value: Any) -> str:
    if isinstance(value, float):
        return "float64"
    return _GO_TYPES.get(json_kind(value), json_kind(value))


def _failure(told: str) -> StatusError:
    return StatusError(500, "", told)
