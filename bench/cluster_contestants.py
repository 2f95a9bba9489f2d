"""Who runs, and how each is started. All connect as the same user; in the race nobody elects a leader.

kube-controller-manager's client limits itself to 20 requests a second, with a burst of 30. As it ships, the number of
nodes does not change how fast it is, so it gets fewer of them; with the limit lifted it gets as many as everybody.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.testenv import binaries, go
from tests.testenv.processes import Process

from bench.bare import LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.testenv.cluster import Cluster

    Command = Callable[[Cluster], list[str]]

RANGE = "100.64.0.0/10"
BARE, OURS, PEER, PEER_LIFTED = "bare", "cidrella", "kcm", "kcm-lifted"
_CIDRELLA = Path(sys.executable).with_name("cidrella")
_LIFTED = 10_000
"""Requests a second: more than any API server answers."""


@dataclass(frozen=True)
class Contestant:
    """A program that gives blocks to nodes, on so many of them."""

    key: str
    title: str
    nodes: int
    command: Command

    def process(self, cluster: Cluster) -> Process:
        """It, not yet started."""
        return Process(self.key, self.command(cluster), cluster.directory / f"{self.key}.log")


def contestants(nodes: int, nodes_as_shipped: int, concurrency: int) -> list[Contestant]:
    """All that can be had. A line says who is left out, and why."""
    found = [bare_loop(nodes, concurrency)]
    if ours_runs():
        found.append(Contestant(OURS, "Cidrella", nodes, cidrella()))
    else:
        print("LEFT OUT: Cidrella, which has no `cidrella run` here.")
    try:
        path = binaries.find(("kube-controller-manager",))["kube-controller-manager"]
    except (go.MissingError, go.BuildError) as error:
        print(f"LEFT OUT: kube-controller-manager. {error}")
    else:
        found += [
            Contestant(PEER, "kube-controller-manager as it ships", nodes_as_shipped, _manager(path)),
            Contestant(PEER_LIFTED, "kube-controller-manager unlimited", nodes, _manager(path, _LIFTED)),
        ]
    print("LEFT OUT: node-ipam-controller, which could not be had (testenv/README.md).")
    return found


def bare_loop(nodes: int, concurrency: int) -> Contestant:
    """The limit for all: PATCHes and nothing else."""
    return Contestant(BARE, f"bare loop of PATCHes, {concurrency} at a time", nodes, bare("patch", concurrency))


def ours_runs() -> bool:
    """Whether there is a `cidrella run`."""
    asked = subprocess.run([_CIDRELLA, "run", "--help"], capture_output=True, check=False)  # noqa: S603 - our own
    return asked.returncode == 0


def bare(work: str, concurrency: int = 1, block_range: str = RANGE, options: Sequence[str] = ()) -> Command:
    """One of the works of `bench.bare`."""

    def command(cluster: Cluster) -> list[str]:
        identity = cluster.admin.identity
        assert identity is not None
        return [
            *(sys.executable, "-m", "bench.bare", work),
            f"--server={cluster.server}",
            f"--ca={cluster.authority.certificate}",
            f"--certificate={identity.certificate}",
            f"--key={identity.key}",
            f"--range={block_range}",
            f"--concurrency={concurrency}",
            *options,
        ]

    return command


def cidrella(port: int = 0, *, elects: bool = False) -> Command:
    """Our controller, with its pool out of the flags."""
    return lambda cluster: [
        *(str(_CIDRELLA), "run"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--leader-elect={str(elects).lower()}",
        f"--cluster-cidr={RANGE}",
        f"--node-cidr-mask-size={LENGTH}",
        f"--bind-address=127.0.0.1:{port}",
    ]


def _manager(path: Path, requests_per_second: int = 0) -> Command:
    limits = [f"--kube-api-qps={requests_per_second}", f"--kube-api-burst={requests_per_second}"]
    return lambda cluster: [
        str(path),
        f"--kubeconfig={cluster.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--controllers=node-ipam-controller",
        "--allocate-node-cidrs=true",
        f"--cluster-cidr={RANGE}",
        f"--node-cidr-mask-size={LENGTH}",
        *(limits if requests_per_second else ()),
    ]
