"""Custom resources: their definitions, and the resources that come of them."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cidrella.apiserver.customs import crdschemas
from cidrella.apiserver.customs.crdchecks import change_faults, compiled, definition_faults, is_established
from cidrella.apiserver.customs.crdshape import DEFINITION, DefinitionSchema, schemas_in
from cidrella.apiserver.forms.jsonpath import field_reader
from cidrella.apiserver.forms.tables import printer_column
from cidrella.apiserver.kinds.kind import BuiltIn
from cidrella.apiserver.resource import Column, Resource, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

__all__ = ["accept", "begin_deletion", "definition_resource", "end_deletion", "is_established", "resources_of"]

GROUP: Final = "apiextensions.k8s.io"
FINALIZER: Final = f"customresourcecleanup.{GROUP}"
"""Held until no object of the kind is left."""
_NAMED_OTHERWISE: Final = 'must be spec.names.plural+"."+spec.group'
_SCHEMA_PATH: Final = ".spec.versions.schema.openAPIV3Schema"


class _Condition(NamedTuple):
    """What is told of a definition in its status."""

    type: str
    status: str
    reason: str
    message: str


_NO_CONFLICTS: Final = _Condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")
_ESTABLISHED: Final = _Condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
_NOT_ESTABLISHED: Final = _Condition("Established", "False", "NotAccepted", "not all names are accepted")
_TERMINATING: Final = _Condition(
    "Terminating",
    "True",
    "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
)


def definition_resource() -> Resource:
    """The kind of the definitions themselves."""
    return Resource(
        group=GROUP,
        version="v1",
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        namespaced=False,
        schema=DefinitionSchema(),
        strategy=Definitions(DEFINITION),
        columns=(
            Column(
                "Created At",
                lambda obj: obj["metadata"].get("creationTimestamp"),
                type="date",
                description="When it was made.",
            ),
        ),
        singular="customresourcedefinition",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        status=True,
        returns_deleted=True,
    )


class Definitions(BuiltIn):
    """What is particular about definitions."""

    def read(self, obj: Json) -> str:
        """Bring it into its form, with the schemas in it, and fill in what can be told from the rest."""
        if why := super().read(obj):
            return why
        for _, schema in schemas_in(obj):
            if why := crdschemas.unreadable(schema, _SCHEMA_PATH, "CustomResourceValidation"):
                return why
        names = obj["spec"]["names"]
        if kind := names["kind"]:
            names["singular"] = names.get("singular") or kind.lower()
            names["listKind"] = names.get("listKind") or f"{kind}List"
        obj["spec"].setdefault("conversion", {"strategy": "None"})
        return ""

    def prepare_create(self, new: Json) -> None:
        """A new one is not served yet."""
        stored = [each["name"] for each in new["spec"]["versions"] or () if each["storage"]][:1]
        names = {"plural": "", "kind": ""}
        new["status"] = {"conditions": None, "acceptedNames": names, "storedVersions": stored or None}
        new["metadata"]["generation"] = 1

    def prepare_update(self, new: Json, old: Json) -> None:
        """The status stays, but for a version that is stored from now on."""
        new["status"] = deepcopy(old["status"])
        stored = new["status"]["storedVersions"]
        stored += [
            each["name"] for each in new["spec"]["versions"] or () if each["storage"] and each["name"] not in stored
        ]
        _count_change(new, old, lambda obj: obj["spec"])

    def prepare_status(self, new: Json, old: Json) -> None:
        """All but the status stays."""
        stored = old["status"]["storedVersions"]
        status = {**new["status"], "storedVersions": new["status"].get("storedVersions") or stored}
        _replace(new, {**old, "status": status})

    def name_faults(self, name: str, new: Json) -> list[str]:
        """It follows from what is defined."""
        spec = new["spec"]
        return [] if name == f"{spec['names']['plural']}.{spec['group']}" else [_NAMED_OTHERWISE]

    def validate_create(self, new: Json) -> list[Fault]:
        """All that can be wrong with it by itself."""
        return definition_faults(new)

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """The same, if anything changed, and what cannot be changed."""
        found = list(change_faults(new, old))
        return found or ([] if new["spec"] == old["spec"] else definition_faults(new))


def _replace(new: Json, content: Json) -> None:
    kept = deepcopy(content)
    new.clear()
    new.update(kept)


def _count_change(new: Json, old: Json, wanted: Callable[[Json], Any]) -> None:
    """The generation tells states of what is wanted apart."""
    generation = old["metadata"].get("generation", 0)
    new["metadata"]["generation"] = generation + (wanted(new) != wanted(old))


def accept(crd: Json, others: Iterable[Json], now: str) -> bool:
    """Give a definition the names that no other of its group has; with all of them, it is served from then on.

    Sets the names and the conditions in its status. Whether anything changed.
    """
    before = deepcopy(crd["status"])
    status, names = crd["status"], crd["spec"]["names"]
    taken, kinds = _taken(crd, others)
    accepted, conflict = dict(status["acceptedNames"]), _NO_CONFLICTS
    for field in ("plural", "singular", "shortNames", "kind", "listKind"):
        among = kinds if field.lower().endswith("kind") else taken
        wanted = names.get(field, [] if field == "shortNames" else "")
        clashing = [each for each in (wanted if field == "shortNames" else [wanted]) if each in among]
        if clashing:
            reason = f"{field[0].upper()}{field[1:]}Conflict"
            told = ", ".join(f'"{each}" is already in use' for each in clashing)
            conflict = _Condition("NamesAccepted", "False", reason, told)
        else:
            accepted[field] = wanted
    accepted["categories"] = names.get("categories", [])
    status["acceptedNames"] = {name: each for name, each in accepted.items() if each or name in ("plural", "kind")}
    _set_condition(crd, now, conflict)
    if conflict.status == "True":
        _set_condition(crd, now, _ESTABLISHED)
    elif not is_established(crd):
        _set_condition(crd, now, _NOT_ESTABLISHED)
    return bool(status != before)


def _taken(crd: Json, others: Iterable[Json]) -> tuple[set[str], set[str]]:
    """The names and the kinds that the others of its group have."""
    taken: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == crd["spec"]["group"] and other["metadata"]["name"] != crd["metadata"]["name"]:
            names = other["status"]["acceptedNames"]
            taken |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return taken - {""}, kinds - {""}


def _set_condition(crd: Json, now: str, condition: _Condition) -> None:
    conditions = crd["status"]["conditions"] = crd["status"].get("conditions") or []
    told = {**condition._asdict(), "lastTransitionTime": now}
    for at, each in enumerate(conditions):
        if each["type"] == condition.type:
            kept = each["lastTransitionTime"] if each["status"] == condition.status else now
            conditions[at] = {**told, "lastTransitionTime": kept}
            return
    conditions.append(told)


def begin_deletion(crd: Json, now: str) -> None:
    """What the deletion of a definition begins with; it ends with `end_deletion`, when none of its objects is left."""
    metadata = crd["metadata"]
    metadata.setdefault("deletionTimestamp", now)
    if FINALIZER not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
    _set_condition(crd, now, _TERMINATING)


def end_deletion(crd: Json) -> bool:
    """Let go of a definition of which no objects are left. Whether it may go: nobody else has anything to do before."""
    left = [each for each in crd["metadata"].get("finalizers", ()) if each != FINALIZER]
    crd["metadata"]["finalizers"] = left
    if not left:
        del crd["metadata"]["finalizers"]
    return not left


def resources_of(crd: Json) -> list[Resource]:
    """What is served for a definition: a resource for each version. Raises `SchemaError`."""
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    wanted = {**spec["names"], **names}
    return [_resource(spec, wanted, version) for version in spec["versions"] if version["served"]]


def _resource(spec: Json, names: Json, version: Json) -> Resource:
    has_status = "status" in version.get("subresources", {})
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        schema=compiled(version["schema"]["openAPIV3Schema"]),
        strategy=CustomObjects(has_status=has_status),
        columns=tuple(map(printer_column, version.get("additionalPrinterColumns", ()))),
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        list_kind=names.get("listKind", ""),
        status=has_status,
        custom=True,
        fields={
            each["jsonPath"].removeprefix("."): field_reader(each["jsonPath"])
            for each in version.get("selectableFields", ())
        },
    )


class CustomObjects(Strategy):
    """What all objects of custom resources have in common."""

    def __init__(self, *, has_status: bool) -> None:
        self._apart = {"metadata", "status"} if has_status else {"metadata"}
        self._has_status = has_status

    def prepare_create(self, new: Json) -> None:
        """Where the status is written apart, a new one has none."""
        if self._has_status:
            new.pop("status", None)
        new["metadata"]["generation"] = 1

    def prepare_update(self, new: Json, old: Json) -> None:
        """Where the status is written apart, it stays."""
        if self._has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = deepcopy(old["status"])
        _count_change(new, old, self._wanted)

    def prepare_status(self, new: Json, old: Json) -> None:
        """All but the status stays."""
        content = {name: value for name, value in old.items() if name != "status"}
        if "status" in new:
            content["status"] = new["status"]
        _replace(new, content)

    def _wanted(self, obj: Json) -> Json:
        return {name: value for name, value in obj.items() if name not in self._apart}
