"""The account that `deploy/` gives the controller, for tests that run it under exactly those rules.

Everything in `deploy/` is applied as a person would, with the real kubectl. Nobody is there to start the Deployment's
Pods, so that the tests' own process is the only one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.testenv.api import kubeconfig

if TYPE_CHECKING:
    import subprocess

    from tests.testenv.api import Api
    from tests.testenv.client import Json

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE = "kube-system"
ACCOUNT = "cidrella"
_CRDS = tuple(
    f"customresourcedefinition/{plural}.networking.x-k8s.io" for plural in ("clustercidrs", "clustercidrconfigs")
)
_BINDING_KINDS = frozenset({"RoleBinding", "ClusterRoleBinding"})


def controller_account(cluster: Api, name: str = ACCOUNT) -> Path:
    """Apply `deploy/` and return a kubeconfig file for its ServiceAccount, `kube-system/cidrella`.

    Another name makes another ServiceAccount with the same rights, to tell two controllers apart in the audit log.
    Can be called again and again; each call makes a new token, good for two hours.
    """
    apply_deploy(cluster)
    if name != ACCOUNT and cluster.has_rights:
        _another_account(cluster, name)
    path = cluster.directory / f"{name}-account.kubeconfig"
    user = {"token": account_token(cluster, name)}
    path.write_text(yaml.safe_dump(kubeconfig(cluster.server, cluster.authority.certificate, user)))
    return path


def apply_deploy(cluster: Api) -> subprocess.CompletedProcess[str]:
    """`kubectl apply -k deploy/`, and wait until the API server serves the new kinds."""
    applied = apply_directory(cluster, DEPLOY, *_CRDS)
    await_storage(cluster)
    return applied


def apply_directory(cluster: Api, directory: Path, *crds: str) -> subprocess.CompletedProcess[str]:
    """`kubectl apply -k` of a directory, and wait until the CRDs in it are established."""
    # The API server makes its own namespaces a moment after it is ready.
    cluster.admin.wait("/api/v1/namespaces", lambda found: NAMESPACE in found)
    applied = cluster.apply(directory)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", *crds)
    return applied


def await_storage(cluster: Api) -> None:
    """A kind that is established still has its storage made; the client waits for that."""
    for path in ("v1/clustercidrs", "v1alpha1/clustercidrconfigs"):
        cluster.admin.get(f"/apis/networking.x-k8s.io/{path}")


def account_token(cluster: Api, name: str = ACCOUNT) -> str:
    """A token of a ServiceAccount in kube-system, such as a Pod is given."""
    return cluster.account_token(name, NAMESPACE)


def deployed(cluster: Api, directory: Path = DEPLOY) -> list[Json]:
    """The objects of `deploy/` or another directory, as kustomize puts them together."""
    built = cluster.kubectl("kustomize", directory)
    return list(yaml.safe_load_all(built.stdout))


def _another_account(cluster: Api, name: str) -> None:
    """A ServiceAccount with bindings of its own to the roles of `deploy/`."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    objects: list[Json] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
    ]
    for each in deployed(cluster):
        if each["kind"] in _BINDING_KINDS:
            metadata = {**each["metadata"], "name": f"{each['metadata']['name']}-for-{name}"}
            objects.append({**each, "metadata": metadata, "subjects": [subject]})
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
