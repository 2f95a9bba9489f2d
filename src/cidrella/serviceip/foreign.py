"""The addresses that the API server's own allocator has given: those that have an IPAddress object. No I/O.

They are taken, whatever our own books say: never drawn, and not freed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.core.address import Address
from cidrella.core.prefix import PrefixError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cidrella.core.bands import ServiceRange
    from cidrella.kube.mirror import Change
    from cidrella.model.serviceip import SeenIPAddress


class Foreign:
    """Who has which, for all ranges and for each."""

    def __init__(self) -> None:
        self._owners: dict[Address, str] = {}
        self._views: dict[ServiceRange, dict[int, str]] = {}

    def of(self, service_range: ServiceRange) -> Mapping[int, str]:
        """Those of one range: who has it, by offset. It is kept as it is until the range is dropped."""
        view = self._views.get(service_range)
        if view is None:
            offsets = ((service_range.offset(address), owner) for address, owner in self._owners.items())
            view = {offset: owner for offset, owner in offsets if offset is not None}
            self._views[service_range] = view
        return view

    def drop(self, service_range: ServiceRange) -> None:
        """Nobody looks at this range any more."""
        self._views.pop(service_range, None)

    def apply(self, changes: Sequence[Change[SeenIPAddress]]) -> None:
        """Take in what the watch tells. O(ranges) for each."""
        for old, new in changes:
            if old is not None:
                self._forget(old)
            if new is not None:
                self._enter(new)

    def owner(self, address: Address) -> str | None:
        """Whom an address was given to, as `SeenIPAddress.parent`; None if it was given to nobody."""
        return self._owners.get(address)

    def __contains__(self, address: object) -> bool:
        return address in self._owners

    def _enter(self, seen: SeenIPAddress) -> None:
        address = _address(seen)
        if address is not None:
            self._owners[address] = seen.parent
            for view, offset in self._places(address):
                view[offset] = seen.parent

    def _forget(self, seen: SeenIPAddress) -> None:
        address = _address(seen)
        if address is not None:
            self._owners.pop(address, None)
            for view, offset in self._places(address):
                view.pop(offset, None)

    def _places(self, address: Address) -> Iterator[tuple[dict[int, str], int]]:
        for service_range, view in self._views.items():
            if (offset := service_range.offset(address)) is not None:
                yield view, offset


def _address(seen: SeenIPAddress) -> Address | None:
    """The API server takes no names but canonical addresses; whatever else comes is none."""
    try:
        return Address.parse_lenient(seen.name)
    except PrefixError:
        return None
