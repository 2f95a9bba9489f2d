"""Addresses for Services, from `serviceip`, in-process: what a real API server's own allocator does.

Nobody allocates after this. So what cannot be given is a refusal, in the words of a real API server, and not left to
anybody else. An address that was given to a Service which is then not stored is given back at once (`Transaction`); the
repair loop of `serviceip` frees what that misses.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from cidrella.apiserver.kinds.servicetypes import EXTERNAL_NAME
from cidrella.apiserver.services.families import fill_families
from cidrella.apiserver.services.nodeports import give_node_ports
from cidrella.apiserver.words import faults
from cidrella.apiserver.words.statuses import StatusError, internal, invalid
from cidrella.core.address import Address
from cidrella.core.prefix import format_address
from cidrella.kube.errors import KubeError
from cidrella.model.admission import ServiceSpec
from cidrella.model.serviceip import HEADLESS
from cidrella.serviceip.admission import Plan, decide
from cidrella.serviceip.allocator import Transaction, Want
from cidrella.serviceip.errors import FullError, OutOfRangeError, Refusal, TakenError, UnusableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cidrella.serviceip.allocator import Given
    from cidrella.serviceip.review import Desk

    Json = dict[str, Any]

_LETTING_GO: Final = 5.0
"""Seconds that it may take until the books have heard that an address is nobody's any more."""
_LOOK: Final = 0.2
"""Seconds between two looks at whether it is somebody's again."""
_RETRY: Final = 1
"""Seconds after which clients are to ask again."""


class ServiceAddresses(Protocol):
    """One who gives Services their addresses."""

    async def admit(self, new: Json, old: Json | None, *, dry_run: bool) -> Transaction:
        """Fill in what a Service is to have that is created, or was `old` before. Raises StatusError.

        The transaction is to be committed when the Service is stored, and reverted if it is not. Between the return of
        this and the storing there may be no other step: node ports are only looked up.
        """


class Addressing:
    """Gives addresses from a desk. `services` returns the Services that are stored."""

    def __init__(self, desk: Desk, services: Callable[[], Iterable[Json]]) -> None:
        self._desk = desk
        self._services = services

    async def admit(self, new: Json, old: Json | None, *, dry_run: bool) -> Transaction:
        """As `ServiceAddresses` has it."""
        taken = Transaction()
        if new["spec"]["type"] != EXTERNAL_NAME:
            taken = await self._give_addresses(new, old, dry_run=dry_run)
        try:
            give_node_ports(new, self._others(new["metadata"]))
        except StatusError:
            await taken.revert()
            raise
        return taken

    def _others(self, metadata: Json) -> Iterable[Json]:
        who = (metadata["namespace"], metadata.get("name", ""))
        for each in self._services():
            if (each["metadata"]["namespace"], each["metadata"]["name"]) != who:
                yield each

    def _is_held(self, address: Address) -> bool:
        """Whether a Service has it that is stored."""
        texts = (text for each in self._services() for text in each["spec"].get("clusterIPs", []) if text != HEADLESS)
        return any(Address.parse_lenient(text) == address for text in texts)

    async def _give_addresses(self, new: Json, old: Json | None, *, dry_run: bool) -> Transaction:
        configured = self._desk.ranges.families
        if not configured:
            raise _unavailable("the ranges of Services are not known yet")
        spec, before = new["spec"], old["spec"] if old else None
        name = new["metadata"].get("name", "")
        if found := fill_families(spec, before, configured):
            raise invalid("Service", "", name, found)
        plan = decide(_fields(spec), None if before is None else _fields(before), configured)
        if not isinstance(plan, Plan):
            return Transaction()
        wants = [Want(family, address) for family, address in plan.wanted]
        try:
            taken = await self._allocate(f"{new['metadata']['namespace']}/{name}", wants, dry_run=dry_run)
        except Refusal as refusal:
            raise _refused(refusal, name, spec.get("clusterIPs", []), dry_run=dry_run) from refusal
        except (KubeError, UnusableError) as error:
            raise _unavailable(f"addresses cannot be given at present: {error}") from error
        shown = [_shown(*each, dry_run=dry_run) for each in zip(wants, taken.given, strict=True)]
        addresses = plan.filled(shown)
        spec["clusterIP"], spec["clusterIPs"] = addresses[0], list(addresses)
        return taken

    async def _allocate(self, service: str, wants: list[Want], *, dry_run: bool) -> Transaction:
        """Allocate, if need be as soon as the books have heard that an address is nobody's any more.

        No two grants are to one owner: the books would give an address that is taken to its owner again, and then keep
        it when they hear that a Service let it go, for they cannot know which of the two is stored.
        """
        owner = f"{service}*{secrets.token_hex(4)}"
        until = time.monotonic() + _LETTING_GO
        while True:
            try:
                return await self._desk.allocator.allocate(owner, wants, dry_run=dry_run)
            except TakenError as error:
                if self._is_held(error.address) or time.monotonic() >= until:
                    raise
                await self._desk.wait_free(error.address, _LOOK)


def _shown(want: Want, given: Given, *, dry_run: bool) -> str:
    """An address as it is told: a dry run does not draw any, and says that of the range itself, as a real server."""
    if dry_run and want.address is None:
        return format_address(given.cidr.family, given.cidr.network)
    return str(given.address)


def _fields(spec: Json) -> ServiceSpec:
    return msgspec.convert(spec, ServiceSpec)


def _refused(refusal: Refusal, name: str, addresses: list[str], *, dry_run: bool) -> StatusError:
    match refusal:
        case TakenError(address=address):
            why = f"failed to allocate IP {address}: provided IP is already allocated"
        case OutOfRangeError(address=address, cidrs=cidrs):
            why = f"failed to allocate IP {address}: the provided network does not match the current range"
            if dry_run:  # for which a real server has words of its own
                told = f"the provided IP ({address}) is not in the valid range"
                why = f"failed to allocate IP {address}: {told}. The range of valid IPs is {cidrs[0]}"
        case FullError():
            return internal(f'failed to allocate a serviceIP for Service "{name}": range is full')
        case _:
            return _unavailable(f"addresses cannot be given at present: {refusal}")
    return invalid("Service", "", name, [faults.invalid("spec.clusterIPs", addresses, why)])


def _unavailable(why: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", why, {"retryAfterSeconds": _RETRY})
