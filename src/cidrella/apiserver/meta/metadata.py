"""The rules for `metadata`: what it must be, what the server decides, and what stays as it is on an update.

Faults are in the words of Kubernetes. Where there are several labels or annotations that are wrong, the real server
names them in no particular order; here it is that of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from cidrella.apiserver.words.faults import forbidden, invalid, required, too_long
from cidrella.apiserver.words.naming import key_faults, label_faults, path_faults, subdomain_faults, value_faults
from cidrella.apiserver.words.statuses import bad_request, conflict
from cidrella.apiserver.words.times import format_time
from cidrella.apiserver.words.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from random import Random

    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.words.statuses import Fault, StatusError

    Json = dict[str, Any]

ANNOTATIONS_MAX: Final = 256 * 1024
"""Bytes of all keys and values of annotations together."""
STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
_GENERATED_MAX: Final = 63
"""Of names that are generated, whatever their kind allows."""

_REPEATED_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)
_STORED_ELSEWHERE: Final = {"nodes": "minions", "services": "services/specs"}
_IMMUTABLE: Final = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def put_in_namespace(metadata: Json, namespace: str) -> None:
    """Write the namespace of the request into metadata; "" where the kind has none. Raises `StatusError`."""
    named = metadata.pop("namespace", "")
    if named and namespace and named != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        metadata["namespace"] = namespace


def fill(metadata: Json, now: datetime, random: Random) -> None:
    """Write what the server decides at creation: uid, time, and a name where only its beginning is given."""
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
        metadata.pop(name, None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generated_name(metadata["generateName"], random)
    metadata["uid"] = str(UUID(int=random.getrandbits(128), version=4))
    metadata["creationTimestamp"] = format_time(now)


def generated_name(base: str, random: Random) -> str:
    """A name that begins so. No vowels, so that it spells nothing."""
    return base[: _GENERATED_MAX - _SUFFIX] + "".join(random.choices(_LETTERS, k=_SUFFIX))


def keep(new: Json, old: Json) -> None:
    """Put back into new metadata what an update cannot change. The generation is the kind's to raise."""
    for name in ("selfLink", "managedFields"):
        new.pop(name, None)
    for name in ("generation", "creationTimestamp"):
        _set(new, name, old.get(name))
    if "deletionTimestamp" in old:
        new["deletionTimestamp"] = old["deletionTimestamp"]
    for name in ("uid", "deletionGracePeriodSeconds"):
        if name in old:
            new.setdefault(name, old[name])


def drop_repeated_owners(metadata: Json, *, patched: bool = False) -> list[str]:
    """Leave out owner references that are there already, and say so: what to tell the client in a Warning header."""
    kept: list[Json] = []
    repeated: list[str] = []
    for owner in metadata.get("ownerReferences", []):
        if owner in kept:
            repeated.append(owner["uid"])
        else:
            kept.append(owner)
    if not repeated:
        return []
    metadata["ownerReferences"] = kept
    return [_REPEATED_OWNERS.format(" after mutating admission happens" if patched else "", ", ".join(repeated))]


def uid_conflict(resource: Resource, new: Json, old: Json) -> StatusError | None:
    """The refusal of a PUT that names another object's uid; None where it names none, or the right one.

    A patch cannot name another: there the uid is a field that does not change.
    """
    wanted, found = new.get("uid"), old["uid"]
    if not wanted or wanted == found:
        return None
    place = "/".join(filter(None, (_storage_path(resource), old.get("namespace"), old["name"])))
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict(resource.plural, resource.group, old["name"], why)


def create_faults(
    metadata: Json, *, namespaced: bool, name_faults: Callable[[str], list[str]] | None = None
) -> list[Fault]:
    """What is wrong with the metadata of a new object, its name generated. `name_faults`: the kind's own rule."""
    rule = name_faults or subdomain_faults
    beginning = metadata.get("generateName", "")
    found = [invalid("metadata.generateName", beginning, why) for why in rule(_masked(beginning))] if beginning else []
    name = metadata.get("name", "")
    if name:
        found += [invalid("metadata.name", name, why) for why in rule(name)]
    else:
        found.append(required("metadata.name", "name or generateName is required"))
    return found + _common_faults(metadata, _content_faults(metadata), namespaced=namespaced)


def update_faults(new: Json, old: Json, *, namespaced: bool, twice: bool = True) -> list[Fault]:
    """What is wrong with the metadata of an object that is replaced, after `keep`.

    The real server looks twice, once for all kinds and once for each, but for events, and names twice what it finds
    twice: clients see that in the causes, though not in the message.
    """
    beginning = new.get("generateName", "")
    found = [invalid("metadata.generateName", beginning, why) for why in path_faults(beginning)]
    content = _content_faults(new)
    changes = _change_faults(new, old) + content
    return found + _common_faults(new, content, namespaced=namespaced) + changes * (1 + twice)


def finalizer_faults(metadata: Json) -> list[Fault]:
    """Finalizers that built-in kinds do not take: without a domain, and none of Kubernetes' own."""
    return [
        invalid(
            f"metadata.finalizers[{index}]", each, "name is neither a standard finalizer name nor is it fully qualified"
        )
        for index, each in enumerate(metadata.get("finalizers", []))
        if _bare(each)
    ]


