"""What the parts of the controller need around them, without an API: a client that does as it is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from cidrella.controller.allocation import Allocation
from cidrella.controller.intents import Intents
from cidrella.controller.metrics import Metrics
from cidrella.core.cluster import Cluster
from cidrella.kube.duty import Duty
from cidrella.kube.errors import NoAnswerError
from cidrella.kube.limiter import AdaptiveLimit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from cidrella.controller.findings import Findings
    from cidrella.core.decision import Node
    from cidrella.kube.client import Client


class FakeClient:
    """Notes what is sent, and answers each PATCH as `answer` does."""

    def __init__(self, answer: Callable[[str], Awaitable[None]]) -> None:
        self.answer = answer
        self.sent: list[tuple[str, Any]] = []

    async def patch(self, path: str, body: object, _kind: object, **_: object) -> None:
        self.sent.append((path, body))
        await self.answer(path)

    async def request(self, method: str, path: str) -> bytes:
        """What stands on a node: the API server is away, unless a test says otherwise."""
        raise NoAnswerError(f"{method} {path}: no answer")

    @property
    def client(self) -> Client:
        return cast("Client", self)


class _Quiet:
    def __init__(self) -> None:
        self.told: list[str] = []
        """The nodes that were told that they wait for their cloud provider."""
        self.failed: list[tuple[str, str]] = []
        """Writes that failed: the node, and why."""

    def assignment_failed(self, node: Node, message: str) -> None:
        self.failed.append((node.name, message))

    def not_available(self, *_: object) -> None:
        """Nobody is told."""

    def waits_for_cloud_provider(self, node: Node, *_: object) -> None:
        self.told.append(node.name)

    def examine(self, *_: object) -> None:
        """Nobody is told."""


class Office:
    """Nodes being served, with everything that takes."""

    def __init__(
        self,
        fake: FakeClient,
        record: Callable[[], Awaitable[bool]] | None = None,
        *,
        cloud_provider_wait: float = 60.0,
    ) -> None:
        self.client = fake
        self.findings = _Quiet()
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.duty = Duty(lambda: True)
        self.limit = AdaptiveLimit()
        self.intents = Intents(self.cluster, record)
        self.failures: list[BaseException] = []
        self.now = 0.0
        """Added to the clock."""
        self.allocation = Allocation(
            fake.client,
            self.cluster,
            self.nodes,
            self.duty,
            cast("Findings", self.findings),
            Metrics(),
            self.limit,
            self.intents,
            books_changed=self._wake,
            pools_settled=_at_once,
            fail=self.failures.append,
            cloud_provider_wait=cloud_provider_wait,
            annotate=True,
            serves=True,
            clock=lambda: asyncio.get_running_loop().time() + self.now,
        )

    def _wake(self) -> None:
        self.allocation.wake()

    def see(self, node: Node) -> None:
        """The watch tells of a node."""
        self.nodes[node.name] = node
        self.cluster.observe(node)
        self.allocation.node_seen(node)

    def lose(self, name: str) -> None:
        """The watch tells that a node is gone."""
        del self.nodes[name]
        self.cluster.forget(name)
        self.allocation.node_gone(name)


async def _at_once() -> None:
    pass
