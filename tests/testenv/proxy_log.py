"""What a proxy has seen: one entry for each request, in the order of arrival, readable from any thread."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.testenv.fault_script import Rule


class End(StrEnum):
    """How an exchange ended."""

    COMPLETE = "complete"
    """The client has the whole reply, the API server's or the proxy's own."""
    FAULT = "fault"
    """The fault took the connection away."""
    CLIENT_GONE = "client gone"
    UPSTREAM_LOST = "upstream lost"
    """The API server could not be reached, or was lost before the end of its reply."""
    STOPPED = "stopped"
    """The proxy was stopped meanwhile, or failed itself, which it then raises when it is stopped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A request as it stands.

    `connection` numbers the connections of clients from 1, `at` is the time of arrival in seconds since 1970, `status`
    the API server's (None until it has replied), `end` None until the exchange has ended.
    """

    connection: int
    method: str
    path: str
    at: float
    rule: Rule | None
    status: int | None = None
    end: End | None = None


class Log:
    """The entries of a proxy. Reading copies the list; entries themselves never change."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._changed = threading.Condition()

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries as they stand."""
        with self._changed:
            return tuple(self._entries)

    def wait_for(self, condition: Callable[[Entry], bool], count: int, timeout: float) -> list[Entry]:
        """Wait until the condition holds for that many entries, and return all for which it does.

        Raises TimeoutError, with what there is instead.
        """

        def found() -> list[Entry]:
            return [entry for entry in self._entries if condition(entry)]

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, timeout):
                raise TimeoutError("the proxy has seen only:\n" + "\n".join(map(str, self._entries)))
            return found()

    def arrived(self, connection: int, method: str, path: str, rule: Rule | None) -> int:
        """Add a request and return its place in the log."""
        with self._changed:
            self._entries.append(Entry(connection, method, path, time.time(), rule))
            self._changed.notify_all()
            return len(self._entries) - 1

    def replied(self, place: int, status: int) -> None:
        """Note the API server's status."""
        with self._changed:
            self._entries[place] = replace(self._entries[place], status=status)
            self._changed.notify_all()

    def ended(self, place: int, end: End) -> None:
        """Note how the exchange ended."""
        with self._changed:
            self._entries[place] = replace(self._entries[place], end=end)
            self._changed.notify_all()
