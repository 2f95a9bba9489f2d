"""A whole collection, once, for those who look and do not watch.

It is read in pages (`paging`), all of one version of the collection. Where the server has forgotten that version before
the last page was asked for (410), the list begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cidrella.kube.errors import ApiError
from cidrella.kube.paging import PageReader
from cidrella.kube.wire import read_page

if TYPE_CHECKING:
    from collections.abc import Callable

    import msgspec

    from cidrella.kube.client import Client

PAGE: Final = 500
_GONE: Final = 410
_STARTS: Final = 3
"""Lists begun before the 410 is passed on: the server keeps a version for minutes, so two in a row are rare already."""


async def list_all(
    client: Client, path: str, *, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> list[msgspec.Raw]:
    """Every object of the collection at a path, as the server sent it. Raises `KubeError`.

    `progress` is told after each page how many objects are here and how many there are, as far as the server says.
    """
    pages = PageReader(client, path, PAGE)
    for _ in range(_STARTS - 1):
        try:
            return await _list_once(pages, progress)
        except ApiError as error:
            if error.code != _GONE:
                raise
    return await _list_once(pages, progress)


async def _list_once(pages: PageReader, progress: Callable[[int, int], None]) -> list[msgspec.Raw]:
    items: list[msgspec.Raw] = []
    token = ""
    while True:
        page = read_page(await pages.read(token))
        items += page.items or ()
        progress(len(items), len(items) + (page.metadata.remaining_item_count or 0))
        if not page.metadata.next_page:
            return items
        token = page.metadata.next_page
