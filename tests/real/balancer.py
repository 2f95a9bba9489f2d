"""In the place of a Service: one loopback port whose connections go to several others in turn."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Self

_CHUNK = 65_536


class Balancer:
    """A port, between entering and leaving it. Connections go to the next backend that takes them, or are closed."""

    def __init__(self) -> None:
        self.port = 0
        self.backends: list[int] = []
        """Loopback ports. Those where nobody listens are passed over."""
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listens.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            for _ in range(len(self.backends)):
                self._turn += 1
                port = self.backends[self._turn % len(self.backends)]
                with suppress(ConnectionRefusedError):
                    back, forth = await asyncio.open_connection("127.0.0.1", port)
                    await asyncio.gather(_pump(reader, forth), _pump(back, writer))
                    return
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
