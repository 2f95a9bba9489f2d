"""Which Service has which address, by the watch on Services. No I/O.

A batch of changes is taken as a whole: an address that leaves one Service and comes to another within it, as when a
Service is deleted and made anew, was never without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cidrella.core.address import Address
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cidrella.kube.mirror import Change
    from cidrella.model.serviceip import SeenService


class Moves(NamedTuple):
    """What a batch comes to, each with the Service that it is about."""

    lost: dict[Address, str]
    """What no Service has any more."""
    gained: dict[Address, str]
    """What a Service has that had it not before."""


class Holders:
    """Services by address. What a Service has that is no address is not looked at here (`ClusterIPNotValid`, B8)."""

    def __init__(self) -> None:
        self._services: dict[Address, list[str]] = {}

    def apply(self, changes: Sequence[Change[SeenService]]) -> Moves:
        """Take in what the watch tells. O(1) for each address of a Service that changed."""
        lost: dict[Address, str] = {}
        gained: dict[Address, str] = {}
        for old, new in changes:
            before, after = dict.fromkeys(_addresses(old)), dict.fromkeys(_addresses(new))
            for address in before.keys() - after.keys():
                assert old is not None
                self._remove(address, old.name)
                lost[address] = old.name
            for address in after.keys() - before.keys():
                assert new is not None
                self._services.setdefault(address, []).append(new.name)
                gained[address] = new.name
        return Moves(
            {address: service for address, service in lost.items() if address not in self._services},
            {address: service for address, service in gained.items() if address in self._services},
        )

    def holder(self, address: Address) -> str:
        """The Service that has an address, the first by name of several; "" for none."""
        return min(self._services.get(address, ()), default="")

    def __contains__(self, address: object) -> bool:
        return address in self._services

    def __iter__(self) -> Iterator[Address]:
        return iter(self._services)

    def _remove(self, address: Address, service: str) -> None:
        services = self._services[address]
        services.remove(service)
        if not services:
            del self._services[address]


def _addresses(service: SeenService | None) -> Iterator[Address]:
    for text in service.cluster_ips if service else ():
        try:
            yield Address.parse_lenient(text)
        except PrefixError:
            continue
