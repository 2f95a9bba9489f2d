"""A steady stream of nodes: each comes, is served, and goes when as many have come after it as are to live at a time.

Beside each twentieth comes a stray, which no pool applies to, so that there is something to tell in events. No name is
used twice: what is kept by name and never let go would be seen.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tests.testenv.nodes import NODES, realistic_node

if TYPE_CHECKING:
    from types import TracebackType

    from tests.testenv.client import Client

LIFE = 15.0
"""Seconds that a node lives."""
LABEL = {"soak": "yes"}
"""What the pool selects."""
_STRAY_EVERY = 20
_WORKERS = 8
_WAITING_MAX = 64
"""Requests that may wait for a worker. Beyond them the stream is as slow as the API server, and says so by its rate."""


class Load:
    """The stream, while it is open; all nodes are gone when it ends."""

    def __init__(self, client: Client, rate: float, living: int) -> None:
        self._client = client
        self._rate = rate
        self._living = living
        self._stopped = threading.Event()
        self._slots = threading.Semaphore(_WAITING_MAX)
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="load")
        self._thread = threading.Thread(target=self._stream, name="load")
        self._lock = threading.Lock()
        self._created = 0
        self._fault: BaseException | None = None

    @property
    def created(self) -> int:
        """How many nodes have come, strays apart. Raises what went wrong."""
        if self._fault is not None:
            raise self._fault
        return self._created

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._pool.shutdown()

    def _stream(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stopped.wait(max(0.0, began + number / self._rate - time.monotonic())):
            self._come(number)
            self._go(number - self._living)
            number += 1
        for late in range(max(0, number - self._living), number):
            self._go(late)

    def _come(self, number: int) -> None:
        self._submit("create", _name(number))
        if number % _STRAY_EVERY == 0:
            self._submit("create", _stray(number))

    def _go(self, number: int) -> None:
        if number < 0:
            return
        self._submit("delete", _name(number))
        if number % _STRAY_EVERY == 0:
            self._submit("delete", _stray(number))

    def _submit(self, what: str, name: str) -> None:
        self._slots.acquire()
        self._pool.submit(self._do, what, name)

    def _do(self, what: str, name: str) -> None:
        try:
            if what == "delete":
                self._client.delete(f"{NODES}/{name}")
                return
            stray = name.startswith("stray")
            self._client.create(NODES, realistic_node(name, None if stray else LABEL))
            if not stray:
                with self._lock:
                    self._created += 1
        except BaseException as error:
            # A thread's failure is nobody's: whoever asks next is told.
            self._fault = self._fault or error
        finally:
            self._slots.release()


def _name(number: int) -> str:
    return f"node-{number:07}"


def _stray(number: int) -> str:
    return f"stray-{number:07}"
