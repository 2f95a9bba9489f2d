"""What the page says is true: by what it told of changes, and by what the other commands say of the same cluster."""

from __future__ import annotations

import asyncio
import json
import random
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import yaml

from cidrella.app.page_rows import STATES
from cidrella.core.decision import Outcome
from cidrella.kube.access import load_access
from cidrella.kube.client import Client
from cidrella.kube.errors import ApiError
from cidrella.model.objects import NODES_PATH, POOLS_PATH
from tests.up.running import Up, running
from tests.web.follower import Copy, timeless

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVICES_PATH = "/api/v1/namespaces/default/services"
PATIENCE = 180.0


def pool(name: str, **spec: Any) -> dict[str, Any]:
    if only := spec.pop("only", None):
        expression = {"key": "kind", "operator": "In", "values": [only]}
        spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    spec = {"perNodeHostBits": 8, **spec}
    return {"apiVersion": "networking.x-k8s.io/v1", "kind": "ClusterCIDR", "metadata": {"name": name}, "spec": spec}


def config(name: str, cidr: str, size: int) -> dict[str, Any]:
    spec = {"cidr": cidr, "perNodeMaskSize": size, "nodeSelector": {"matchLabels": {"kind": "apart"}}}
    kind = {"apiVersion": "networking.x-k8s.io/v1alpha1", "kind": "ClusterCIDRConfig"}
    return {**kind, "metadata": {"name": name}, "spec": spec}


def node(name: str, *blocks: str, kind: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"kind": kind} if kind else {}, **fields}
    spec = {"podCIDR": blocks[0], "podCIDRs": list(blocks)} if blocks else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}


