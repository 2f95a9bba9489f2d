"""A webhook that answers only the API server: by the certificate that the API server was told to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.real.conftest import KEPT_LOGS
from tests.real.webhook import WebhookSite
from tests.testenv.certs import Authority
from tests.testenv.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIGURED = "apiserver.config.k8s.io/v1"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return a CA for nothing but this."""
    return Authority(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def site(clients: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    """Yield the webhook, without replicas, where the API server shows a certificate to all webhooks."""
    directory = tmp_path_factory.mktemp("site")
    shown = clients.client("kube-apiserver")
    user = {"client-certificate": str(shown.certificate), "client-key": str(shown.key)}
    written = directory / "webhooks.kubeconfig"
    written.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}))
    configuration = {
        "apiVersion": CONFIGURED,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(written),
    }
    plugins = [{"name": "MutatingAdmissionWebhook", "configuration": configuration}]
    admission = directory / "admission.yaml"
    admission.write_text(
        yaml.safe_dump({"apiVersion": CONFIGURED, "kind": "AdmissionConfiguration", "plugins": plugins})
    )
    with (
        Cluster.temporary(keep_logs_in=KEPT_LOGS, flags={"admission-control-config-file": admission}) as cluster,
        WebhookSite(cluster, directory) as made,
    ):
        yield made


def test_the_api_server_is_answered(site: WebhookSite, clients: Authority) -> None:
    """B9: it shows what it was told to, and Services get their addresses from the webhook."""
    site.run(1, f"--client-ca-file={clients.certificate}")
    given = site.create("web")
    assert site.patched()["default/web"] == [given]
    site.stop()


def test_one_with_another_certificate_is_not(site: WebhookSite, tmp_path: Path) -> None:
    """B9: it is as if there were no webhook; the failurePolicy decides."""
    replica = site.replica(f"--client-ca-file={Authority(tmp_path).certificate}")
    replica.process.start()
    replica.wait_ready()
    assert site.create("other")
    assert "default/other" not in site.patched()
    site.stop()
