"""The ledgers of one process, kept in step with the ranges that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cidrella.serviceip.ledger import Ledger
from cidrella.serviceip.ranges import Ranges

if TYPE_CHECKING:
    from collections.abc import Collection

    from cidrella.core.bands import ServiceRange
    from cidrella.kube.client import Client
    from cidrella.serviceip.foreign import Foreign
    from cidrella.serviceip.ranges import KnownRange

_log = structlog.get_logger()


class Books:
    """One ledger for each range in use. What changes is logged once."""

    def __init__(self, client: Client, foreign: Foreign) -> None:
        self._client = client
        self._foreign = foreign
        self._entries: tuple[tuple[KnownRange, Ledger], ...] = ()
        """Replaced as a whole: metrics may be asked for on another thread."""
        self.ranges = Ranges()
        """As last updated; none before that."""

    def update(self, ranges: Ranges) -> None:
        """These are the ranges now. A ledger of a range that stays is the same as before."""
        before = {ledger.range: ledger for ledger in self.ledgers()}
        self._log(ranges, before)
        self.ranges = ranges
        self._entries = tuple((known, before.get(known.range) or self._open(known.range)) for known in ranges.known)
        for service_range in before.keys() - {known.range for known in ranges.known}:
            self._foreign.drop(service_range)

    def ledgers(self) -> list[Ledger]:
        """All of them, in the order of the ranges."""
        return [ledger for _, ledger in self._entries]

    def giving(self) -> list[Ledger]:
        """Those that give something new.

        One whose object was never seen is left out as long as another of its family gives: it has just come, and its
        object is still to be made.
        """
        giving = [ledger for known, ledger in self._entries if known.gives]
        ready = {each.range.cidr.family for each in giving if each.state is not None}
        return [each for each in giving if each.state is not None or each.range.cidr.family not in ready]

    def _open(self, service_range: ServiceRange) -> Ledger:
        return Ledger(self._client, service_range, foreign=self._foreign.of(service_range))

    def _log(self, ranges: Ranges, before: Collection[ServiceRange]) -> None:
        for refused in ranges.refused:
            if refused not in self.ranges.refused:
                _log.error(
                    "a range of Services is not used", cidr=str(refused.cidr), of=refused.source, why=refused.why
                )
        for warning in ranges.warnings:
            if warning not in self.ranges.warnings:
                _log.warning(warning)
        for known in ranges.known:
            if known not in self.ranges.known:
                _log.info("a range of Services", cidr=str(known.range.cidr), of=known.source, gives=known.gives)
        for service_range in before:
            if service_range not in {known.range for known in ranges.known}:
                _log.info("a range of Services is no more", cidr=str(service_range.cidr))
