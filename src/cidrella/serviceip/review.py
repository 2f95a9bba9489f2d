"""One question of the API server about a Service, answered: what `admission` decides, and what the allocator gives.

Rules:

- Denied is only what no second thought of Kubernetes could mend: an address that is taken or in no range, a range that
  is full. Everything else is let through as it is, or there is no answer at all and the `failurePolicy` decides.
- Each address is given before the API server has stored the Service, and perhaps for nothing. What then nobody has is
  found by the repair loop (B8), so it is not given without need: not for a Service that exists already.
- A dry run proposes an address and changes nothing (B7).
- The same question asked twice within a minute gets the same answer. So much is remembered, and no more.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import structlog

from cidrella.core.bands import Band
from cidrella.core.prefix import Family
from cidrella.kube.errors import KubeError
from cidrella.model.admission import AdmissionResponse, Service, Status
from cidrella.serviceip.admission import Left, Plan, decide, patch
from cidrella.serviceip.allocator import Want
from cidrella.serviceip.errors import FullError, NoRangeError, OutOfRangeError, Refusal, TakenError, UnusableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.core.address import Address
    from cidrella.core.bands import ServiceRange
    from cidrella.model.admission import AdmissionRequest
    from cidrella.serviceip.allocator import Allocator, Given, Transaction
    from cidrella.serviceip.ranges import Ranges, RefusedRange

MEMORY: Final = 60.0
"""Seconds that an answer is remembered: longer than the API server waits for one."""
QUESTIONS_MAX: Final = 4096
"""How many answers are looked for at a time, and as many are remembered. API servers ask for some hundreds at most."""
_LETTING_GO: Final = 2.0
"""Seconds that it may take until the address of a Service that is gone is free: a watch, and a write."""
_INVALID: Final = 422
_SERVICES: Final = ("", "v1", "services")
_OPERATIONS: Final = ("CREATE", "UPDATE")

_log = structlog.get_logger()


class MalformedError(ValueError):
    """A question that makes no sense, in words."""


class UnavailableError(Exception):
    """There can be no answer now, in words; the next time there may be."""


class Desk(Protocol):
    """What is asked of the one who knows the ranges and the Services."""

    @property
    def ranges(self) -> Ranges:
        """Those there are; no families before they are known."""

    @property
    def allocator(self) -> Allocator:
        """Who gives addresses."""

    def holder(self, address: Address) -> str:
        """The Service that is known to have an address, "" if none is."""

    async def exists(self, service: str) -> bool:
        """Whether there is a Service of this name. Raises KubeError."""

    async def wait_free(self, address: Address, seconds: float) -> bool:
        """Wait until an address is free that a Service is about to let go. Raises KubeError, UnusableError."""


class Reviewer:
    """Answers questions, many at a time."""

    def __init__(self, desk: Desk, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._desk = desk
        self._clock = clock
        self._under_way: dict[str, asyncio.Task[AdmissionResponse]] = {}
        self._answers: dict[str, tuple[float, AdmissionResponse]] = {}
        """Until when each is remembered; the oldest come first."""
        self._late: set[str] = set()

    async def review(self, request: AdmissionRequest, within: float) -> AdmissionResponse:
        """The answer, if there is one within so many seconds. Raises `MalformedError` or `UnavailableError`.

        What is given after that is taken back.
        """
        self._forget()
        _, known = self._answers.get(request.uid, (0.0, None))
        if known is not None:
            return known
        answer = self._under_way.get(request.uid) or self._begin(request)
        done, _ = await asyncio.wait([answer], timeout=within)
        if not done:
            self._late.add(request.uid)
            raise UnavailableError(f"there was no answer within {within:g} s")
        return answer.result()

    async def close(self) -> None:
        """Wait for the answers that are still looked for."""
        if self._under_way:
            await asyncio.wait(list(self._under_way.values()))

    def _begin(self, request: AdmissionRequest) -> asyncio.Task[AdmissionResponse]:
        if len(self._under_way) >= QUESTIONS_MAX:
            raise UnavailableError("there are too many questions at once")
        answer = asyncio.create_task(self._answer(request))
        self._under_way[request.uid] = answer
        answer.add_done_callback(partial(self._found, request.uid))
        return answer

    def _found(self, uid: str, answer: asyncio.Task[AdmissionResponse]) -> None:
        """Remember an answer, and nothing of a question that has none: what went wrong keeps all of it alive."""
        del self._under_way[uid]
        if not answer.cancelled() and answer.exception() is None:
            self._answers[uid] = (self._clock() + MEMORY, answer.result())
            self._forget()

    def _forget(self) -> None:
        """Drop what has been remembered for long enough, and the oldest of too many."""
        now = self._clock()
        while self._answers:
            uid, (until, _) = next(iter(self._answers.items()))
            if until > now and len(self._answers) <= QUESTIONS_MAX:
                break
            del self._answers[uid]

    async def _answer(self, request: AdmissionRequest) -> AdmissionResponse:
        try:
            return await self._find(request)
        except (KubeError, UnusableError) as error:
            raise UnavailableError(f"addresses cannot be given at present: {error}") from error
        finally:
            self._late.discard(request.uid)

    async def _find(self, request: AdmissionRequest) -> AdmissionResponse:
        nothing = AdmissionResponse(uid=request.uid, allowed=True)
        asked = _read(request)
        if asked is None:
            return nothing
        ranges = self._desk.ranges
        plan = decide(asked.service.spec, asked.old.spec if asked.old else None, ranges.families or tuple(Family))
        if plan is Left.NEEDS_NOTHING:
            return nothing
        if not ranges.families:
            raise UnavailableError("the ranges of Services are not known yet")
        if isinstance(plan, Left):
            return nothing
        if not asked.old and await self._desk.exists(asked.owner):
            return nothing
        if refused := _unmanaged(plan, ranges):
            warning = f"Cidrella gives no address here, Kubernetes does: {refused}"
            return msgspec.structs.replace(nothing, warnings=[_short(warning)])
        return await self._give(request, asked.owner, plan)

    async def _give(self, request: AdmissionRequest, owner: str, plan: Plan) -> AdmissionResponse:
        wants = [Want(family, address) for family, address in plan.wanted]
        try:
            transaction = await self._allocate(owner, wants, dry_run=bool(request.dry_run))
        except NoRangeError:
            return AdmissionResponse(uid=request.uid, allowed=True)  # Kubernetes has none either, and says so
        except Refusal as refusal:
            message = self._explain(refusal)
            _log.info("a Service is denied", service=owner, why=message)
            status = Status(code=_INVALID, reason="Invalid", message=message)
            return AdmissionResponse(uid=request.uid, allowed=False, status=status)
        if request.uid in self._late:
            await transaction.revert()
            raise UnavailableError("nobody waits for the answer any more")
        await transaction.commit()
        given = transaction.given
        _log.debug("addresses given", service=owner, addresses=[str(each.address) for each in given])
        warnings = list(_warnings(self._desk.ranges, wants, given))
        if all(want.address for want in wants):
            return AdmissionResponse(uid=request.uid, allowed=True, warnings=warnings)
        addresses = plan.filled([str(each.address) for each in given])
        return AdmissionResponse(
            uid=request.uid, allowed=True, patch=patch(addresses), patch_type="JSONPatch", warnings=warnings
        )

    async def _allocate(self, owner: str, wants: list[Want], *, dry_run: bool) -> Transaction:
        """Allocate, if need be once more when an address is free that is on its way to be.

        Who deletes a Service and makes another with its address at once would be told otherwise that it is taken.
        """
        try:
            return await self._desk.allocator.allocate(owner, wants, dry_run=dry_run)
        except TakenError as error:
            holder = self._desk.holder(error.address)
            if holder and await self._desk.exists(holder):
                raise
            if not await self._desk.wait_free(error.address, _LETTING_GO):
                raise
        return await self._desk.allocator.allocate(owner, wants, dry_run=dry_run)

    def _explain(self, refusal: Refusal) -> str:
        """Why there is no address, and what to do about it."""
        giving = [each.range.cidr for each in self._desk.ranges.known if each.gives]
        match refusal:
            case TakenError(address=address):
                holder = self._desk.holder(address) or refusal.by
                if holder and " " not in holder:  # with a space it is of another kind, which is named
                    holder = f"the Service {holder}"
                what = f"{address} is taken by {holder}" if holder else f"{address} is taken"
                return f"{what}; choose another address, or leave out spec.clusterIP to be given one"
            case OutOfRangeError(address=address):
                ranges = [str(each) for each in giving if each.family is address.family]
                return (
                    f"{address} is no usable address of a range of Services ({', '.join(ranges) or 'there is none'}); "
                    "choose one that is, or leave out spec.clusterIP to be given one"
                )
            case FullError():
                return f"{refusal}; delete Services that are not in use, or add a ServiceCIDR"
        return str(refusal)


class _Asked(NamedTuple):
    service: Service
    old: Service | None
    owner: str


def _read(request: AdmissionRequest) -> _Asked | None:
    """The Service that is asked about; None if it is none, or nothing is to be decided about it."""
    resource = (request.resource.group, request.resource.version, request.resource.resource)
    if resource != _SERVICES or request.sub_resource or request.operation not in _OPERATIONS:
        return None
    try:
        service = _service(request.object)
        old = _service(request.old_object)
    except msgspec.MsgspecError as error:
        raise MalformedError(f"no Service: {error}") from error
    if service is None:
        raise MalformedError(f"{request.operation} without an object")
    if old is None and request.operation == "UPDATE":
        raise MalformedError("UPDATE without an oldObject")
    if service.metadata.deletion_timestamp is not None:
        return None  # it only waits for its finalizers
    return _Asked(service, old, _owner(request, service))


def _service(raw: msgspec.Raw) -> Service | None:
    return msgspec.json.decode(raw, type=Service | None)


def _owner(request: AdmissionRequest, service: Service) -> str:
    """Whom the books name: "namespace/name". One whose name is still to be made up is like nobody else: hence the *."""
    meta = service.metadata
    name = request.name or meta.name or f"{meta.generate_name or ''}*{request.uid[:8]}"
    return f"{request.namespace or meta.namespace or ''}/{name}"


def _unmanaged(plan: Plan, ranges: Ranges) -> RefusedRange | None:
    """The range of the API server's that is not used here and that an address would have to come from."""
    giving = {each.range.cidr.family for each in ranges.known if each.gives}
    for family, address in plan.wanted:
        for refused in ranges.refused:
            if refused.cidr.family is not family:
                continue
            if family not in giving if address is None else _beyond(address, ranges, refused):
                return refused
    return None


def _beyond(address: Address, ranges: Ranges, refused: RefusedRange) -> bool:
    """Whether an address is of a range that is not used here, and of none that is."""
    first, size = refused.cidr.network, refused.cidr.size
    inside = first <= address.number < first + size
    return inside and all(each.range.offset(address) is None for each in ranges.known)


def _warnings(ranges: Ranges, wants: list[Want], given: tuple[Given, ...]) -> Iterator[str]:
    """What to say of addresses that people chose where others are drawn."""
    by_cidr = {each.range.cidr: each.range for each in ranges.known}
    for want, each in zip(wants, given, strict=True):
        found = by_cidr.get(each.cidr)
        if want.address is None or found is None or not found.static or each.band is Band.STATIC:
            continue
        yield _short(
            f"{each.address} is in the dynamic band of {each.cidr}. That works, but another Service may be given such "
            f"an address first: {_span(found)} are kept for addresses that are chosen."
        )


def _span(found: ServiceRange) -> str:
    first, end = found.bounds(Band.STATIC)
    return f"{found.address(first)} to {found.address(end - 1)}"


def _short(warning: str) -> str:
    """A warning that the API server passes on whole."""
    return warning if len(warning) <= 256 else f"{warning[:255]}…"
