"""A proxy between a client and an API server that does to requests what networks and load balancers do.

    with FaultProxy("https://127.0.0.1:6443", certificate=CERT, key=KEY, ca=CA) as proxy:
        lost = proxy.add(swallow(), method="PATCH", path="^/api/v1/nodes/", nth=2)
        run_the_client_against(proxy.url)
        assert lost.hits == 1

Requests that no rule matches go through as they are: see `faults` for what can happen to the others, `fault_script` for
which those are, and `proxy_exchange` for how they are carried.

Who the API server thinks is asking: a client's certificate ends at the proxy, because TLS does; its bearer token goes
through. Give the proxy a client certificate only if its clients have no tokens: Kubernetes looks at certificates first,
and would take every request for one of the certificate's owner.

The proxy runs in a thread with an event loop of its own, and its methods may be called from any other. Stopping it ends
all connections without a goodbye. What goes wrong inside it, as opposed to what is made to, is raised when it stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from tests.testenv.fault_script import EVERY, Rule, Script
from tests.testenv.proxy_exchange import Conversation
from tests.testenv.proxy_log import Entry, Log
from tests.testenv.proxy_wire import LostError, Peer, Stream, Tls, Wire

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from types import TracebackType

    from tests.testenv.faults import Fault

LOOPBACK: Final = "127.0.0.1"
PATIENCE: Final = 90.0
"""How long tests wait for something to show up in the log, in seconds: for a slow day, not for a long wait."""
HTTP_1: Final = ["http/1.1"]
"""What is offered while TLS is agreed on, so that nobody begins with HTTP/2."""


class FaultProxy:
    """A proxy on a free port of the loopback interface, from `start` to `stop` or within `with`.

    `upstream` is the API server's URL. `certificate` and `key` are shown to clients, who speak HTTPS to the proxy, or
    HTTP if there are none. `ca` is what the API server's certificate is checked against, `client_certificate` and
    `client_key` are shown to it if it asks. `seed` is for rules with a probability.
    """

    def __init__(
        self,
        upstream: str,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        ca: Path | None = None,
        client_certificate: Path | None = None,
        client_key: Path | None = None,
        seed: int = 0,
    ) -> None:
        target = urlsplit(upstream)
        if target.scheme not in {"http", "https"} or not target.hostname or not target.port:
            raise ValueError(f"not the URL of an API server, with a port: {upstream}")
        self._host, self._port = target.hostname, target.port
        self._towards_upstream: ssl.SSLContext | None = None
        if target.scheme == "https":
            self._towards_upstream = ssl.create_default_context(cafile=ca)
            self._towards_upstream.set_alpn_protocols(HTTP_1)
            if client_certificate:
                self._towards_upstream.load_cert_chain(client_certificate, client_key)
        self._towards_clients: ssl.SSLContext | None = None
        if certificate:
            self._towards_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._towards_clients.set_alpn_protocols(HTTP_1)
            self._towards_clients.load_cert_chain(certificate, key)
        self._script = Script(seed)
        self._log = Log()
        self._clients: set[Wire] = set()
        self._url = ""
        self._running: _Running | None = None

    @property
    def url(self) -> str:
        """The URL for clients. It stays the same after a stop, when nothing answers there any more."""
        assert self._url, "the proxy was never started"
        return self._url

    @property
    def requests(self) -> tuple[Entry, ...]:
        """All requests until now, in the order of arrival."""
        return self._log.entries()

    def wait_for(
        self, condition: Callable[[Entry], bool] = lambda _: True, *, count: int = 1, timeout: float = PATIENCE
    ) -> list[Entry]:
        """Wait until the condition holds for that many requests, and return all for which it does by then.

        Raises TimeoutError, with what there is instead.
        """
        return self._log.wait_for(condition, count, timeout)

    def add(
        self, fault: Fault, *, method: str = ".*", path: str = "", nth: int | range = EVERY, probability: float = 1.0
    ) -> Rule:
        """Add a rule; see `Script.add`."""
        return self._script.add(fault, method=method, path=path, nth=nth, probability=probability)

    def remove(self, rule: Rule) -> None:
        """Remove a rule; see `Script.remove`."""
        self._script.remove(rule)

    def clear(self) -> None:
        """Remove all rules."""
        self._script.clear()

    def lose_connections(self) -> None:
        """Lose every connection that clients have at this moment, without a goodbye. They may connect anew.

        What was sent by then arrives as it would have, late where that is its fault.
        """
        if running := self._running:
            running.call(self._lose_clients)

    def start(self) -> None:
        """Begin to listen. Clients may connect as soon as this returns."""
        assert not self._running, "the proxy runs already"
        listener = socket.create_server((LOOPBACK, 0), backlog=socket.SOMAXCONN)
        self._url = f"{'https' if self._towards_clients else 'http'}://{LOOPBACK}:{listener.getsockname()[1]}"
        self._running = _Running(listener, self._converse)

    def stop(self) -> None:
        """End all connections and wait until nothing is left of them. Does nothing to a proxy that does not run."""
        running, self._running = self._running, None
        if running:
            running.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def _converse(self, number: int, connection: socket.socket) -> None:
        """Serve one connection of a client."""
        reader, writer = await asyncio.open_connection(sock=connection)
        tls = Tls(self._towards_clients, server_hostname=None) if self._towards_clients else None
        client = Wire(Stream(reader, writer, tls), Peer.CLIENT)
        self._clients.add(client)
        try:
            await Conversation(number, client, self._connect, self._script, self._log).run()
        finally:
            self._clients.remove(client)

    def _lose_clients(self) -> None:
        for client in self._clients:
            client.stream.abort()

    async def _connect(self) -> Wire:
        """Connect to the API server. Raises LostError when it is not there, or not the one whose CA we have."""
        try:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        except OSError as error:
            raise LostError(Peer.UPSTREAM) from error
        tls = Tls(self._towards_upstream, server_hostname=self._host) if self._towards_upstream else None
        upstream = Wire(Stream(reader, writer, tls), Peer.UPSTREAM)
        try:
            await upstream.handshake()
        except BaseException:
            upstream.stream.abort()
            await upstream.stream.closed()
            raise
        return upstream


class _Running:
    """The thread of a proxy that runs, its event loop, and a task for each connection of a client.

    Why not asyncio's server: on Python 3.11 it forgets a connection that comes in while it is being closed.
    """

    def __init__(
        self, listener: socket.socket, converse: Callable[[int, socket.socket], Coroutine[None, None, None]]
    ) -> None:
        self._listener = listener
        self._converse = converse
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[Exception] = []
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)
        self._thread.start()

    def call(self, action: Callable[[], None]) -> None:
        """Have something done soon, by the loop."""
        self._loop.call_soon_threadsafe(action)

    def stop(self) -> None:
        """End everything and wait for it. Raises, together, what went wrong in the meantime."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        if self._errors:
            raise ExceptionGroup("the fault proxy itself failed", self._errors)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        with self._listener:
            self._listener.setblocking(False)
            self._loop.add_reader(self._listener, self._accept)
            await self._stopping.wait()
            self._loop.remove_reader(self._listener)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionAbortedError):  # a client that has gone again
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            self._connections += 1
            task = self._loop.create_task(self._converse(self._connections, connection))
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._ended(task, connection))

    def _ended(self, task: asyncio.Task[None], connection: socket.socket) -> None:
        connection.close()  # for a task that was cancelled before it began; others have done so
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._errors.append(error)
