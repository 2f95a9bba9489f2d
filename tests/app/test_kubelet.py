"""Playing a kubelet, and an example of nodes that come and go."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from cidrella.app import up_example
from cidrella.app.kubelet import register, unregister
from cidrella.app.up_example import SIZE, ZONE, Example, labels_of, pool_objects
from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError
from cidrella.model.decode import decode
from cidrella.model.objects import NODES_PATH, POOLS_PATH, ClusterCIDR
from cidrella.model.validate import validate_pool
from tests.app.embedded import EmbeddedApi, embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.kube.client import Client


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedApi]:
    """One for all."""
    with embedded(tmp_path_factory.mktemp("api")) as api:
        yield api


@pytest.fixture
def api(running: EmbeddedApi) -> EmbeddedApi:
    """With nothing in it."""
    running.clean()
    return running


def names(api: EmbeddedApi, path: str = NODES_PATH) -> list[str]:
    return [each["metadata"]["name"] for each in api.items(path)]


class TestKubelet:
    """A node as a kubelet has it."""

    def test_a_node_that_is_ready(self, api: EmbeddedApi) -> None:
        """It has an address, room for Pods, labels, and nothing that keeps Pods away."""
        api.do(lambda client: register(client, "one", {"rack": "3"}, "v1.36.3"))
        (node,) = api.items(NODES_PATH)
        assert node["metadata"]["labels"].items() >= {"kubernetes.io/hostname": "one", "rack": "3"}.items()
        assert "taints" not in node["spec"]
        status = node["status"]
        assert {each["type"] for each in status["addresses"]} == {"InternalIP", "Hostname"}
        assert status["capacity"]["pods"] == "110"
        assert status["nodeInfo"]["kubeletVersion"] == "v1.36.3"
        assert {each["type"]: each["status"] for each in status["conditions"]} == {
            **dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "False"),
            "Ready": "True",
        }

    def test_one_that_is_there(self, api: EmbeddedApi) -> None:
        """It is not taken for ours; and one that is not there cannot be removed."""

        async def twice(client: Client) -> list[bool]:
            await register(client, "one", {}, "v1")
            with pytest.raises(ApiError, match="already exists"):
                await register(client, "one", {}, "v1")
            return [await unregister(client, "one"), await unregister(client, "one")]

        assert api.do(twice) == [True, False]


class TestExample:
    """Nodes of a few kinds, and pools that are just large enough."""

    @pytest.mark.parametrize("nodes", [1, 2, 7, 40, 200, 5_000, 10_000])
    def test_pools(self, nodes: int) -> None:
        """Each is valid, none overlaps another or the usual range of Services, and there is room for most nodes."""
        ranges = [Prefix.parse("10.96.0.0/16")]
        room = 0
        for each in pool_objects(nodes):
            pool = decode(each, ClusterCIDR)
            assert not isinstance(pool, list)
            assert validate_pool(pool) == []
            ranges.append(Prefix.parse(pool.spec.ipv4))
            room += ranges[-1].size >> pool.spec.per_node_host_bits
        assert not any(one != two and one.overlaps(two) for one in ranges for two in ranges)
        if nodes > 10:
            assert 0.7 * nodes < room < 2 * nodes

    def test_nodes(self) -> None:
        """They differ in zone and in size."""
        found = [labels_of(number) for number in range(1, 25)]
        assert {each[ZONE] for each in found} == {"zone-a", "zone-b", "zone-c"}
        assert [each[SIZE] for each in found].count("large") == 3

    def test_made_once(self, api: EmbeddedApi) -> None:
        """What is there already stays, pools of other people too; the rest is added, and told as it goes."""
        told: list[tuple[int, int]] = []
        api.do(lambda client: Example(client, 20, "v1").prepare(lambda *done: told.append(done)))
        assert names(api) == [f"worker-{number:03}" for number in range(1, 21)]
        assert len(names(api, POOLS_PATH)) == 5
        assert told == [(16, 20), (20, 20)]
        api.do(lambda client: unregister(client, "worker-007"))
        api.do(lambda client: client.delete(f"{POOLS_PATH}/large"))
        api.do(lambda client: Example(client, 21, "v1").prepare(lambda *_: None))
        assert len(names(api)) == 21
        assert len(names(api, POOLS_PATH)) == 4

    def test_without_the_kinds_of_pools(self, api: EmbeddedApi) -> None:
        """Where pools are left to others, there are nodes alone."""
        api.do(lambda client: Example(client, 1, "v1", pools=False).prepare(lambda *_: None))
        assert (names(api), names(api, POOLS_PATH)) == (["worker-001"], [])

    def test_it_lives_within_bounds(self, api: EmbeddedApi, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nodes come and go, never many more than were asked for and never none; and the same each time."""
        monkeypatch.setattr(up_example, "_PAUSE", 0.0)
        counts: list[int] = []

        async def live(client: Client, seed: int) -> set[int]:
            example = Example(client, 10, "v1")
            await example.prepare(lambda *_: None)
            steps = iter(range(150))

            async def pause(_: float) -> None:
                counts.append(len(example._there))
                if next(steps, None) is None:
                    raise TimeoutError
                await yielding(0)

            monkeypatch.setattr(asyncio, "sleep", pause)
            with pytest.raises(TimeoutError):
                await example.live(seed)
            monkeypatch.setattr(asyncio, "sleep", yielding)
            found = set(example._there)
            for name in [f"worker-{number:03}" for number in found]:
                await unregister(client, name)
            return found

        yielding = asyncio.sleep
        first = api.do(lambda client: live(client, 1))
        assert api.do(lambda client: live(client, 1)) == first
        assert api.do(lambda client: live(client, 2)) != first
        assert min(counts) >= 1
        assert max(counts) <= 15
        assert len(set(counts)) > 2

    def test_others_are_there_too(self, api: EmbeddedApi) -> None:
        """A node that somebody else removed, or made, is no reason to stop."""

        async def meddle(client: Client) -> None:
            example = Example(client, 2, "v1")
            await example.prepare(lambda *_: None)
            await unregister(client, "worker-001")
            await example._remove(1)
            await register(client, "worker-009", {}, "v1")
            await example._add(9)

        api.do(meddle)
        assert names(api) == ["worker-002", "worker-009"]
