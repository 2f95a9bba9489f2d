"""The two servers of the suite. Every test that takes `api`, or what is made of it, runs on both.

They are shared by all tests: a test calls what it makes by its own `name`, or puts it into its own `namespace`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from tests.conformance.talking import Talk
from tests.real.conftest import CRDS, KEPT_LOGS, WEBHOOK_CRDS, Kubectl
from tests.real.site import eventually
from tests.testenv.cluster import Cluster
from tests.testenv.embedded import Embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.testenv.api import Api

OPENAPI_PATHS = {"apis/networking.x-k8s.io/v1", "apis/networking.x-k8s.io/v1alpha1", "apis/cidrella.dev/v1alpha1"}
CRD_FILES = ("-f", CRDS, "-f", WEBHOOK_CRDS)
SERVERS = (Cluster, Embedded)


def install(api: Api) -> None:
    """Our CRDs, once the namespaces that are always there are."""
    api.admin.wait("/api/v1/namespaces", lambda found: "kube-system" in found)
    api.kubectl("apply", *CRD_FILES)
    api.kubectl("wait", "--for=condition=Established", "--timeout=120s", *CRD_FILES)
    # The API server adds the groups of CRDs to its OpenAPI documents a second later.
    eventually(lambda: api.admin.get("/openapi/v3")["paths"].keys() >= OPENAPI_PATHS)


@pytest.fixture(scope="session", params=SERVERS, ids=lambda server: server.kind)
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """A running API server that knows our CRDs."""
    failed_before = request.session.testsfailed
    server: type[Api] = request.param
    with server.temporary(keep_logs_in=KEPT_LOGS) as running:
        install(running)
        yield running
        if request.session.testsfailed > failed_before:
            running.copy_logs(KEPT_LOGS)


@pytest.fixture(scope="session")
def talk(api: Api) -> Iterator[Talk]:
    """The administrator's requests, and their whole replies."""
    talking = Talk(api.admin)
    yield talking
    talking.close()


@pytest.fixture(scope="session")
def kubectl(api: Api) -> Kubectl:
    """The administrator's kubectl."""
    return Kubectl(api.kubectl_path, api.kubeconfig)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name of this test's own, for what it makes."""
    plain = re.sub(r"[^a-z0-9]+", "-", request.node.originalname.lower().removeprefix("test_"))[:40].strip("-")
    return f"{plain}-{crc32(request.node.nodeid.encode()):08x}"


@pytest.fixture
def namespace(talk: Talk, name: str) -> str:
    """A namespace of this test's own. It stays: nobody empties those that are deleted."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    talk.create("/api/v1/namespaces", body).granted(201)
    return name
