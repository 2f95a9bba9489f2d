"""JSON merge patches (RFC 7386), as the real server applies them."""

from __future__ import annotations

from typing import Any

from cidrella.apiserver.words.statuses import bad_request
from cidrella.apiserver.words.wording import json_kind


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch in it. Neither is changed, and the result shares parts with both.

    Beyond the RFC: also within lists, members of objects that are null are left out. Raises `StatusError`.
    """
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = json_kind(patch)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merged(target, patch)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(target, dict):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    merged = {name: value for name, value in target.items() if name not in patch}
    for name, value in patch.items():
        if value is not None:
            merged[name] = _merged(target.get(name), value)
    return merged


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value
