"""Sees from outside when nodes change: one watch, the lightest that the API server offers.

The watch asks for table rows without the object: 325 bytes an event instead of 9,700, and in a form that no contestant
asks for, so that the API server's work for it is the same for all. A row has no block in it. That a node which changed
has one is checked after the run, when it no longer costs anybody time.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tests.testenv.nodes import NODES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import TracebackType

    from tests.testenv.cluster import Cluster

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_LOOK_EVERY = 0.01
_PATIENCE = 120.0


class Observer:
    """Notes when each node was first changed, while it is open. The clock is `time.monotonic`."""

    def __init__(self, cluster: Cluster) -> None:
        self.changed: dict[str, float] = {}
        identity = cluster.admin.identity
        assert identity is not None
        self._tls = ssl.create_default_context(cafile=str(cluster.authority.certificate))
        self._tls.load_cert_chain(identity.certificate, identity.key)
        self._port = cluster.port
        self._version: str = cluster.admin.get(NODES, limit="1")["metadata"]["resourceVersion"]
        self._connection, self._reply = self._watch()
        self._closing = False
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._follow, name="observer", daemon=True)

    def __enter__(self) -> Observer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)  # wakes the reader, as closing would not
        self._thread.join()
        self._connection.close()

    def wait(self, names: Collection[str], alive: Callable[[], None]) -> None:
        """Wait until all of them have changed. Calls `alive` now and then; raises what it raises, or `TimeoutError`."""
        seen, since = -1, time.monotonic()
        while not all(name in self.changed for name in names):
            alive()
            self.check()
            if len(self.changed) != seen:
                seen, since = len(self.changed), time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                raise TimeoutError(f"nothing changes any more; {seen:,} of {len(names):,} nodes have")
            time.sleep(_LOOK_EVERY)

    def check(self) -> None:
        """Raise the error that ended the watch, if one did."""
        if self._fault is not None:
            raise self._fault

    def _follow(self) -> None:
        """Until closed. An API server that is hard pressed ends watches; this one then goes on where it was."""
        while not self._closing:
            try:
                self._read()
                if not self._closing:
                    self._connection.close()
                    self._connection, self._reply = self._watch()
            except (OSError, ValueError, http.client.HTTPException) as error:
                if not self._closing:
                    self._fault = error
                return

    def _watch(self) -> tuple[http.client.HTTPSConnection, http.client.HTTPResponse]:
        query = {"watch": "true", "resourceVersion": self._version, "includeObject": "None", "timeoutSeconds": "3600"}
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls)
        connection.request("GET", f"{NODES}?{urlencode(query)}", headers={"Accept": _TABLE})
        reply = connection.getresponse()
        if reply.status != http.client.OK:
            raise ValueError(f"the observer's watch was refused: {reply.status} {reply.read(200)!r}")
        return connection, reply

    def _read(self) -> None:
        for line in self._reply:
            now = time.monotonic()
            event = json.loads(line)
            for name in changed_nodes(event):
                self.changed.setdefault(name, now)
            self._version = event["object"]["metadata"]["resourceVersion"]


def changed_nodes(event: dict[str, Any]) -> list[str]:
    """The names of the nodes that a table event says were changed."""
    if event["type"] == "ERROR":
        raise ValueError(f"the observer's watch failed: {event['object']}")
    return [row["cells"][0] for row in event["object"]["rows"] if event["type"] == "MODIFIED"]
