"""The reflector on the real API server, behind a proxy that cuts, stalls and lies."""

from __future__ import annotations

import asyncio
import random
import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest
import yaml
from structlog.testing import capture_logs

from cidrella.kube import transport
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.listing import list_all
from cidrella.kube.reflector import Change, Reflector, ReflectorSettings
from cidrella.kube.wire import read_head
from cidrella.model.convert import node_facts
from cidrella.model.objects import NODES_PATH, Node
from tests.testenv.api import kubeconfig
from tests.testenv.client import ApiError
from tests.testenv.faults import cut, cut_reply, gone_event, html, stall_watch
from tests.testenv.nodes import create_nodes, delete_nodes, realistic_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from cidrella.core.decision import Node as NodeFacts
    from tests.testenv.api import Api
    from tests.testenv.proxy import FaultProxy

RULES = [{"apiGroups": ["", "reflector.example.com"], "resources": ["nodes", "gadgets"], "verbs": ["list", "watch"]}]
WATCH = r"[?&]watch="
LIST = r"[?&]limit="
PATIENCE = 180.0
BRISK = ReflectorSettings(page=7, stall=3.0, settled=0.5, cap=0.5, absent_period=0.2)
"""As in earnest, but for times that nobody wants to wait for here."""

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGETS = "/apis/reflector.example.com/v1/gadgets"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.reflector.example.com"},
    "spec": {
        "group": "reflector.example.com",
        "scope": "Cluster",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def decode(raw: bytes | msgspec.Raw) -> NodeFacts:
    """A node; anything else with metadata will do as well."""
    return node_facts(msgspec.json.decode(raw, type=Node))


@pytest.fixture(scope="module")
def token(cluster: Api) -> str:
    """The bearer token of a client that may do what a reflector does."""
    client, _ = cluster.service_account("reflector", RULES)
    return client.token


@pytest.fixture
def config(cluster: Api, proxy: FaultProxy, token: str, tmp_path: Path) -> Path:
    """A kubeconfig file that leads to the proxy."""
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(proxy.url, cluster.authority.certificate, {"token": token})))
    return path


class Told:
    """What was told, checked to fit together."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        self.gone: list[str] = []

    def on_changes(self, changes: list[Change[NodeFacts]]) -> None:
        for old, new in changes:
            if old is not None:
                assert self.uids.pop(old.name) == old.uid
            if new is not None:
                assert new.name not in self.uids
                self.uids[new.name] = new.uid
            if old is not None and new is None:
                self.gone.append(old.uid)


@asynccontextmanager
async def reflecting(config: Path, path: str = NODES_PATH) -> AsyncIterator[tuple[Reflector[NodeFacts], Told]]:
    """A reflector that runs."""
    told = Told()
    async with Client(load_access(str(config)), timeout=5.0) as client:
        reflector = Reflector(client, path, decode, told.on_changes, settings=BRISK, rng=random.Random(1))
        task = asyncio.create_task(reflector.run())
        try:
            yield reflector, told
            assert told.uids == {name: obj.uid for name, obj in reflector.objects.items()}
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait([task])
    await farewell()


async def farewell() -> None:
    """Wait until TLS has said goodbye on connections that were given up in the middle of a request."""
    selector = vars(asyncio.get_running_loop())["_selector"]
    async with asyncio.timeout(PATIENCE):
        while len(selector.get_map()) > 1:  # the loop's own
            await asyncio.sleep(0.02)


async def until(met: Callable[[], object], reflector: Reflector[NodeFacts]) -> None:
    """Wait until something holds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not met():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise TimeoutError(f"trouble: {reflector.trouble}; known: {sorted(reflector.objects)}") from None


def uids(cluster: Api, path: str = NODES_PATH) -> dict[str, str]:
    """What there is, by the test's own client."""
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.admin.items(path)}


def recreate(cluster: Api, name: str) -> None:
    cluster.admin.delete(f"{NODES_PATH}/{name}")
    cluster.admin.create(NODES_PATH, realistic_node(name))


def test_nodes_come_and_go_while_connections_are_cut(cluster: Api, proxy: FaultProxy, config: Path) -> None:
    """Pitfall 26: through watches cut in mid-line, stalled, answered with HTML or 410, no node is lost or made up."""
    faults = [
        cut_reply(mid_line=True, after_lines=3),
        cut_reply(15_000),
        stall_watch(5_000),
        html(200),
        html(),
        gone_event(),
    ]
    for number, fault in enumerate(faults, 1):
        proxy.add(fault, path=WATCH, nth=number)
    proxy.add(cut_reply(60_000), path=WATCH)
    proxy.add(cut_reply(20_000), path=LIST, nth=2)
    names = [f"walk-{number}" for number in range(20)]

    def change() -> None:
        draws = random.Random(1)
        create_nodes(cluster.admin, names)
        deadline = time.monotonic() + PATIENCE
        while sum("watch=" in entry.path for entry in proxy.requests) <= len(faults) + 3:
            assert time.monotonic() < deadline, proxy.requests
            recreate(cluster, draws.choice(names))
        delete_nodes(cluster.admin, names[:5])

    async def scenario() -> None:
        async with reflecting(config) as (reflector, told):
            await reflector.wait_synced()
            await asyncio.to_thread(change)
            there = await asyncio.to_thread(uids, cluster)
            await until(lambda: told.uids == there, reflector)
            await reflector.relist()
            assert told.uids == there
            assert len(set(told.gone)) == len(told.gone)

    try:
        asyncio.run(scenario())
    finally:
        delete_nodes(cluster.admin, names)


