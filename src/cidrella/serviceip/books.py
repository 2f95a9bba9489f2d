"""The ledgers of one process, kept in step with the ranges that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cidrella.serviceip.ledger import Ledger
from cidrella.serviceip.ranges import Ranges

if TYPE_CHECKING:
    from cidrella.core.prefix import Prefix
    from cidrella.kube.client import Client
    from cidrella.serviceip.foreign import Foreign

_log = structlog.get_logger()


class Books:
    """One ledger for each range in use. What changes is logged once."""

    def __init__(self, client: Client, foreign: Foreign) -> None:
        self._client = client
        self._foreign = foreign
        self._ledgers: dict[Prefix, Ledger] = {}
        self.ranges = Ranges()
        """As last updated; none before that."""

    def update(self, ranges: Ranges) -> None:
        """These are the ranges now. A ledger of a range that stays is the same as before."""
        before, self.ranges = self.ranges, ranges
        for refused in ranges.refused:
            if refused not in before.refused:
                _log.error(
                    "a range of Services is not used", cidr=str(refused.cidr), of=refused.source, why=refused.why
                )
        for warning in ranges.warnings:
            if warning not in before.warnings:
                _log.warning(warning)
        known = {each.range.cidr: each for each in ranges.known}
        for cidr in self._ledgers.keys() - known.keys():
            _log.info("a range of Services is no more", cidr=str(cidr))
            self._foreign.drop(self._ledgers.pop(cidr).range)
        for cidr in known.keys() - self._ledgers.keys():
            _log.info("a range of Services", cidr=str(cidr), of=known[cidr].source, gives=known[cidr].gives)
            service_range = known[cidr].range
            self._ledgers[cidr] = Ledger(self._client, service_range, foreign=self._foreign.of(service_range))

    def ledgers(self) -> list[Ledger]:
        """All of them, in the order of the ranges."""
        return [self._ledgers[each.range.cidr] for each in self.ranges.known]

    def giving(self) -> list[Ledger]:
        """Those that give something new.

        One whose object was never seen is left out as long as another of its family gives: it has just come, and its
        object is still to be made.
        """
        giving = [self._ledgers[each.range.cidr] for each in self.ranges.known if each.gives]
        ready = {each.range.cidr.family for each in giving if each.state is not None}
        return [each for each in giving if each.state is not None or each.range.cidr.family not in ready]
