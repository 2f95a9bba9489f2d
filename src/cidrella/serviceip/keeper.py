"""Looks at the objects of ranges every few seconds, in every replica.

So a range that overlaps what is stored is found before it is used, an object that is missing or corrupt is noticed, and
the gauges of a replica that gives nothing are true as well. Which objects there are is told by their names: their bits
are read range by range.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from cidrella.kube.errors import ApiError, KubeError
from cidrella.kube.wire import read_head, read_page
from cidrella.model.serviceip import RANGE_ALLOCATIONS_PATH, range_name
from cidrella.serviceip.ranges import find_ranges, named_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.core.prefix import Prefix
    from cidrella.kube.client import Client
    from cidrella.model.serviceip import SeenServiceCIDR
    from cidrella.serviceip.books import Books
    from cidrella.serviceip.restorer import Restorer

_log = structlog.get_logger()

_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_NOT_FOUND: Final = 404
_OFTEN: Final = 0.2
"""The part of its time to settle after which an object is looked at again that cannot be used."""


class Keeper:
    """Keeps the books in step with the flag (`ranges`), the ServiceCIDRs and what is stored.

    Every `interval` seconds, or when it is stirred; `settle` is the restorer's.
    """

    def __init__(  # noqa: PLR0913 -- what it looks at, and how often
        self,
        client: Client,
        books: Books,
        restorer: Restorer,
        cidrs: Mapping[str, SeenServiceCIDR],
        *,
        ranges: tuple[Prefix, ...],
        banded: bool,
        interval: float,
        settle: float,
    ) -> None:
        self._client = client
        self._books = books
        self._restorer = restorer
        self._cidrs = cidrs
        self._ranges = ranges
        self._banded = banded
        self._interval = interval
        self._often = min(interval, settle * _OFTEN)
        self._looked = asyncio.Event()
        self._stirred = asyncio.Event()
        self.trouble = "the ranges of Services are not known yet"
        """Why the objects cannot be looked at, for people; "" while they can."""

    async def run(self) -> None:
        """Look, again and again. To be begun when the ServiceCIDRs are listed."""
        while True:
            self._stirred.clear()
            await self._try()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._often if self._restorer.faults else self._interval):
                    await self._stirred.wait()

    def stir(self) -> None:
        """Look now: something has changed."""
        self._stirred.set()

    async def wait_looked(self) -> None:
        """Wait until the ranges are known."""
        await self._looked.wait()

    async def _try(self) -> None:
        try:
            await self._look()
        except KubeError as error:
            absent = isinstance(error, ApiError) and error.code == _NOT_FOUND
            trouble = (
                "the RangeAllocation CRD is not installed" if absent else f"RangeAllocations are out of reach: {error}"
            )
            if trouble != self.trouble:
                _log.warning(trouble)
            self.trouble = trouble
        else:
            self.trouble = ""

    async def _look(self) -> None:
        """See which ranges there are, then at the object of each. Raises KubeError."""
        uids = await self._list()
        stored = {cidr for name in uids if (cidr := named_range(name)) is not None}
        self._books.update(find_ranges(self._ranges, self._cidrs.values(), stored, banded=self._banded))
        self._restorer.keep_only(self._books.ledgers())
        for ledger in self._books.ledgers():
            await self._restorer.look(ledger, uids.get(range_name(ledger.range.cidr), ""))
        self._looked.set()

    async def _list(self) -> dict[str, str]:
        """The uids of all RangeAllocations, by name. Raises KubeError."""
        page = read_page(await self._client.request("GET", RANGE_ALLOCATIONS_PATH, verb="list", accept=_METADATA_LIST))
        return {head.name: head.uid for head in map(read_head, page.items or ())}
