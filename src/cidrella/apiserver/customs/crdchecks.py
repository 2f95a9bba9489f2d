"""What can be wrong with a CustomResourceDefinition, in the words of Kubernetes."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms.jsonpath import JsonPathError, json_path
from cidrella.apiserver.schemas.schema import Schema, SchemaError
from cidrella.apiserver.schemas.structuralrules import structural_faults
from cidrella.apiserver.words import faults
from cidrella.apiserver.words.naming import letter_first_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

_SCOPES: Final = ["Cluster", "Namespaced"]
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE: Final = ("string", "boolean", "integer")
_APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_PARTS: Final = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
"""Of a version. One that all versions have in common is told of as the definition's own."""
_COMMON_SCHEMA: Final = "spec.validation.openAPIV3Schema"
_COMPILED: Final = 32
"""How many schemas are remembered: one is asked for when its definition is checked, and each time that it is served."""


def compiled(definition: Json, where: str = _COMMON_SCHEMA) -> Schema:
    """A schema of a definition, made once however often it is asked for. Raises `SchemaError`."""
    return _compiled(json.dumps(definition), where)


@lru_cache(_COMPILED)
def _compiled(definition: str, where: str) -> Schema:
    return Schema(json.loads(definition), where)


def definition_faults(crd: Json) -> list[Fault]:
    """All that is wrong with a definition by itself, in the order of a real API server."""
    spec, versions = crd["spec"], crd["spec"]["versions"] or []
    common = [part for part in _PARTS if all(each.get(part) == versions[0].get(part) for each in versions)]
    return [
        *_group_faults(spec["group"]),
        *_scope_faults(spec["scope"]),
        *_version_faults(spec["versions"], common),
        *_names_faults(spec["names"]),
        *(_part_faults(versions[0], common, "spec") if versions else ()),
        *_conversion_faults(spec["conversion"]["strategy"]),
        *_stored_faults(versions, crd["status"]["storedVersions"]),
        *_last_faults(spec, crd["metadata"].get("annotations") or {}),
    ]


def change_faults(new: Json, old: Json) -> Iterator[Fault]:
    """What of it cannot be changed, once it is served."""
    for path in (("group",), ("names", "plural")):
        yield from _immutable(new["spec"], old["spec"], path)
    if is_established(old):
        for path in (("scope",), ("names", "kind")):
            yield from _immutable(new["spec"], old["spec"], path)


def is_established(crd: Json) -> bool:
    """Whether it is served."""
    conditions = crd["status"].get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _immutable(new: Json, old: Json, path: tuple[str, ...]) -> Iterator[Fault]:
    for name in path[:-1]:
        new, old = new[name], old[name]
    if new[path[-1]] != old[path[-1]]:
        yield faults.invalid(f"spec.{'.'.join(path)}", new[path[-1]], "field is immutable")


def _group_faults(group: str) -> Iterator[Fault]:
    if not group:
        yield faults.required("spec.group")
    elif why := ",".join(subdomain_faults(group)):
        yield faults.invalid("spec.group", group, why)
    elif "." not in group:
        yield faults.invalid("spec.group", group, "should be a domain with at least one dot")


def _scope_faults(scope: str) -> Iterator[Fault]:
    if not scope:
        yield faults.required("spec.scope")
    elif scope not in _SCOPES:
        yield faults.not_supported("spec.scope", scope, _SCOPES)


