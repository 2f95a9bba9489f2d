"""Finalizers that the API does not take: nobody is held up for long, and the API is not stormed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from cidrella.controller import finalizers
from cidrella.controller.finalizers import Finalizers
from cidrella.core.cluster import Cluster
from cidrella.kube.duty import Duty
from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.model.kinds import CLUSTER_CIDR, POOL_KINDS
from cidrella.model.objects import FINALIZER, ObjectMeta
from cidrella.model.reading import SeenPool
from tests.controller.fakes import FakeClient
from tests.core.build import spec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.core.pool import PoolSpec
    from cidrella.model.kinds import PoolKind


def seen(pool: PoolSpec, *finalizer: str, kind: PoolKind = CLUSTER_CIDR) -> SeenPool:
    name = pool.name.removeprefix(kind.prefix)
    metadata = ObjectMeta(name=name, uid="u", resource_version="1", finalizers=list(finalizer))
    return SeenPool(metadata, pool, None, kind)


def guardian(*pools: SeenPool, answer: Callable[[str], Awaitable[None]]) -> tuple[Finalizers, FakeClient]:
    cluster, duty, fake = Cluster(), Duty(lambda: True), FakeClient(answer)
    duty.take_up()
    for each in pools:
        cluster.add_pool(each.spec)
    made = Finalizers(fake.client, cluster, {each.name: each for each in pools}, duty)
    for each in pools:
        made.pool_seen(each)
    return made, fake


@pytest.mark.parametrize("error", [ApiError(409, "Conflict", "again"), ApiError(404, "", ""), NoAnswerError("slow")])
def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch, error: KubeError) -> None:
    """P1, S3: a pool that cannot be guarded holds nodes up for a moment, whatever the reason, and not again."""
    monkeypatch.setattr(finalizers, "_PATIENCE", 0.2)

    async def scenario() -> None:
        async def answer(_: str) -> None:
            await asyncio.sleep(0.01)
            raise error

        made, _ = guardian(seen(spec("p", "10.0.0.0/24 /28")), answer=answer)
        running = asyncio.ensure_future(made.run())
        async with asyncio.timeout(10):
            await made.wait_guarded()
            await made.wait_guarded()
        running.cancel()

    asyncio.run(scenario())


def test_a_refusal_is_not_repeated_with_every_node() -> None:
    """P2: a deleted pool whose finalizers may not be taken off is tried with growing delays, whatever nodes do."""

    async def scenario() -> None:
        async def answer(_: str) -> None:
            raise ApiError(403, "Forbidden", "no")

        going = spec("p", "10.0.0.0/24 /28", terminating=True)
        made, fake = guardian(seen(going, FINALIZER), answer=answer)
        running = asyncio.ensure_future(made.run())
        for _ in range(200):
            made.look()
            await asyncio.sleep(0.001)
        assert 1 <= len(fake.sent) <= 8
        running.cancel()

    asyncio.run(scenario())


def test_pools_of_all_kinds_are_waited_for() -> None:
    """P1, K3, K5: nodes wait until the pools of every kind are guarded: each is offered in its turn, or none."""

    async def scenario() -> None:
        taken: dict[str, asyncio.Event] = {kind.object_path("p"): asyncio.Event() for kind in POOL_KINDS}

        async def answer(path: str) -> None:
            await taken[path].wait()

        pools = [seen(spec(kind.pool_name("p"), "10.0.0.0/24 /28"), kind=kind) for kind in POOL_KINDS]
        made, fake = guardian(*pools, answer=answer)
        running = asyncio.ensure_future(made.run())
        waiting = asyncio.ensure_future(made.wait_guarded())
        for pool in pools:
            await asyncio.sleep(0.05)
            assert not waiting.done()
            taken[pool.path].set()
            guarded = pool._replace(metadata=replace(pool.metadata, finalizers=[FINALIZER]))
            made.pool_seen(guarded)
        async with asyncio.timeout(1):
            await waiting
        assert sorted(path for path, _ in fake.sent) == sorted(taken)
        running.cancel()

    asyncio.run(scenario())
