"""F6: whether a controller runs, as its two Leases tell, on a simulated clock."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar, cast

import pytest

from cidrella.controller.release import active_holder
from cidrella.kube.election import ElectionSettings, read_holder
from cidrella.kube.errors import ApiError
from cidrella.model.lease import Lease, LeaseSpec, lease_path, micro_time
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from cidrella.kube.client import Client
    from cidrella.kube.election import Holder

T = TypeVar("T")

ELECTION = ElectionSettings()


class Leases:
    """Looks like a `Client` that reads Leases. Each says a moment long past: its holder's clock is an hour behind."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, int, float]] = {}
        """By name: holder, duration, and seconds between two renewals; 0 for a holder that is gone."""
        self.started = time.time() - 1000  # simulated time begins at 1,000
        self._behind = self.started - 3600

    async def get(self, path: str, kind: type[T]) -> T:
        assert kind is Lease
        for name, (holder, duration, period) in self.held.items():
            if path == lease_path("kube-system", name):
                now = asyncio.get_running_loop().time()
                renewed = micro_time(self._behind + (now - now % period if period else 0))
                spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=duration, renew_time=renewed)
                return cast("T", Lease(spec=spec))
        raise ApiError(404, "NotFound", "no such lease")


def find(leases: Leases) -> tuple[Holder | None, float, list[str]]:
    """Who runs, after how many seconds that is known, and which Leases had to be observed."""

    async def scenario() -> tuple[Holder | None, float, list[str]]:
        observed: list[str] = []
        began = asyncio.get_running_loop().time()
        found = await active_holder(cast("Client", leases), ELECTION, lambda holder: observed.append(holder.lease))
        return found, asyncio.get_running_loop().time() - began, observed

    return simulate(scenario())


@pytest.mark.parametrize("name", ["cidrella", "cidrella-alone"])
def test_clock_that_is_behind(name: str) -> None:
    """F6: a Lease is observed for as long as it lasts, not for as long as another would: its renewals may be rare."""
    leases = Leases()
    leases.held[name] = "host", 30, 25
    found, seconds, observed = find(leases)
    assert found is not None
    assert (found.identity, found.lease, seconds) == ("host", f"kube-system/{name}", 30)
    assert observed == [f"kube-system/{name}"]


@pytest.mark.parametrize("began", [0.0, 1.0, 1.9])
def test_clock_that_is_behind_while_both_go_on(began: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """F6: a holder that renews its Lease is found, however old the renewals seem to be at each look."""

    def wall() -> float:
        return leases.started + asyncio.get_running_loop().time()

    monkeypatch.setattr(read_holder, "__kwdefaults__", {"wall": wall})
    leases = Leases()
    leases.held["cidrella"] = "host", 15, 2.1 + began / 10
    found, _, observed = find(leases)
    assert observed == ["kube-system/cidrella"]
    assert found is not None


def test_both_leases_of_holders_that_are_gone() -> None:
    """F6: both are observed at once, for as long as the longer of them lasts."""
    leases = Leases()
    leases.held["cidrella"] = "host-1", 15, 0
    leases.held["cidrella-alone"] = "host-2", 3, 0
    found, seconds, observed = find(leases)
    assert (found, seconds) == (None, 15)
    assert observed == ["kube-system/cidrella", "kube-system/cidrella-alone"]
    leases.held["cidrella-alone"] = "host-2", 3, 1
    found, _, _ = find(leases)
    assert found is not None
    assert found.identity == "host-2"


def test_no_lease_at_all() -> None:
    """F6: where none is held there is nothing to wait for."""
    assert find(Leases()) == (None, 0, [])
