"""Objects as they are answered: as they are, by their metadata alone, or as a table.

As they are, they are bytes already: what is stored goes out behind what says its kind, and lists are joined of it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.forms.negotiation import METADATA, METADATA_LIST, PLAIN, TABLE
from cidrella.apiserver.forms.tables import table
from cidrella.apiserver.serving.calls import JSON, YAML, Answer, encode, write
from cidrella.apiserver.words.statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cidrella.apiserver.forms.negotiation import Form
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]

_PARTIAL: Final = {"kind": METADATA, "apiVersion": "meta.k8s.io/v1"}


def typed(resource: Resource, obj: Json) -> Json:
    """An object with its kind and apiVersion."""
    return {"kind": resource.kind, "apiVersion": resource.group_version, **obj}


def one(served: Served, entry: Entry, form: Form, include: str = "") -> bytes:
    """A stored object."""
    if form is PLAIN:
        return served.head + served.raw(entry)[1:]
    return one_of(served, served.read(entry), form, include)


def one_of(served: Served, obj: Json, form: Form, include: str = "") -> bytes:
    """An object that is not stored, or not so."""
    match form.kind:
        case "PartialObjectMetadata":
            return write({**_PARTIAL, "metadata": obj["metadata"]}, form.media)
        case "Table":
            found = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return write(rows(served, [obj], found, include), form.media)
        case "PartialObjectMetadataList":
            raise _mismatch(served, METADATA_LIST, "not a list", served.resource.kind)
    return write(typed(served.resource, obj), form.media)


def many(served: Served, entries: Sequence[Entry], metadata: Json, form: Form, include: str = "") -> bytes:
    """A list of stored objects."""
    resource = served.resource
    if form is PLAIN:
        cut = served.item_head
        items = b",".join([cut + served.raw(each)[1:] for each in entries])
        return b'%s"metadata":%s,"items":[%s]}\n' % (served.list_head, encode(metadata), items)
    objects = [served.read(each) for each in entries]
    match form.kind:
        case "PartialObjectMetadata":
            raise _mismatch(served, METADATA, "a list", resource.list_kind or f"{resource.kind}List")
        case "Table":
            return write(rows(served, objects, metadata, include), form.media)
        case "PartialObjectMetadataList":
            parts = [{**_PARTIAL, "metadata": each["metadata"]} for each in objects] or None
            listed = {"kind": METADATA_LIST, "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": parts}
            return write(listed, form.media)
    items_ = [typed(resource, each) if resource.custom else each for each in objects]
    kind = resource.list_kind or f"{resource.kind}List"
    listed = {"kind": kind, "apiVersion": resource.group_version, "metadata": metadata, "items": items_}
    return write(listed, form.media)


def rows(served: Served, objects: Iterable[Json], metadata: Json, include: str = "") -> Json:
    """Objects as a table."""
    if include == "Object":
        objects = [typed(served.resource, each) for each in objects]
    return table(served.resource, objects, datetime.now(UTC), metadata, include or "Metadata")


def success(served: Served, metadata: Json) -> bytes:
    """The answer to a deletion after which nothing is left to show."""
    resource = served.resource
    found = (("name", metadata["name"]), ("group", resource.group), ("kind", resource.plural), ("uid", metadata["uid"]))
    details = {name: value for name, value in found if value}
    return encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


def refusal(error: StatusError, media: str = JSON) -> Answer:
    """The answer to what is refused."""
    status = error.status()
    if not error.reason:
        status.pop("reason", None)
    return Answer(error.code, write(status, media if media == YAML else JSON), media if media == YAML else JSON)


def _mismatch(served: Served, wanted: str, found: str, kind: str) -> StatusError:
    group = served.resource.group.partition(".")[0] or "core"
    go_type = (
        f"unstructured.Unstructured{'List' if found == 'a list' else ''}"
        if served.resource.custom
        else f"{group}.{kind}"
    )
    return StatusError(
        406, "NotAcceptable", f"you requested {wanted}, but the requested object is {found} (*{go_type})"
    )


__all__ = ["TABLE", "many", "one", "one_of", "refusal", "rows", "success", "typed"]
