"""One API server for all tests, with our CRDs; its logs are kept when a test fails.

There are two: the real one and the embedded one. Every test that takes `cluster`, `site`, or whatever is made of
`server`, runs on both, but for those in `only_kubernetes`.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.behind import proxy_before
from tests.real.only_kubernetes import only_kubernetes
from tests.real.rbac import controller_account
from tests.real.site import Site
from tests.testenv.cluster import Cluster
from tests.testenv.embedded import Embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.api import Api
    from tests.testenv.proxy import FaultProxy

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "deploy" / "crds"
WEBHOOK_CRDS = ROOT / "deploy" / "webhook" / "crds"
KEPT_LOGS = ROOT / "build" / "testenv-logs"


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl, as a user of the cluster."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run it; how it ended is for the test to judge."""
        command = [self.program, "--kubeconfig", self.kubeconfig, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180, check=False)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run on both servers, or on the real one alone."""
    if "server" in metafunc.fixturenames:
        alone = only_kubernetes(metafunc.definition.path.name, metafunc.function.__name__)
        servers = [Cluster] if alone else [Cluster, Embedded]
        metafunc.parametrize("server", servers, indirect=True, ids=lambda each: each.kind, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> type[Api]:
    """Which of the two."""
    made: type[Api] = request.param
    return made


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, server: type[Api]) -> Iterator[Api]:
    """A running API server."""
    failed_before = request.session.testsfailed
    with server.temporary(keep_logs_in=KEPT_LOGS) as running:
        yield running
        if request.session.testsfailed > failed_before:
            running.copy_logs(KEPT_LOGS)


@pytest.fixture(scope="session")
def kubectl(cluster: Api) -> Kubectl:
    """The administrator's kubectl, on a cluster that knows our CRDs."""
    made = Kubectl(cluster.kubectl_path, cluster.kubeconfig)
    files = ("-f", CRDS, "-f", WEBHOOK_CRDS)
    applied = made("apply", *files)
    assert applied.returncode == 0, applied.stderr
    # One that was there before, the embedded API's own, kubectl takes over, and says so.
    assert not [line for line in applied.stderr.splitlines() if "last-applied-configuration" not in line]
    waited = made("wait", "--for=condition=Established", "--timeout=120s", *files)
    assert waited.returncode == 0, waited.stderr
    return made


@pytest.fixture(scope="session")
def account(cluster: Api) -> Path:
    """A kubeconfig file of the controller's account, on a cluster with all of `deploy/`."""
    return controller_account(cluster)


@pytest.fixture
def site(cluster: Api, account: Path, tmp_path: Path) -> Iterator[Site]:
    """A cluster without nodes and pools, for replicas of the controller."""
    made = Site(cluster, tmp_path, account)
    made.clean()
    yield made
    made.clean()


@pytest.fixture
def proxy(cluster: Api) -> Iterator[FaultProxy]:
    """A proxy before the API server."""
    with proxy_before(cluster) as running:
        yield running
