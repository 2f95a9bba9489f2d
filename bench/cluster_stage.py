"""Where the contestants run: every time a fresh API server, over the same nodes.

A node's block can never be taken from it again, so that every run needs new nodes. They are created once; what etcd
holds then is kept, and each run starts with a copy of it. So all find the same: the nodes, the CRDs, nothing else, and
an API server that has just come to rest. Its audit log, which the tests want, is off.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testenv.cluster import WITHOUT_AUDIT, Cluster
from tests.testenv.nodes import NODES, assert_no_overlap, create_nodes, pod_cidrs

from bench.cluster_usage import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.api import Api

_CRDS = Path(__file__).parent.parent / "deploy" / "crds"
_STEP = 500
_QUIET = 0.15
"""Of a core: what an API server that has come to rest takes."""
_QUIET_PERIOD = 0.5
_QUIET_PATIENCE = 30.0


def node_names(count: int) -> list[str]:
    """The names of the first so many nodes."""
    return [f"node-{number:05}" for number in range(count)]


class Stage:
    """API servers that all begin with the same nodes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._runs = 0

    @contextmanager
    def cluster(self, nodes: int) -> Iterator[Cluster]:
        """A cluster with so many nodes that wait for a block, at rest."""
        kept = self._directory / f"nodes-{nodes}"
        if not kept.exists():
            self._fill(kept, nodes)
        with self._started(kept) as cluster:
            wait_quiet(cluster)
            yield cluster

    def _fill(self, kept: Path, nodes: int) -> None:
        """Create the nodes, and keep what etcd then holds."""
        names = node_names(nodes)
        with self._started(None) as cluster:
            command = [str(cluster.kubectl_path), f"--kubeconfig={cluster.kubeconfig}", "apply", f"--filename={_CRDS}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - a program that we built
            for at in range(0, nodes, _STEP):
                create_nodes(cluster.admin, names[at : at + _STEP])
                print(f"  created {min(at + _STEP, nodes):,} of {nodes:,} nodes", flush=True)
            cluster.stop()
            shutil.copytree(cluster.directory / "etcd", kept)

    @contextmanager
    def _started(self, data: Path | None) -> Iterator[Cluster]:
        self._runs += 1
        directory = self._directory / f"run-{self._runs}"
        cluster = Cluster(directory, flags=WITHOUT_AUDIT)
        if data is not None:
            shutil.copytree(data, directory / "etcd")
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
            shutil.rmtree(directory)


def verify(cluster: Cluster, count: int) -> None:
    """Whatever was fast has to be right: every node has one block, and no two share an address."""
    nodes = cluster.admin.items(NODES, resourceVersion="0")
    held = pod_cidrs(nodes)
    assert len(held) == count, f"{len(held)} nodes instead of {count}"
    without = [name for name, cidrs in held.items() if len(cidrs) != 1]
    assert not without, f"{len(without)} nodes do not have one block, as {without[0]}: {held[without[0]]}"
    assert_no_overlap(nodes)


def wait_quiet(api: Api) -> None:
    """Wait until the API server has done what it does after its start."""
    deadline = time.monotonic() + _QUIET_PATIENCE
    while time.monotonic() < deadline:
        before = cpu_seconds(api.apiserver.pid)
        time.sleep(_QUIET_PERIOD)
        if cpu_seconds(api.apiserver.pid) - before < _QUIET * _QUIET_PERIOD:
            return
    print("  the API server does not come to rest; going on", flush=True)
