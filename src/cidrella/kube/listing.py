"""A whole collection, once, for those who look and do not watch.

It is read in pages, all of one version of the collection. Where the server has forgotten that version before the last
page was asked for (410), the list begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from cidrella.kube.errors import ApiError, MalformedReplyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cidrella.kube.client import Client

PAGE: Final = 500
_GONE: Final = 410
_STARTS: Final = 3
"""Lists begun before the 410 is passed on: the server keeps a version for minutes, so two in a row are rare already."""


class _ListMeta(msgspec.Struct):
    token: str | None = msgspec.field(default=None, name="continue")
    remaining: int | None = msgspec.field(default=None, name="remainingItemCount")


class _Page(msgspec.Struct):
    items: list[msgspec.Raw] | None
    """The API sends null for none now and then; a reply without the field is no list."""
    metadata: _ListMeta


async def list_all(
    client: Client, path: str, *, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> list[msgspec.Raw]:
    """Every object of the collection at a path, as the server sent it. Raises `KubeError`.

    `progress` is told after each page how many objects are here and how many there are, as far as the server says.
    """
    for _ in range(_STARTS - 1):
        try:
            return await _list_once(client, path, progress)
        except ApiError as error:
            if error.code != _GONE:
                raise
    return await _list_once(client, path, progress)


async def _list_once(client: Client, path: str, progress: Callable[[int, int], None]) -> list[msgspec.Raw]:
    items: list[msgspec.Raw] = []
    params = {"limit": str(PAGE)}
    while True:
        body = await client.request("GET", path, verb="list", params=params)
        try:
            page = msgspec.json.decode(body, type=_Page)
        except msgspec.MsgspecError as error:
            raise MalformedReplyError(f"GET {path}: the reply is no list: {error}") from error
        items += page.items or ()
        progress(len(items), len(items) + (page.metadata.remaining or 0))
        if not page.metadata.token:
            return items
        params["continue"] = page.metadata.token
