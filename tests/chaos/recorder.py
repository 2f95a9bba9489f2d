"""Records what happens in a cluster, from before the first write until all has come to rest.

with Cluster.temporary(flags=recording_flags(directory)) as cluster:
    ...apply the CRDs...
    recorder = Recorder(cluster, directory, Meta(...))
    recorder.begin()
    ...run; now and then: recorder.snapshot(), recorder.fault(...)...
    recorder.rest(leader.samples())
    ...stop every controller...
    history = recorder.finish()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from tests.chaos.history import History, Meta
    from tests.testenv.cluster import Cluster


def recording_flags(directory: Path) -> dict[str, object]:
    """Flags of kube-apiserver, and a file in the directory, that make it keep all that a recorder asks for."""
    raise NotImplementedError


class Recorder:
    """Of one run. `snapshot` and `fault` may be called from any thread."""

    def __init__(self, cluster: Cluster, directory: Path, meta: Meta) -> None:
        self._cluster = cluster
        self._directory = directory
        self._meta = meta

    def begin(self) -> None:
        """Before the first node, pool and Lease; our CRDs are there."""
        raise NotImplementedError

    def snapshot(self) -> bool:
        """Compare later what there is now with what the history says. False while the API server does not answer."""
        raise NotImplementedError

    def fault(self, kind: str, begin: float, end: float, replica: str | None = None) -> None:
        """Something was done, from `begin` to `end`: `time.time()` before it began, and after it had ended."""
        raise NotImplementedError

    def rest(self, samples: Iterable[Any], leader: str = "") -> None:
        """Nothing changes any more: take down what there is, with the leader's metrics (`Replica.samples()`)."""
        raise NotImplementedError

    def finish(self) -> History:
        """Read the whole history, and save it. Every controller has ended; the API server is left without a cache."""
        raise NotImplementedError