def test_pages_that_are_too_large(
    cluster: Api, proxy: FaultProxy, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server goes on with a continue token and a smaller limit; no node is missing, none comes twice."""
    monkeypatch.setattr(transport, "BODY_MAX", 30_000)  # three of these nodes, not seven
    names = [f"large-{number}" for number in range(20)]
    create_nodes(cluster.admin, names)

    async def scenario() -> None:
        async with reflecting(config) as (reflector, told):
            await until(lambda: reflector.synced, reflector)
            there = await asyncio.to_thread(uids, cluster)
            assert told.uids == there
            assert reflector.faults == 0
        async with Client(load_access(str(config))) as client:
            assert {read_head(each).name for each in await list_all(client, NODES_PATH)} == set(there)

    try:
        asyncio.run(scenario())
    finally:
        delete_nodes(cluster.admin, names)
    limits = [int(limit) for entry in proxy.requests for limit in re.findall(r"limit=([0-9]+)", entry.path)]
    followed, once = limits[: limits.index(500)], limits[limits.index(500) :]
    assert list(dict.fromkeys(followed)) == [7, 3]
    assert list(dict.fromkeys(once)) == [500, 250, 125, 62, 31, 15, 7, 3]


def test_version_that_the_server_has_forgotten(cluster: Api, proxy: FaultProxy, config: Path) -> None:
    """Pitfall 26: a real 410, after a restart of the API server, and the nodes deleted meanwhile are told as gone."""
    names = [f"gap-{number}" for number in range(20)]
    create_nodes(cluster.admin, names)
    proxy.add(stall_watch(), path=WATCH, nth=1)
    away = proxy.add(cut(), path=WATCH)

    def gap() -> None:
        delete_nodes(cluster.admin, names[:3])
        recreate(cluster, names[3])
        cluster.restart(cluster.apiserver)

    async def scenario() -> None:
        async with reflecting(config) as (reflector, told):
            await reflector.wait_synced()
            before = dict(told.uids)
            await asyncio.to_thread(proxy.wait_for, lambda entry: "watch=" in entry.path and entry.status == 200)
            gap()  # in this thread: the API server that it starts would die with any other
            assert told.gone == []
            proxy.remove(away)
            there = await asyncio.to_thread(uids, cluster)
            await until(lambda: told.uids == there, reflector)
            assert sorted(told.gone) == sorted(before[name] for name in names[:4])

    try:
        with capture_logs() as logs:
            asyncio.run(scenario())
        assert any("410" in log.get("kind", "") for log in logs), logs
    finally:
        delete_nodes(cluster.admin, names)


def test_kind_that_comes_and_goes(cluster: Api, config: Path) -> None:
    """What the server does not serve yet is absent, then there as soon as it is served, and gone with its CRD."""

    def serve() -> None:
        cluster.admin.create(CRDS, CRD)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                gadget = {"apiVersion": "reflector.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
                cluster.admin.create(GADGETS, gadget)
            except ApiError as error:
                if error.code != 404 or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def withdraw() -> None:
        cluster.admin.delete(f"{CRDS}/gadgets.reflector.example.com")

    async def scenario() -> None:
        async with reflecting(config, GADGETS) as (reflector, told):
            await reflector.wait_synced()
            assert reflector.absent
            assert reflector.trouble == ""
            for _ in range(2):
                await asyncio.to_thread(serve)
                await until(lambda: "g" in told.uids and not reflector.absent, reflector)
                await asyncio.to_thread(withdraw)
                await until(lambda: reflector.absent and not told.uids, reflector)

    asyncio.run(scenario())


def test_without_the_right_to(cluster: Api) -> None:
    """A client that may not list says so in words that lead to RBAC, and to whom it is."""
    _, config = cluster.user("nobody-in-particular")

    async def scenario() -> None:
        async with reflecting(config) as (reflector, _):
            await until(lambda: reflector.trouble, reflector)
            assert "(RBAC)" in reflector.trouble
            assert "nobody-in-particular" in reflector.trouble
            assert not reflector.synced

    asyncio.run(scenario())
