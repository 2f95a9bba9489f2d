"""An embedded API in a thread of this process, for tests of what is a client of it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from structlog.testing import capture_logs

from cidrella.apiserver.serving.server import ApiServer
from cidrella.apiserver.store.store import Store
from cidrella.app.settings import Settings
from cidrella.app.up_founding import found
from cidrella.controller.controller import Controller, ControllerSettings
from cidrella.controller.metrics import Metrics
from cidrella.core.prefix import Prefix
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import ApiError
from cidrella.model.objects import NODES_PATH, POOLS_PATH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    T = TypeVar("T")

RANGES = (Prefix.parse("10.96.0.0/16"),)


class EmbeddedApi:
    """One that runs, founded, over plain HTTP; with a controller if one is wanted."""

    def __init__(self, url: str, kubeconfig: Path) -> None:
        self.url = url
        self.kubeconfig = kubeconfig

    def do(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Something with a client of it."""

        async def run() -> T:
            async with Client(Access(self.url)) as client:
                return await work(client)

        return asyncio.run(run())

    def items(self, path: str) -> list[dict[str, Any]]:
        """The objects of a collection."""
        listed: dict[str, Any] = self.do(lambda client: client.get(path, dict))
        return list(listed["items"])

    def clean(self) -> None:
        """Have neither nodes nor pools, whoever guards them."""

        async def remove_all(client: Client) -> None:
            for path in (NODES_PATH, POOLS_PATH):
                await client.request("DELETE", path)
            for pool in (await client.get(POOLS_PATH, dict))["items"]:
                with suppress(ApiError):  # the controller was first
                    patch = {"metadata": {"finalizers": None, "uid": pool["metadata"]["uid"]}}
                    await client.patch(f"{POOLS_PATH}/{pool['metadata']['name']}", patch, dict)

        self.do(remove_all)


@contextmanager
def embedded(directory: Path, *, controller: bool = False) -> Iterator[EmbeddedApi]:
    """An API until the end of the block."""
    ready, urls, failures = threading.Event(), list[str](), list[BaseException]()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with ApiServer(Store(), "127.0.0.1", 0) as server, Client(Access(server.url)) as client:
            await found(client, pools=True, service_ranges=RANGES)
            task = None
            if controller:
                made = Controller(client, ControllerSettings(Settings().ipam, "tests", None), Metrics())
                task = asyncio.create_task(made.run())
            urls.append(server.url)
            ready.set()
            await stop.wait()
            if task:
                task.cancel()
                await asyncio.wait([task])

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            failures.append(error)
        finally:
            ready.set()
            loop.close()

    with capture_logs():
        thread = threading.Thread(target=run)
        thread.start()
        ready.wait(30)
        if failures:
            raise failures[0]
        try:
            kubeconfig = directory / "embedded.kubeconfig"
            config = {
                "clusters": [{"name": "here", "cluster": {"server": urls[0]}}],
                "contexts": [{"name": "here", "context": {"cluster": "here"}}],
                "current-context": "here",
            }
            kubeconfig.write_text(yaml.safe_dump(config))
            yield EmbeddedApi(urls[0], kubeconfig)
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(30)
        if failures:
            raise failures[0]