def _names_faults(names: Json) -> Iterator[Fault]:
    for field in ("plural", "singular", "kind", "listKind"):
        name, mixed = names.get(field, ""), field.lower().endswith("kind")
        if not name:
            yield faults.required(f"spec.names.{field}")
        elif why := ",".join(letter_first_faults(name.lower() if mixed else name)):
            why = f"may have mixed case, but should otherwise match: {why}" if mixed else why
            yield faults.invalid(f"spec.names.{field}", name, why)
    yield from _label_faults(names, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield faults.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _label_faults(names, "categories")


def _label_faults(names: Json, field: str) -> Iterator[Fault]:
    for at, name in enumerate(names.get(field) or ()):
        if why := ",".join(letter_first_faults(name)):
            yield faults.invalid(f"spec.names.{field}[{at}]", name, why)


def _conversion_faults(strategy: str) -> Iterator[Fault]:
    if strategy == "Webhook":
        yield faults.forbidden("spec.conversion.strategy", "webhooks that convert are not known here")
    elif strategy != "None":
        yield faults.not_supported("spec.conversion.strategy", strategy, ["None", "Webhook"])


def _last_faults(spec: Json, annotations: Json) -> Iterator[Fault]:
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield faults.invalid("spec.preserveUnknownFields", True, f"cannot set to true, {instead}")
    if f".{spec['group']}".endswith(_PROTECTED) and not annotations.get(_APPROVED):
        see = "see https://github.com/kubernetes/enhancements/pull/1111"
        why = f'protected groups must have approval annotation "{_APPROVED}", {see}'
        yield faults.required(f"metadata.annotations[{_APPROVED}]", why)


def _version_faults(given: list[Json] | None, common: Sequence[str]) -> Iterator[Fault]:
    versions = given or []
    for at, version in enumerate(versions):
        if "openAPIV3Schema" not in version.get("schema", {}):
            yield faults.required(f"spec.versions[{at}].schema.openAPIV3Schema")
    own = [part for part in _PARTS if part not in common]
    for at, version in enumerate(versions):
        yield from _version_name_faults(version["name"], f"spec.versions[{at}].name")
        yield from _part_faults(version, own, f"spec.versions[{at}]")
    if len({each["name"] for each in versions}) < len(versions):
        yield faults.invalid("spec.versions", _as_go_has_them(versions), "must contain unique version names")
    if sum(each["storage"] for each in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield faults.invalid("spec.versions", given and _as_go_has_them(versions), why)
    if versions and versions[0]["name"]:
        yield from _version_name_faults(versions[0]["name"], "spec.version")


def _version_name_faults(name: str, field: str) -> Iterator[Fault]:
    if why := ",".join(letter_first_faults(name)):
        yield faults.invalid(field, name, why)


def _part_faults(version: Json, parts: Sequence[str], path: str) -> Iterator[Fault]:
    """What is wrong with some parts of a version."""
    where = _COMMON_SCHEMA if path == "spec" else f"{path}.schema.openAPIV3Schema"
    schema, found = _checked(version.get("schema", {}).get("openAPIV3Schema"), where)
    if "schema" in parts:
        yield from _root_faults(version, where)
        yield from found
    if "subresources" in parts and "scale" in version.get("subresources", {}):
        yield faults.forbidden(f"{path}.subresources.scale", "this subresource is not known here")
    if "additionalPrinterColumns" in parts:
        for at, column in enumerate(version.get("additionalPrinterColumns", ())):
            yield from _column_faults(column, f"{path}.additionalPrinterColumns[{at}]")
    if "selectableFields" in parts and schema is not None:
        yield from _selector_faults(version.get("selectableFields", ()), schema, f"{path}.selectableFields")


def _root_faults(version: Json, where: str) -> Iterator[Fault]:
    """What a status of its own asks of the whole object."""
    kind = version.get("schema", {}).get("openAPIV3Schema", {}).get("type", "object")
    if "status" in version.get("subresources", {}) and kind != "object":
        why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield faults.invalid(f"{where}.type", kind, why)


def _checked(definition: Json | None, where: str) -> tuple[Schema | None, list[Fault]]:
    """A schema, if nothing is wrong with it, or what is."""
    if definition is None:
        return None, []
    if found := list(structural_faults(definition, where)):
        return None, found
    try:
        schema = compiled(definition, where)
    except SchemaError as error:
        return None, error.faults
    found = schema.default_faults(where)
    return None if found else schema, found


def _selector_faults(fields: Sequence[Json], schema: Schema, place: str) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, field in enumerate(fields):
        path, where = field["jsonPath"], f"{place}[{at}].jsonPath"
        node = None if path.startswith(".metadata") else schema.node_at(path)
        if not path:
            yield faults.required(where)
        elif node is None:
            yield faults.invalid(where, path, "is an invalid path: does not refer to a valid field")
        elif node.type not in _SELECTABLE:
            allowed = "Enum string fields and strings with formats are allowed."
            why = f"must point to a field of type string, boolean or integer. {allowed}"
            yield faults.invalid(where, path, why)
        elif path in seen:
            yield faults.duplicate(where, path)
        seen.add(path)


def _column_faults(column: Json, path: str) -> Iterator[Fault]:
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column["name"]:
        yield faults.required(f"{path}.name")
    if not column["type"]:
        yield faults.required(f"{path}.type", types)
    elif column["type"] not in _COLUMN_TYPES:
        yield faults.invalid(f"{path}.type", column["type"], types)
    if column.get("format", "byte") not in _COLUMN_FORMATS:
        why = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield faults.invalid(f"{path}.format", column["format"], why)
    where = column["jsonPath"]
    if not where:
        yield faults.required(f"{path}.JSONPath")
    elif not where.startswith("."):
        yield faults.invalid(f"{path}.JSONPath", where, "must be a simple json path starting with .")
    else:
        try:
            json_path(where)
        except JsonPathError as error:
            yield faults.invalid(f"{path}.JSONPath", where, str(error))


def _stored_faults(versions: list[Json], stored: list[str] | None) -> Iterator[Fault]:
    """Whether the versions that objects may be stored in are there."""
    if not stored:
        yield faults.invalid("status.storedVersions", None, "must have at least one stored version")
        return
    names = {each["name"] for each in versions}
    for at, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, "
                "and must remain in spec.versions until a storage migration ensures no data remains persisted "
                f"in {name} and removes {name} from status.storedVersions"
            )
            yield faults.invalid(f"status.storedVersions[{at}]", name, why)
    for each in versions:
        if each["storage"] and each["name"] not in stored:
            why = f"must have the storage version {each['name']}"
            yield faults.invalid("status.storedVersions", stored, why)


def _as_go_has_them(versions: list[Json]) -> list[Json]:
    """Versions as messages quote them."""
    apart = dict.fromkeys(("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields"))
    return [
        {
            "Name": each["name"],
            "Served": each["served"],
            "Storage": each["storage"],
            "Deprecated": each.get("deprecated", False),
            "DeprecationWarning": each.get("deprecationWarning"),
            **apart,
        }
        for each in versions
    ]