def service(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"ports": [{"port": 80}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def service_cidr(name: str, cidr: str) -> dict[str, Any]:
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR"}
    return {**head, "metadata": {"name": name}, "spec": {"cidrs": [cidr]}}


WORLD = [
    pool("tiny", ipv4="10.10.0.0/23", only="tiny"),
    pool("dual", ipv4="10.20.0.0/20", ipv6="fd00:20::/112", only="dual"),
    pool("going", ipv4="10.30.0.0/22", only="going"),
    config("four", "10.40.0.0/22", 24),
    config("six", "fd00:40::/48", 64),
    *[node(f"tiny-{number}", kind="tiny") for number in range(4)],
    node("dual-1", kind="dual"),
    node("going-1", kind="going"),
    node("apart-1", kind="apart"),
    node("nothing-1", kind="nothing"),
    node("untracked-1", "192.0.2.0/24"),
    node("conflict-1", "10.20.9.0/24"),
    node("conflict-2", "10.20.9.0/25"),
    node("on-services-1", "10.96.3.0/24"),
    node("leaving-1", kind="nothing", finalizers=["example.com/hold"]),
    node("leaving-2", kind="dual", finalizers=["example.com/hold"]),
    service("web"),
    service("db", clusterIP="10.96.0.7"),
    service("headless", clusterIP="None"),
    service_cidr("more", "10.97.0.0/24"),
]


NAMED = ("tiny-0", "tiny-3", "dual-1", "apart-1", "nothing-1", "untracked-1", "conflict-1", "leaving-1")
"""Nodes of all sorts, to be explained."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    (tmp_path / "world.yaml").write_text(yaml.safe_dump_all(WORLD))
    with running(tmp_path, "--no-browser", "--bind-address=127.0.0.1:0", "-f", tmp_path / "world.yaml") as made:
        yield made


class Reader(Copy):
    """Who loads everything once and follows the stream."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        super().__init__({})
        self._session = session
        self._url = url

    async def read(self) -> None:
        """Until cancelled; where everything has to be loaded anew, a test has found something."""
        self.state = await ask(self._session, self._url, "state")
        while True:
            since = self.state["version"]
            async with self._session.get(f"{self._url}/api/v1/stream?since={since}") as response:
                event = b""
                async for line in response.content:
                    if line.startswith(b"event: "):
                        event = line[7:].strip()
                        assert event != b"reload"
                    elif line.startswith(b"data: ") and event == b"change":
                        self.apply(json.loads(line[6:]))


async def ask(session: aiohttp.ClientSession, url: str, path: str) -> dict[str, Any]:
    async with session.get(f"{url}/api/v1/{path}") as response:
        assert response.status == 200
        answer: dict[str, Any] = await response.json()
        return answer


def page_url(up: Up) -> str:
    found = re.search(r"The page: (http://\S+)/", up.printed)
    assert found
    return found[1]


async def change_nodes(client: Client, rng: random.Random) -> None:
    """One comes, with or without a block, has other labels, or goes."""
    name = f"n{rng.randrange(25)}"
    kind = rng.choice(["tiny", "dual", "apart", "going", "extra", "nothing"])
    match rng.randrange(8):
        case 0 | 1 | 2 | 3:
            await client.create(NODES_PATH, node(name, kind=kind), dict)
        case 4:
            block = f"10.{rng.choice([20, 50, 60])}.{rng.randrange(6)}.0/{rng.choice([24, 25])}"
            await client.create(NODES_PATH, node(name, block), dict)
        case 5:
            await client.patch(f"{NODES_PATH}/{name}", {"metadata": {"labels": {"kind": kind}}}, dict)
        case _:
            await client.request("DELETE", f"{NODES_PATH}/{name}")


async def change_pools(client: Client, rng: random.Random) -> None:
    """One comes, where another was perhaps, or goes."""
    name = f"extra-{rng.randrange(2)}"
    if rng.random() < 0.5:
        await client.create(POOLS_PATH, pool(name, ipv4=f"10.{rng.choice([50, 51])}.0.0/22", only="extra"), dict)
    else:
        await client.request("DELETE", f"{POOLS_PATH}/{name}")


async def change_services(client: Client, rng: random.Random) -> None:
    """One comes, with an address of its choice perhaps, or goes."""
    name = f"s{rng.randrange(9)}"
    if rng.random() < 0.6:
        chosen = {"clusterIP": f"10.96.0.{rng.randrange(2, 30)}"} if rng.random() < 0.5 else {}
        await client.create(SERVICES_PATH, service(name, **chosen), dict)
    else:
        await client.request("DELETE", f"{SERVICES_PATH}/{name}")


async def live(client: Client, rng: random.Random, steps: int) -> None:
    """Things come, change and go, several at a time."""

    async def one() -> None:
        (change,) = rng.choices([change_nodes, change_pools, change_services], [8, 1, 1])
        with suppress(ApiError):  # it is there already, or not there
            await change(client, rng)

    for _ in range(steps):
        await asyncio.gather(*(one() for _ in range(rng.randrange(1, 6))))
        if rng.random() < 0.1:
            await asyncio.sleep(rng.random())


def test_what_is_told_adds_up_to_what_is_there_and_to_what_others_say(up: Up) -> None:
    """Whatever happens meanwhile, who follows ends with the state that one gets by asking.

    And that is what `explain`, `nodes`, `pools` and `services` say of the same cluster, word for word.
    """

    async def all_of_it() -> tuple[dict[str, Any], dict[str, Any]]:
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            Client(load_access(str(up.kubeconfig), "")) as client,
            aiohttp.ClientSession(timeout=timeout) as http,
        ):
            for path in (f"{NODES_PATH}/leaving-1", f"{NODES_PATH}/leaving-2", f"{POOLS_PATH}/going"):
                await client.request("DELETE", path)
            readers = [Reader(http, page_url(up)) for _ in range(3)]
            async with asyncio.TaskGroup() as group:
                reading = []
                for seed, reader in enumerate(readers):
                    reading.append(group.create_task(reader.read()))
                    await live(client, random.Random(seed), 60)
                state = await settled(http, readers)
                explained = {name: await ask(http, page_url(up), f"explain/{name}") for name in NAMED}
                for task in reading:
                    task.cancel()
        return state, explained

    async def settled(http: aiohttp.ClientSession, readers: list[Reader]) -> dict[str, Any]:
        """The state when nothing has happened for a while, and all that follow have it."""
        async with asyncio.timeout(PATIENCE):
            state: dict[str, Any] = {}
            while True:
                before, state = state, timeless(await ask(http, page_url(up), "state"))
                writing = any(each["state"] == "pending" for each in state["nodes"])
                if not writing and before == state and all(timeless(each.state) == state for each in readers):
                    return state
                await asyncio.sleep(2)

    state, explained = asyncio.run(all_of_it())
    seen = {each["state"] for each in state["nodes"]}
    assert {"served", "waiting", "untracked", "conflict"} <= seen
    assert_nodes(up, state)
    assert_pools(up, state)
    assert_services(up, state)
    for name, answer in explained.items():
        assert_explained(up, name, answer)


def told(up: Up, command: str) -> dict[str, Any]:
    done = up.run(f"{command} -o json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def assert_nodes(up: Up, state: dict[str, Any]) -> None:
    shown = {each["name"]: each for each in state["nodes"]}
    known = {each["name"]: each for each in told(up, "cidrella nodes")["nodes"]}
    assert shown.keys() == known.keys()
    for name, row in shown.items():
        other = known[name]
        assert row["state"] == STATES[Outcome(other["state"])]
        assert row["blocks"] == other["podCIDRs"]
        assert list(dict.fromkeys(filter(None, row["pools"]))) == other["clusterCIDRs"]
        assert row["reason"] == other["message"] or other["wouldGet"]


def assert_pools(up: Up, state: dict[str, Any]) -> None:
    shown = {each["name"]: each for each in state["pools"]}
    known = {each["name"]: each for each in told(up, "cidrella pools")["pools"]}
    assert shown.keys() == known.keys()
    for name, row in shown.items():
        other = known[name]
        assert (row["kind"], row["state"], row["nodes"]) == (other["kind"], other["state"].lower(), other["nodes"])
        assert row["selector"] == (other["selector"] or "")
        families = [other[family] for family in ("ipv4", "ipv6") if other[family]]
        assert [
            (each["range"], each["blockSize"], each["total"], each["used"], each["free"]) for each in row["families"]
        ] == [(each["cidr"], each["perNode"], each["capacity"], each["allocated"], each["free"]) for each in families]


def assert_services(up: Up, state: dict[str, Any]) -> None:
    known = told(up, "cidrella services")
    addresses = {each["address"]: (each["range"], each["band"], each["services"]) for each in known["addresses"]}
    assert {each["address"]: (each["range"], each["band"], [each["holder"]]) for each in state["services"]} == addresses
    assert [(each["range"], each["source"]) for each in state["serviceRanges"]] == [
        (each["cidr"], each["source"]) for each in known["ranges"]
    ]
    for row, other in zip(state["serviceRanges"], known["ranges"], strict=True):
        assert [
            (each["first"], each["last"], each["total"], each["used"]) for each in (row["static"], row["dynamic"])
        ] == [(each["first"], each["last"], each["capacity"], each["allocated"]) for each in other["bands"]]


def assert_explained(up: Up, name: str, shown: dict[str, Any]) -> None:
    known = told(up, f"cidrella explain {name}")
    assert shown["labels"] == known["node"]["labels"]
    assert [
        (each["pool"], each["applies"], each["why"], each["room"], each["beforeNext"] or None)
        for each in shown["pools"]
    ] == [(each["name"], each["applies"], each["why"], each["room"], each["beforeNext"]) for each in known["pools"]]
    row, decision = shown["node"], known["decision"]
    assert (row["state"], row["blocks"]) == (STATES[Outcome(decision["outcome"])], decision["podCIDRs"])
    assert (row["reason"], row["help"]) == (decision["message"], decision["help"])
