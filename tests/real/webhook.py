"""The webhook of `deploy/webhook` in a cluster for tests.

All of it is applied as a person would, with the real kubectl, by way of an overlay that changes only where the API
server finds it: a loopback port, since nobody is there to start the Deployment's Pods.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import yaml

from tests.real.rbac import DEPLOY, apply_directory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.testenv.cluster import Cluster

WEBHOOK = DEPLOY / "webhook"
PATH = "/mutate-services"
RANGES = "/apis/cidrella.dev/v1alpha1/rangeallocations"
_CRD = "customresourcedefinition/rangeallocations.cidrella.dev"


def apply_webhook(cluster: Cluster, directory: Path, url: str, ca: str = "") -> None:
    """`kubectl apply -k` of the overlay, which is written to an empty directory. `ca`, in base64, if there is one."""
    client = {"url": f"{url}{PATH}"} | ({"caBundle": ca} if ca else {})
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig", "value": client}]
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(WEBHOOK, directory.resolve())],
        "patches": [{"target": {"kind": "MutatingWebhookConfiguration"}, "patch": json.dumps(patch)}],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    apply_directory(cluster, directory, _CRD)
    cluster.admin.get(RANGES)  # established, its storage is still made; the client waits for that
