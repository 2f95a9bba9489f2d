"""Objects of ranges that are missing or make no sense, made anew from the Services (B5).

Rules:

- Before it is made, an object must have been seen to be so for `settle` seconds. Nobody can give an address of the
  range in the meantime. So Services that were given one before are stored by then, and in the list that follows.
- Of a corrupt object nothing is believed but what it remembers of its last grants (`Ledger.establish`).
- A corrupt object is replaced only if it is still of the version that was found corrupt; a missing one is only created.
- Only the repairer does this. Every replica looks, so that it knows what there is.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cidrella.model.serviceip import range_name
from cidrella.serviceip.errors import CorruptAllocationError, MissingAllocationError, UnusableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from cidrella.kube.reflector import Reflector
    from cidrella.model.serviceip import SeenService
    from cidrella.serviceip.holders import Holders
    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.notices import Notices
    from cidrella.serviceip.tenure import Tenure

_log = structlog.get_logger()


class _Fault(NamedTuple):
    """What is wrong with an object, and since when it is known."""

    version: str
    words: str
    since: float
    told: bool


class Restorer:
    """Looks at the objects of ranges, and makes those anew that cannot be used."""

    def __init__(
        self, services: Reflector[SeenService], holders: Holders, tenure: Tenure, notices: Notices, settle: float
    ) -> None:
        self._services = services
        self._holders = holders
        self._tenure = tenure
        self._notices = notices
        self._settle = settle
        self._faults: dict[Ledger, _Fault] = {}

    @property
    def faults(self) -> Mapping[Ledger, str]:
        """The ranges whose objects cannot be used, each with the reason."""
        return {ledger: fault.words for ledger, fault in self._faults.items()}

    def keep_only(self, ledgers: Collection[Ledger]) -> None:
        """Other ranges are not used any more."""
        self._faults = {ledger: fault for ledger, fault in self._faults.items() if ledger in ledgers}

    async def look(self, ledger: Ledger, uid: str) -> None:
        """Read the object of a range, whose uid is known or "", and make it anew if it is time. Raises KubeError."""
        try:
            await ledger.refresh()
        except UnusableError as error:
            fault = self._note(ledger, error, uid)
            if self._tenure.on and asyncio.get_running_loop().time() - fault.since >= self._settle:
                await self._make(ledger, fault)
        else:
            self._faults.pop(ledger, None)

    def _note(self, ledger: Ledger, error: UnusableError, uid: str) -> _Fault:
        """Remember since when it is so; one that was written since then begins anew."""
        fault = self._faults.get(ledger)
        if fault is None or fault.version != error.version:
            fault = _Fault(error.version, str(error), asyncio.get_running_loop().time(), told=False)
            fresh = isinstance(error, MissingAllocationError) and ledger.state is None
            tell = _log.info if fresh else _log.warning
            tell("the object of a range cannot be used; it will be made from the Services", why=str(error))
        if not fault.told and self._tenure.on and isinstance(error, CorruptAllocationError):
            self._notices.corrupt(range_name(ledger.range.cidr), uid, fault.words)
            fault = fault._replace(told=True)
        self._faults[ledger] = fault
        return fault

    async def _make(self, ledger: Ledger, fault: _Fault) -> None:
        term = self._tenure.term
        await self._services.relist()
        if not self._tenure.on or term != self._tenure.term:
            return
        held = [offset for address in self._holders if (offset := ledger.range.offset(address)) is not None]
        if not await ledger.establish(held, term, fault.version):
            return  # it is another by now: it will be looked at
        state = await ledger.refresh()
        self._faults.pop(ledger, None)
        name = range_name(ledger.range.cidr)
        _log.info("the object of a range was made from the Services", name=name, addresses=len(held))
        self._notices.rebuilt(name, state.uid, len(held))
