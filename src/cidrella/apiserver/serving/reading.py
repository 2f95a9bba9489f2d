"""Getting an object, and lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cidrella.apiserver.forms import rendering
from cidrella.apiserver.forms.negotiation import form_of
from cidrella.apiserver.serving import tokens
from cidrella.apiserver.serving.calls import Answer
from cidrella.apiserver.serving.options import EXACT, NOT_OLDER, unreadable
from cidrella.apiserver.serving.selection import Selection
from cidrella.apiserver.store.history import GoneError
from cidrella.apiserver.words.faults import quoted
from cidrella.apiserver.words.statuses import StatusError, bad_request, expired

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.serving.calls import Call
    from cidrella.apiserver.serving.holdings import Holdings
    from cidrella.apiserver.serving.options import ListOptions
    from cidrella.apiserver.serving.paths import Target
    from cidrella.apiserver.store.entries import Entry

    Json = dict[str, Any]

_TOO_OLD: Final = "The resourceVersion for the provided list is too old."


class Page(NamedTuple):
    """A part of a list."""

    entries: list[Entry]
    metadata: Json
    """Of the list: its version, and where it goes on."""


async def get(holdings: Holdings, call: Call, target: Target, served: Served) -> Answer:
    """One object."""
    form = form_of(call.accept, served.resource)
    version = call.option("resourceVersion")
    if version not in {"", "0"}:
        read = _number if _is_uncached(served) else asked_version
        check_version(holdings, served, read(version))
    entry = holdings.get(served.resource, target)
    return Answer(200, rendering.one(served, entry, form, call.option("includeObject")), form.media)


async def list_(holdings: Holdings, call: Call, target: Target, served: Served, options: ListOptions) -> Answer:
    """Objects, all or in pages."""
    form = form_of(call.accept, served.resource, many=True)
    page = page_of(holdings, target, served, options)
    metadata = page.metadata if form.kind or not served.resource.custom else {"continue": "", **page.metadata}
    body = rendering.many(served, page.entries, metadata, form, call.option("includeObject"))
    return Answer(200, body, form.media)


def check_version(holdings: Holdings, served: Served, version: int) -> None:
    """Refuse a version that there has not been. Raises `StatusError`."""
    if version <= holdings.store.version:
        return
    why = f"Timeout: Too large resource version: {version}, current: {holdings.store.version}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    later = {} if _is_uncached(served) else {"retryAfterSeconds": 1}
    raise StatusError(504, "Timeout", why, {"causes": [cause], **later})


def page_of(holdings: Holdings, target: Target, served: Served, options: ListOptions) -> Page:
    """What a list shows of what there is, or was. Raises `StatusError`."""
    selection = Selection(served, options)
    limit = 0 if options.version == "0" and not _is_uncached(served) else options.limit
    entries, version = _continued(holdings, target, served, options) or _begun(holdings, target, served, options)
    found = selection.of(entries)
    metadata: Json = {"resourceVersion": str(version)}
    found = found[:limit] if limit else found
    by_name = selection.name is not None and (target.namespace or not served.resource.namespaced)
    if found and len(found) == limit and not by_name and (rest := _after(entries, found[-1])):
        start = found[-1].path.removeprefix(f"{target.namespace}/" if target.namespace else "")
        metadata["continue"] = tokens.after(version, start).text()
        if selection.everything:
            metadata["remainingItemCount"] = rest
    return Page(found, metadata)


def _continued(
    holdings: Holdings, target: Target, served: Served, options: ListOptions
) -> tuple[list[Entry], int] | None:
    """What comes after another page."""
    if not options.token:
        return None
    if options.version not in {"", "0"}:
        raise bad_request("specifying resource version is not allowed when using continue")
    token = tokens.parse(options.token)
    version = holdings.store.version if token.version == tokens.LATEST else token.version
    try:
        entries = _entries(holdings, served, target.namespace, version)
    except GoneError:
        raise tokens.ExpiredTokenError(token) from None
    start = f"{target.namespace}/{token.start}" if target.namespace else token.start
    return entries[bisect_left(entries, start, key=_path) :], version


def _begun(holdings: Holdings, target: Target, served: Served, options: ListOptions) -> tuple[list[Entry], int]:
    """All that there is, or was at the version that is asked for."""
    asked = _number(options.version) if options.version else 0
    check_version(holdings, served, asked)
    exact = asked and (options.match == EXACT or (options.limit and options.match != NOT_OLDER))
    version = asked if exact else holdings.store.version
    try:
        return _entries(holdings, served, target.namespace, version), version
    except GoneError:
        raise expired(_TOO_OLD) from None


def _entries(holdings: Holdings, served: Served, namespace: str, version: int) -> list[Entry]:
    storage = served.resource.store_key
    if version == holdings.store.version:
        return holdings.store.entries(storage, namespace)
    check_version(holdings, served, version)
    return holdings.store.entries_at(version, storage, namespace)


def _is_uncached(served: Served) -> bool:
    """Whether the real server has no cache for a kind, which shows in what it says: events."""
    return served.resource.lifetime > 0


def _after(entries: list[Entry], last: Entry) -> int:
    """How many follow one, selected or not: the real server stops there, and does not know which are."""
    return len(entries) - bisect_right(entries, last.path, key=_path)


def _path(entry: Entry) -> str:
    return entry.path


def _number(text: str) -> int:
    try:
        return asked_version(text)
    except StatusError as error:
        raise bad_request(f"invalid resource version: {error.message}") from None


def asked_version(text: str) -> int:
    """A version to begin with, 0 for none. Raises `StatusError`: the real server calls it its own fault (500)."""
    if text and not (text.isascii() and text.isdigit()):
        raise StatusError(500, "", f"resourceVersion: Invalid value: {quoted(text)}: {unreadable(text)}")
    return int(text or 0)