def finalizer_warnings(new: Json, old: Json | None = None) -> list[str]:
    """The same for custom resources, which take them: what to warn of where they were added."""
    added = set(new.get("finalizers", [])) - set((old or {}).get("finalizers", []))
    return [
        f"metadata.finalizers: {quoted(each)}: prefer a domain-qualified finalizer name"
        f"{' including a path (/)' if '.' in each else ''} to avoid accidental conflicts with other finalizer writers"
        for each in sorted(added)
        if _bare(each)
    ]


def _storage_path(resource: Resource) -> str:
    """Where the real server keeps its objects, which it tells in messages."""
    if resource.custom or resource.group == "apiextensions.k8s.io":
        return f"{resource.group}/{resource.plural}"
    return _STORED_ELSEWHERE.get(resource.plural, resource.plural)


def _common_faults(metadata: Json, content: list[Fault], *, namespaced: bool) -> list[Fault]:
    found = _namespace_faults(metadata.get("namespace", ""), namespaced=namespaced)
    generation = metadata.get("generation", 0)
    if generation < 0:
        found.append(invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    return [*found, *content, *_finalizer_name_faults(metadata.get("finalizers", []))]


def _content_faults(metadata: Json) -> list[Fault]:
    """Of what is the client's, whenever it is written."""
    return [
        *_label_faults(metadata.get("labels", {})),
        *_annotation_faults(metadata.get("annotations", {})),
        *_owner_faults(metadata.get("ownerReferences", [])),
    ]


def _change_faults(new: Json, old: Json) -> list[Fault]:
    found: list[Fault] = []
    added = sorted(set(new.get("finalizers", [])) - set(old.get("finalizers", [])))
    if "deletionTimestamp" in old and added:
        listed = ", ".join(map(quoted, added))
        why = "no new finalizers can be added if the object is being deleted, found new finalizers"
        found.append(forbidden("metadata.finalizers", f"{why} []string{{{listed}}}"))
    return found + [
        invalid(f"metadata.{name}", new.get(name), "field is immutable")
        for name in _IMMUTABLE
        if new.get(name) != old.get(name)
    ]


def _namespace_faults(namespace: str, *, namespaced: bool) -> list[Fault]:
    if namespaced and not namespace:
        return [required("metadata.namespace")]
    if namespaced:
        return [invalid("metadata.namespace", namespace, why) for why in label_faults(namespace)]
    return [forbidden("metadata.namespace", "not allowed on this type")] if namespace else []


def _label_faults(labels: Mapping[str, str]) -> list[Fault]:
    found: list[Fault] = []
    for key, value in labels.items():
        found += [invalid("metadata.labels", key, why) for why in key_faults(key)]
        found += [invalid("metadata.labels", value, why) for why in value_faults(value)]
    return found


def _annotation_faults(annotations: Mapping[str, str]) -> list[Fault]:
    found = [invalid("metadata.annotations", key, why) for key in annotations for why in key_faults(key.lower())]
    size = sum(len(text.encode(errors="surrogatepass")) for pair in annotations.items() for text in pair)
    return found if size <= ANNOTATIONS_MAX else [*found, too_long("metadata.annotations", ANNOTATIONS_MAX)]


def _owner_faults(owners: list[Json]) -> list[Fault]:
    found: list[Fault] = []
    controller = ""
    for owner in owners:
        found += _reference_faults(owner)
        if not owner.get("controller"):
            continue
        named = f"{owner['kind']}/{owner['name']}"
        if controller:
            why = 'Only one reference can have Controller set to true. Found "true" in references for'
            found.append(invalid("metadata.ownerReferences", owners, f"{why} {controller} and {named}"))
        controller = controller or named
    return found


def _reference_faults(owner: Json) -> list[Fault]:
    found: list[Fault] = []
    version = owner["apiVersion"]
    if version.count("/") > 1 or not version.rpartition("/")[2]:
        found.append(invalid("metadata.ownerReferences.apiVersion", version, "version must not be empty"))
    found += [
        invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")
        for name in ("kind", "name", "uid")
        if not owner[name]
    ]
    if (version, owner["kind"]) == ("v1", "Event"):
        why = "/v1, Kind=Event is disallowed from being an owner"
        found.append(invalid("metadata.ownerReferences", owner, why))
    return found


def _finalizer_name_faults(finalizers: list[str]) -> list[Fault]:
    found = [invalid("metadata.finalizers", each, why) for each in finalizers for why in key_faults(each)]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(invalid("metadata.finalizers", finalizers, why))
    return found


def _bare(finalizer: str) -> bool:
    return "/" not in finalizer and finalizer not in STANDARD_FINALIZERS


def _masked(beginning: str) -> str:
    """What the rule for names is asked of what a name begins with: a dash at its end is well, for more follows it.

    The real server takes the letter before the dash away as well; so does this.
    """
    return f"{beginning[:-2]}a" if len(beginning) > 1 and beginning.endswith("-") else beginning


def _set(metadata: Json, name: str, value: Any) -> None:
    if value is None:
        metadata.pop(name, None)
    else:
        metadata[name] = value
