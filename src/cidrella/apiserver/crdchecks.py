"""What can be wrong with a CustomResourceDefinition, in the words of Kubernetes."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver import faults
from cidrella.apiserver.jsonpath import JsonPathError, json_path
from cidrella.apiserver.naming import letter_first_faults, subdomain_faults
from cidrella.apiserver.schema import Schema, SchemaError
from cidrella.apiserver.structuralrules import structural_faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.statuses import Fault

    Json = dict[str, Any]

_SCOPES: Final = ["Cluster", "Namespaced"]
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE: Final = ("string", "boolean", "integer")
_APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")
_ELSEWHERE: Final = {"schema": "spec.validation"}
_COMPILED: Final = 32
"""How many schemas are remembered: one is asked for when its definition is checked, and each time that it is served."""


def compiled(definition: Json, where: str = f"{_ELSEWHERE['schema']}.openAPIV3Schema") -> Schema:
    """A schema of a definition, made once however often it is asked for. Raises `SchemaError`."""
    return _compiled(json.dumps(definition), where)


@lru_cache(_COMPILED)
def _compiled(definition: str, where: str) -> Schema:
    return Schema(json.loads(definition), where)


def definition_faults(crd: Json) -> list[Fault]:
    """All that is wrong with a definition by itself."""
    spec = crd["spec"]
    return [
        *_name_faults(crd["metadata"], spec),
        *_names_faults(spec["names"]),
        *_spec_faults(spec),
        *_version_faults(spec["versions"]),
        *_stored_faults(spec["versions"] or [], crd["status"]["storedVersions"]),
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


def _name_faults(metadata: Json, spec: Json) -> Iterator[Fault]:
    group = spec["group"]
    for field in ("generateName", "name"):
        if metadata.get(field) and metadata[field] != f"{spec['names']['plural']}.{group}":
            yield faults.invalid(f"metadata.{field}", metadata[field], 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield faults.required("spec.group")
    elif why := ",".join(subdomain_faults(group)):
        yield faults.invalid("spec.group", group, why)
    elif "." not in group:
        yield faults.invalid("spec.group", group, "should be a domain with at least one dot")
    elif f".{group}".endswith(_PROTECTED) and not (metadata.get("annotations") or {}).get(_APPROVED):
        see = "see https://github.com/kubernetes/enhancements/pull/1111"
        why = f'protected groups must have approval annotation "{_APPROVED}", {see}'
        yield faults.required(f"metadata.annotations[{_APPROVED}]", why)


def _names_faults(names: Json) -> Iterator[Fault]:
    for field in ("plural", "singular", "kind", "listKind"):
        name, mixed = names.get(field, ""), field.lower().endswith("kind")
        if not name:
            yield faults.required(f"spec.names.{field}")
        elif why := ",".join(letter_first_faults(name.lower() if mixed else name)):
            why = f"may have mixed case, but should otherwise match: {why}" if mixed else why
            yield faults.invalid(f"spec.names.{field}", name, why)
    for field in ("shortNames", "categories"):
        for at, name in enumerate(names.get(field) or ()):
            if why := ",".join(letter_first_faults(name)):
                yield faults.invalid(f"spec.names.{field}[{at}]", name, why)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield faults.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _spec_faults(spec: Json) -> Iterator[Fault]:
    if not spec["scope"]:
        yield faults.required("spec.scope")
    elif spec["scope"] not in _SCOPES:
        yield faults.not_supported("spec.scope", spec["scope"], _SCOPES)
    if spec.get("preserveUnknownFields"):
        instead = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield faults.invalid("spec.preserveUnknownFields", True, f"cannot set to true, {instead}")
    strategy = spec["conversion"]["strategy"]
    if strategy == "Webhook":
        yield faults.forbidden("spec.conversion.strategy", "webhooks that convert are not known here")
    elif strategy != "None":
        yield faults.not_supported("spec.conversion.strategy", strategy, ["None", "Webhook"])


def _version_faults(given: list[Json] | None) -> Iterator[Fault]:
    versions = given or []
    if sum(each["storage"] for each in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield faults.invalid("spec.versions", given and _as_go_has_them(versions), why)
    if len({each["name"] for each in versions}) < len(versions):
        yield faults.invalid("spec.versions", _as_go_has_them(versions), "must contain unique version names")
    for at, version in enumerate(versions):
        if why := ",".join(letter_first_faults(version["name"])):
            for field in (f"spec.versions[{at}].name", *(("spec.version",) if at == 0 else ())):
                yield faults.invalid(field, version["name"], why)
        if "openAPIV3Schema" not in version.get("schema", {}):
            yield faults.required(f"spec.versions[{at}].schema.openAPIV3Schema")
    yield from _schema_faults(versions)
    yield from _extra_faults(versions)


def _extra_faults(versions: list[Json]) -> Iterator[Fault]:
    for place, columns in _each(versions, "additionalPrinterColumns"):
        for at, column in enumerate(columns):
            yield from _column_faults(column, f"{place}[{at}]")
    for place, subresources in _each(versions, "subresources"):
        if "scale" in subresources:
            yield faults.forbidden(f"{place}.scale", "this subresource is not known here")


def _schema_faults(versions: list[Json]) -> Iterator[Fault]:
    for place, holder in _each(versions, "schema"):
        if (definition := holder.get("openAPIV3Schema")) is None:
            continue
        where = f"{place}.openAPIV3Schema"
        found = list(structural_faults(definition, where))
        try:
            schema = None if found else compiled(definition, where)
        except SchemaError as error:
            found = error.faults
        else:
            found += [] if schema is None else schema.default_faults(where)
        yield from found
        if not found and schema is not None:
            yield from _selector_faults(versions, schema)


def _selector_faults(versions: list[Json], schema: Schema) -> Iterator[Fault]:
    for place, fields in _each(versions, "selectableFields"):
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


def _each(versions: list[Json], name: str) -> Iterator[tuple[str, Any]]:
    """What each version says about something, with its path: told once, elsewhere, where all say the same."""
    said = [each.get(name) for each in versions]
    if said and all(each == said[0] for each in said):
        if said[0]:
            yield _ELSEWHERE.get(name, f"spec.{name}"), said[0]
        return
    yield from ((f"spec.versions[{at}].{name}", each) for at, each in enumerate(said) if each)


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
