"""Ranges of Services, and who has which address, as the page shows them: kept up change by change."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from cidrella.app.page_rows import clamp
from cidrella.core.address import Address
from cidrella.core.bands import Band
from cidrella.core.prefix import PrefixError
from cidrella.serviceip.ranges import Ranges, find_ranges
from cidrella.web import api

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cidrella.core.prefix import Prefix
    from cidrella.model.serviceip import SeenService, SeenServiceCIDR
    from cidrella.serviceip.ranges import KnownRange, RefusedRange


class Seats:
    """Who sits where. What changed since the last time is taken by one who shows it."""

    def __init__(self) -> None:
        self._holders: dict[Address, dict[str, None]] = {}
        self._rows: dict[Address, api.Service] = {}
        self._touched: dict[Address, None] = {}
        self._used: Counter[tuple[str, str]] = Counter()
        """By range and band, how many of the rows are there."""
        self._ranges = Ranges()

    def change(self, old: SeenService | None, new: SeenService | None) -> None:
        """A Service came, changed, or went. O(addresses)."""
        for address in _addresses(old):
            holders = self._holders[address]
            holders.pop(old.name, None)  # type: ignore[union-attr] # it has addresses
            if not holders:
                del self._holders[address]
            self._touched[address] = None
        for address in _addresses(new):
            self._holders.setdefault(address, {})[new.name] = None  # type: ignore[union-attr] # likewise
            self._touched[address] = None

    def set_ranges(self, flag: Sequence[Prefix], cidrs: Iterable[SeenServiceCIDR]) -> None:
        """There are other ranges. O(Services)."""
        self._ranges = find_ranges(flag, cidrs)
        self._touched |= dict.fromkeys(self._holders)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is the matter with ranges, beside those that are shown."""
        return self._ranges.warnings

    @property
    def touched(self) -> bool:
        """Whether there is something to take."""
        return bool(self._touched)

    def take(self, most: int | None = None) -> tuple[list[api.Service], list[str]]:
        """The rows that changed, so many at most, and the addresses that nobody has any more."""
        rows: list[api.Service] = []
        gone: list[str] = []
        for address in list(islice(self._touched, most)):
            del self._touched[address]
            if (before := self._rows.pop(address, None)) is not None:
                self._used[before.range, before.band] -= 1
            if address in self._holders:
                row = self._rows[address] = self._row(address)
                self._used[row.range, row.band] += 1
                rows.append(row)
            else:
                gone.append(str(address))
        return rows, gone

    def ranges(self) -> list[api.ServiceRange]:
        """The ranges, with what is used of their bands by the rows that were taken."""
        unused = (*self._ranges.refused, *self._ranges.left_out)
        return [*map(self._known, self._ranges.known), *map(_unused, unused)]

    def _row(self, address: Address) -> api.Service:
        found = next((each.range for each in self._ranges.known if address.inside(each.range.cidr)), None)
        band = ""
        if found is not None and (offset := found.offset(address)) is not None:
            band = _name(found.band(offset))
        return api.Service(
            address=str(address),
            range="" if found is None else str(found.cidr),
            band=band,
            holder=", ".join(sorted(self._holders[address])),
        )

    def _known(self, known: KnownRange) -> api.ServiceRange:
        cidr = str(known.range.cidr)
        bands: dict[Band, api.Band] = {}
        for band in Band:
            first, end = known.range.bounds(band)
            if first < end:
                bands[band] = api.Band(
                    first=str(known.range.address(first)),
                    last=str(known.range.address(end - 1)),
                    total=clamp(end - first),
                    used=self._used[cidr, _name(band)],
                )
        return api.ServiceRange(
            range=cidr,
            family=str(known.range.cidr.family),
            source=known.source,
            static=bands.get(Band.STATIC),
            dynamic=bands.get(Band.DYNAMIC),
            message="" if known.gives else "it gives nothing new: its ServiceCIDR is being deleted, or is not ready",
        )


def _unused(refused: RefusedRange) -> api.ServiceRange:
    return api.ServiceRange(
        range=str(refused.cidr),
        family=str(refused.cidr.family),
        source=refused.source,
        static=None,
        dynamic=None,
        message=f"its bands are not shown: {refused.why}",
    )


def _addresses(service: SeenService | None) -> dict[Address, None]:
    """Each once, however often and in whatever spelling it has it."""
    found: dict[Address, None] = {}
    for text in service.cluster_ips if service is not None else ():
        with suppress(PrefixError):  # which is no address that anybody could be shown at
            found[Address.parse_lenient(text)] = None
    return found


def _name(band: Band) -> str:
    return "static" if band is Band.STATIC else "dynamic"
