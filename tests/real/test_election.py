"""Electors on a real Lease, with times of a few seconds: hand-over, outages, lost replies, deletion, refusals (F5)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.election import ElectionSettings, Elector, make_identity, read_holder
from cidrella.model.lease import lease_path
from tests.testenv.api import kubeconfig
from tests.testenv.faults import cut, stall, swallow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.testenv.api import Api
    from tests.testenv.client import Json
    from tests.testenv.proxy import FaultProxy

RULES = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]
PATIENCE = 180.0


class Candidate:
    """An elector that runs, and what it was told, with when."""

    def __init__(self, client: Client, settings: ElectionSettings) -> None:
        self.told: list[tuple[str, float]] = []
        self.identity = make_identity()
        self.elector = Elector(
            client,
            self.identity,
            settings,
            on_started=lambda: self._note("started"),
            on_stopped=lambda: self._note("stopped"),
        )
        self._task = asyncio.create_task(self.elector.run())

    @property
    def words(self) -> list[str]:
        return [word for word, _ in self.told]

    async def end(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def _note(self, word: str) -> None:
        self.told.append((word, asyncio.get_running_loop().time()))


class Booth:
    """Where electors of one Lease run, each with a client of its own; never do two of them lead."""

    def __init__(self, settings: ElectionSettings) -> None:
        self.settings = settings
        self.candidates: list[Candidate] = []
        self._clients: list[Client] = []
        self._watch = asyncio.create_task(self._never_two())

    def add(self, kubeconfig_file: Path) -> Candidate:
        """One more candidate."""
        client = Client(load_access(str(kubeconfig_file)))
        self._clients.append(client)
        self.candidates.append(Candidate(client, self.settings))
        return self.candidates[-1]

    async def close(self) -> None:
        for each in self.candidates:
            await each.end()
        for client in self._clients:
            await client.close()
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch

    async def until(self, condition: Callable[[], bool]) -> float:
        """Wait for it; how long it took."""
        begun = asyncio.get_running_loop().time()
        while not condition():
            await asyncio.sleep(0.01)
            assert not self._watch.done(), self._watch.exception()
            assert asyncio.get_running_loop().time() - begun < PATIENCE, "it did not come to pass"
        return asyncio.get_running_loop().time() - begun

    async def _never_two(self) -> None:
        while True:
            assert sum(each.elector.leading for each in self.candidates) <= 1, "two lead"
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def booth(settings: ElectionSettings) -> AsyncIterator[Booth]:
    """A booth that is closed afterwards."""
    made = Booth(settings)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture(scope="module")
def account(cluster: Api) -> tuple[Path, str]:
    """A kubeconfig file and a token of one who may use Leases."""
    client, path = cluster.service_account("candidate", RULES)
    client.close()
    return path, client.token


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> ElectionSettings:
    """A Lease for each test, with short times."""
    name = re.sub(r"[^a-z]+", "-", request.node.name).strip("-")
    return ElectionSettings("default", name, lease_duration=3.0, renew_deadline=2.0, retry_period=0.5)


@pytest.fixture
def behind(cluster: Api, account: tuple[Path, str], proxy: FaultProxy, tmp_path: Path) -> Path:
    """A kubeconfig file of one who is behind the proxy."""
    path = tmp_path / "behind.kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(proxy.url, cluster.authority.certificate, {"token": account[1]})))
    return path


def lease(cluster: Api, settings: ElectionSettings) -> Json:
    return cluster.admin.get(lease_path(settings.namespace, settings.name))


def test_handing_over(cluster: Api, account: tuple[Path, str], settings: ElectionSettings) -> None:
    """F5, F6: one leads, and anybody can see who; when it ends, another leads at its next look."""
    settings = replace(settings, lease_duration=15.0, renew_deadline=10.0)

    async def scenario() -> None:
        async with booth(settings) as place, Client(load_access(str(account[0]))) as client:
            assert await read_holder(client, settings) is None
            first = place.add(account[0])
            await place.until(lambda: first.elector.leading)
            second = place.add(account[0])
            await place.until(lambda: second.elector.holder == first.identity)
            cluster.admin.patch(
                lease_path(settings.namespace, settings.name), {"metadata": {"annotations": {"mine": "yes"}}}
            )
            await asyncio.sleep(4 * settings.retry_period)
            assert (first.words, second.words) == (["started"], [])
            seen = await read_holder(client, settings)
            assert seen is not None
            assert (seen.identity, seen.expired) == (first.identity, False)
            begun = asyncio.get_running_loop().time()
            await first.end()
            assert first.words == ["started", "stopped"]
            await place.until(lambda: second.elector.leading)
            assert second.told[0][1] - begun < settings.renew_deadline / 2
            stored = lease(cluster, settings)
            assert stored["metadata"]["annotations"] == {"mine": "yes"}
            assert stored["spec"]["leaseTransitions"] == 1
            await second.end()
            assert await read_holder(client, settings) is None
            assert lease(cluster, settings)["spec"]["leaseDurationSeconds"] == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [stall(), cut()], ids=["stall", "cut"])
def test_the_leader_is_cut_off(
    account: tuple[Path, str], behind: Path, proxy: FaultProxy, settings: ElectionSettings, fault: object
) -> None:
    """F5, pitfall 24: a leader that loses the API stops before another leads, and stands by when it is back."""
    settings = replace(settings, name=f"cut-off-{type(fault).__name__.lower()}")

    async def scenario() -> None:
        async with booth(settings) as place:
            first = place.add(behind)
            await place.until(lambda: first.elector.leading)
            second = place.add(account[0])
            await place.until(lambda: second.elector.holder == first.identity)
            rule = proxy.add(fault)  # type: ignore[arg-type]
            await place.until(lambda: second.elector.leading)
            assert first.words == ["started", "stopped"]
            assert second.told[0][1] > first.told[1][1]
            assert first.elector.trouble
            proxy.remove(rule)
            await place.until(lambda: not first.elector.trouble)
            assert first.elector.holder == second.identity
            assert second.words == ["started"]

    asyncio.run(scenario())


def test_nobody_can_reach_the_api(behind: Path, proxy: FaultProxy, settings: ElectionSettings) -> None:
    """Pitfall 24: an outage of twice the lease ends nobody; afterwards one leads."""

    async def scenario() -> None:
        async with booth(settings) as place:
            both = [place.add(behind), place.add(behind)]
            await place.until(lambda: any(each.elector.leading for each in both))
            rule = proxy.add(stall())
            await place.until(lambda: not any(each.elector.leading for each in both))
            await asyncio.sleep(2 * settings.lease_duration)
            assert not any(each.elector.leading for each in both)
            proxy.remove(rule)
            await place.until(lambda: any(each.elector.leading for each in both))

    asyncio.run(scenario())


def test_replies_get_lost(
    account: tuple[Path, str], behind: Path, proxy: FaultProxy, settings: ElectionSettings
) -> None:
    """F5: renewals that took effect without a reply are looked up, and leading goes on."""
    settings = replace(settings, lease_duration=15.0, renew_deadline=10.0)

    async def scenario() -> None:
        async with booth(settings) as place:
            first = place.add(behind)
            await place.until(lambda: first.elector.leading)
            second = place.add(account[0])
            lost = proxy.add(swallow(), method="PATCH", nth=range(2, 12, 2))
            await place.until(lambda: lost.hits >= 5)
            await asyncio.sleep(2 * settings.retry_period)
            assert (first.words, second.words) == (["started"], [])

    asyncio.run(scenario())


def test_the_api_server_restarts(cluster: Api, account: tuple[Path, str], settings: ElectionSettings) -> None:
    """F5, pitfall 24: electors outlive a restart of the API server."""

    async def scenario() -> None:
        async with booth(settings) as place:
            both = [place.add(account[0]), place.add(account[0])]
            await place.until(lambda: any(each.elector.leading for each in both))
            # Started from this thread, because a process ends with the thread that started it.
            await asyncio.to_thread(cluster.apiserver.kill)
            cluster.apiserver.start()
            await asyncio.to_thread(cluster.wait_ready)
            cluster.admin.close()  # its connections were to the one that is gone
            await place.until(lambda: any(each.elector.leading for each in both))
            await place.until(lambda: not any(each.elector.trouble for each in both))

    asyncio.run(scenario())


def test_somebody_deletes_the_lease(cluster: Api, account: tuple[Path, str], settings: ElectionSettings) -> None:
    """F5: a Lease that is deleted is made again, and at no time do two lead."""

    async def scenario() -> None:
        async with booth(settings) as place:
            first = place.add(account[0])
            await place.until(lambda: first.elector.leading)
            second = place.add(account[0])
            await place.until(lambda: second.elector.holder == first.identity)
            path = lease_path(settings.namespace, settings.name)
            for _ in range(3):
                cluster.admin.delete(path)
                await asyncio.sleep(2 * settings.retry_period)
                assert cluster.admin.get(path)["spec"]["holderIdentity"] in {first.identity, second.identity}
            await place.until(lambda: first.elector.leading or second.elector.leading)

    asyncio.run(scenario())


def test_refusals_say_why(cluster: Api, account: tuple[Path, str], settings: ElectionSettings) -> None:
    """F5: without the right, or without the namespace, the trouble says so, and leading begins when there is none."""
    nobody, path = cluster.service_account("no-candidate")
    nobody.close()
    nowhere = replace(settings, namespace="election-nowhere")

    async def scenario() -> None:
        async with booth(settings) as place, booth(nowhere) as other:
            refused, lost = place.add(path), other.add(account[0])
            await place.until(lambda: bool(refused.elector.trouble and lost.elector.trouble))
            assert "403 Forbidden" in refused.elector.trouble
            assert "does the namespace exist?" in lost.elector.trouble
            cluster.admin.create("/api/v1/namespaces", {"metadata": {"name": nowhere.namespace}})
            await other.until(lambda: lost.elector.leading)
            assert not lost.elector.trouble

    asyncio.run(scenario())
