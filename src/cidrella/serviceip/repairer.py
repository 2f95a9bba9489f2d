"""The repair loop: round after round, the books are compared with the Services (B8).

A round:

1. see that our term stands in the object of each range, and read it;
2. list the Services, so that the list is newer than what was read: what a Service has and the object lacks is missing;
3. plan, which is a pure function (`core.repair`): put back what is missing, free what nobody had for three rounds;
4. change the object by that plan, and tell of what was found.

Others give addresses all the while, so that the object has moved between 1 and 4. An address that was given since is
in no plan, for a plan frees only what was given when it was read. One that was freed since and given to another is
known by what the object remembers of its last grants; where it does not remember far enough back, the address is not
freed (`State.unmoved`). Likewise strikes count on only if the address is surely still given as it was in the round
before: else they begin anew.

Strikes are in memory: whoever leads next begins from none.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from cidrella.core.address import Address
from cidrella.core.repair import STRIKES, RepairPlan, ServiceHolding, Wrong, plan_repair
from cidrella.kube.errors import KubeError
from cidrella.serviceip.errors import DeposedError, UnusableError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from cidrella.core.bands import ServiceRange
    from cidrella.kube.reflector import Reflector
    from cidrella.model.serviceip import SeenService
    from cidrella.serviceip.books import Books
    from cidrella.serviceip.holders import Holders
    from cidrella.serviceip.ledger import Ledger
    from cidrella.serviceip.notices import Notices
    from cidrella.serviceip.state import State
    from cidrella.serviceip.tenure import Tenure

_log = structlog.get_logger()


class _Done(NamedTuple):
    """What became of a plan for one range."""

    freed: tuple[Address, ...] = ()
    added: tuple[Address, ...] = ()
    moved: tuple[Address, ...] = ()
    """What was to be freed, and may be somebody's since."""


class Repairer:
    """Goes its rounds every `interval` seconds. What is `spared` is in use, and not freed."""

    def __init__(  # noqa: PLR0913 -- what it compares, what it writes, and whom it tells
        self,
        books: Books,
        services: Reflector[SeenService],
        holders: Holders,
        tenure: Tenure,
        notices: Notices,
        *,
        spared: Container[Address],
        interval: float,
    ) -> None:
        self._books = books
        self._services = services
        self._holders = holders
        self._tenure = tenure
        self._notices = notices
        self._spared = spared
        self._interval = interval
        self._term = ""
        self._strikes: dict[Address, int] = {}
        self._before: dict[ServiceRange, State] = {}
        """What was read in the last round, when the strikes were given."""

    async def run(self) -> None:
        """Go round until cancelled: a repairer that leads no more is to be stopped."""
        while True:
            await self.round()
            await asyncio.sleep(self._interval)

    async def round(self) -> None:
        """One round. What cannot be done now is left to the next."""
        term = self._tenure.term
        if term != self._term:
            self._term, self._strikes, self._before = term, {}, {}
        read = [(ledger, state) for ledger in self._books.ledgers() if (state := await self._read(ledger)) is not None]
        await self._services.relist()
        states = [state for _, state in read]
        holdings = [ServiceHolding(each.name, each.cluster_ips) for each in self._services.objects.values()]
        plan = plan_repair(
            [(state.range, state.bitmap) for state in states], holdings, self._standing(states), self._spared
        )
        done = await asyncio.gather(*(self._change(ledger, state, plan, term) for ledger, state in read))
        if not self._tenure.on or term != self._tenure.term:
            return
        settled = {address for each in done for address in (*each.freed, *each.moved)}
        # What was to be freed and could not be is freed in the next round, if it still can.
        self._strikes = dict(plan.strikes) | {each: STRIKES - 1 for each in plan.free if each not in settled}
        self._before = {state.range: state for state in states}
        self._tell(plan, states, put_back={address for each in done for address in each.added})

    async def _read(self, ledger: Ledger) -> State | None:
        """The object with our term in it; None if it cannot be had now."""
        try:
            state = await ledger.refresh()
            if state.repairer != self._tenure.term:
                await self._tenure.appoint(ledger)
                state = await ledger.refresh()
        except UnusableError:
            return None  # for the restorer
        except (KubeError, DeposedError) as error:
            _log.warning("a range is left out of this round", range=str(ledger.range.cidr), error=str(error))
            return None
        return state

    def _standing(self, states: Iterable[State]) -> dict[Address, int]:
        """The strikes that still count: of addresses that surely nobody was given since the last round."""
        standing = {}
        for state in states:
            before = self._before.get(state.range)
            for address, count in self._strikes.items() if before else ():
                offset = state.range.offset(address)
                if before and offset is not None and state.unmoved(offset, before):
                    standing[address] = count
        return standing

    async def _change(self, ledger: Ledger, read: State, plan: RepairPlan, term: str) -> _Done:
        """Do what the plan says of one range."""
        offset_of = ledger.range.offset
        missing = [offset for address in plan.put_back if (offset := offset_of(address)) is not None]
        idle = [offset for address in plan.free if (offset := offset_of(address)) is not None]
        arrived = {offset: entry for offset, entry in read.recent.items() if entry.again and self._has(ledger, offset)}
        if not (missing or idle or arrived):
            return _Done()

        def edit(state: State) -> tuple[list[int], list[int], list[int]]:
            self._tenure.require(term)
            moved = [offset for offset in idle if not state.unmoved(offset, read)]
            going = [
                offset
                for offset in idle
                if offset not in moved
                and not self._has(ledger, offset)
                and state.range.address(offset) not in self._spared
            ]
            freed = [offset for offset in going if state.free(offset, term)]
            added = [offset for offset in missing if self._has(ledger, offset) and state.add(offset)]
            for offset, entry in arrived.items():
                if state.recent.get(offset) == entry:
                    state.forget(offset)
            return freed, added, moved

        try:
            done = await ledger.change(edit, once=True)
        except (KubeError, UnusableError, DeposedError) as error:
            _log.warning("a repair is left to the next round", range=str(ledger.range.cidr), error=str(error))
            return _Done()
        freed, added, moved = (tuple(map(ledger.range.address, offsets)) for offsets in done)
        if freed:
            _log.info("freed addresses that no Service has", range=str(ledger.range.cidr), addresses=len(freed))
        return _Done(freed, added, moved)

    def _has(self, ledger: Ledger, offset: int) -> bool:
        return ledger.range.address(offset) in self._holders

    def _tell(self, plan: RepairPlan, states: list[State], put_back: Container[Address]) -> None:
        """Events on Services, but for addresses of ranges that were not looked at, or that are not kept here."""
        ranges = self._books.ranges
        looked_at = {state.range.cidr for state in states}
        elsewhere = [each.range.cidr for each in ranges.known if each.range.cidr not in looked_at]
        for finding in plan.findings:
            if finding.wrong is Wrong.NOT_VALID:
                self._notices.found(finding)
                continue
            address = Address.parse_lenient(finding.address)
            if finding.wrong is Wrong.NOT_ALLOCATED and address not in put_back:
                continue
            if finding.wrong is Wrong.OUT_OF_RANGE and (
                ranges.unkept(address) or any(address.inside(cidr) for cidr in elsewhere)
            ):
                continue
            self._notices.found(finding)
