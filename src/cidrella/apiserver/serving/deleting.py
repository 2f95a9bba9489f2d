"""Deleting an object, or all that match.

What has finalizers is only marked, and goes when the last of them is taken away. So do namespaces, and definitions of
custom resources, which wait for what is in them. Whose owner goes stays: there is no garbage collector, and policies
that would have one do more than the default are accepted and mean the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cidrella.apiserver.forms import rendering
from cidrella.apiserver.forms.negotiation import form_of
from cidrella.apiserver.serving.calls import Answer
from cidrella.apiserver.serving.deleteoptions import DeleteOptions, delete_options
from cidrella.apiserver.serving.options import list_options
from cidrella.apiserver.serving.reading import page_of
from cidrella.apiserver.words.statuses import StatusError, conflict
from cidrella.apiserver.words.times import format_time

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.resource import Resource
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]


class Deleted(NamedTuple):
    """What came of a deletion."""

    entry: Entry
    """What there was, or is now, where it is only marked; of what is gone, with the version of the deletion."""
    gone: bool
    obj: Json | None = None
    """What would be, of a dry run."""


async def delete(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """One object."""
    form = form_of(call.accept, served.resource)
    options = delete_options(call)
    entry = holdings.get(served.resource, target)
    deleted = remove(holdings, served, entry, options)
    if deleted.gone and not served.resource.returns_deleted:
        found = entry.read()["metadata"]
        return Answer(200, rendering.success(served, found))
    if deleted.obj is not None:
        return Answer(200, rendering.one_of(served, deleted.obj, form), form.media)
    return Answer(200, rendering.one(served, deleted.entry, form), form.media)


async def delete_all(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """All that match; the answer is what there was."""
    form = form_of(call.accept, served.resource)
    asked = list_options(call)
    options = delete_options(call)
    page = page_of(holdings, target, served, asked)
    for entry in page.entries:
        remove(holdings, served, entry, options)
    metadata = page.metadata if form.kind or not served.resource.custom else {"continue": "", **page.metadata}
    return Answer(200, rendering.many(served, page.entries, metadata, form), form.media)


def remove(holdings: Holdings, served: Served, entry: Entry, options: DeleteOptions) -> Deleted:
    """Delete an object, or mark it. Raises `StatusError`."""
    resource = served.resource
    obj = served.read(entry)
    _check(resource, obj, entry, options)
    now = format_time(holdings.now())
    begin = holdings.beginnings.get(resource.store_key)
    if begin:
        return _mark(holdings, resource, entry, obj, options, begin=begin, now=now)
    if obj["metadata"].get("finalizers"):
        return _mark(holdings, resource, entry, obj, options, begin=_begin_deletion, now=now)
    if options.dry_run:
        return Deleted(entry, gone=True, obj=obj)
    return Deleted(holdings.delete(resource, entry), gone=True)


def _mark(  # noqa: PLR0913 -- one way for three kinds of beginning
    holdings: Holdings, resource: Resource, entry: Entry, obj: Json, options: DeleteOptions, *, begin: Any, now: str
) -> Deleted:
    if "deletionTimestamp" in obj["metadata"]:
        return Deleted(entry, gone=False)
    begin(obj, now)
    if options.dry_run:
        return Deleted(entry, gone=False, obj=obj)
    return Deleted(holdings.replace(resource, entry, obj), gone=False)


def _begin_deletion(obj: Json, now: str) -> None:
    metadata = obj["metadata"]
    metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0
    if metadata.get("generation"):
        metadata["generation"] += 1


def _check(resource: Resource, obj: Json, entry: Entry, options: DeleteOptions) -> None:
    """Refuse to delete another object, or another state of it, than the client meant. Raises `StatusError`."""
    if options.uid and options.uid != obj["metadata"]["uid"]:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({obj['metadata']['uid']})"
        raise _stale(resource, obj, f"{why}. The object might have been deleted and then recreated")
    if options.version and options.version != str(entry.version):
        why = f"the ResourceVersion in the precondition ({options.version}) does not match"
        raise _stale(
            resource, obj, f"{why} the ResourceVersion in record ({entry.version}). The object might have been modified"
        )


def _stale(resource: Resource, obj: Json, why: str) -> StatusError:
    group = "" if resource.encode else resource.group  # events.k8s.io speaks for the group it is stored in
    return conflict(resource.kind, group, obj["metadata"]["name"], why)
