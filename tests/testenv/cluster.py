"""A Kubernetes API server with its etcd, for tests: real TLS, RBAC, an audit log, and nothing left behind.

with Cluster.temporary() as cluster:
    cluster.admin.items("/api/v1/namespaces")
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

import yaml

from tests.testenv.api import ADMIN, NO_FLAGS, SERVICE_RANGE, Api, flag_list
from tests.testenv.binaries import find
from tests.testenv.certs import private_key
from tests.testenv.client import Client
from tests.testenv.ports import free_port
from tests.testenv.processes import Process

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.testenv.client import Json

WITHOUT_AUDIT: Mapping[str, object] = MappingProxyType(
    dict.fromkeys(("audit-policy-file", "audit-log-path", "audit-log-mode"))
)
"""Flags for where the time of a request matters more than what it said."""

# Everything that is written, with what was sent; reads only by name. Requests of the API server to itself tell nothing.
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Request", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "Metadata"},
    ],
}


class Cluster(Api):
    """etcd and kube-apiserver on free loopback ports."""

    kind = "kubernetes"
    has_rights = True
    fsync: ClassVar[bool] = False
    """Whether what is acknowledged is on the disk. A test's data need not outlive the machine."""

    def __init__(self, directory: Path, port: int = 0, flags: Mapping[str, object] = NO_FLAGS) -> None:
        super().__init__(directory, port, flags)
        self._admin_identity = self.authority.client(ADMIN, ["system:masters"])
        self._programs = find(["kube-apiserver", "etcd"])
        etcd_port = free_port()
        self.etcd_url = f"http://127.0.0.1:{etcd_port}"
        self.etcd = self._etcd()
        self.apiserver = self._apiserver()
        self.admin = Client(self.server, self.authority.certificate, self._admin_identity)
        self.kubeconfig = self.write_kubeconfig(ADMIN, identity=self._admin_identity)

    @property
    def processes(self) -> Sequence[Process]:
        """Both."""
        return self.etcd, self.apiserver

    def user(self, name: str, rules: Sequence[Json] = (), groups: Sequence[str] = ()) -> tuple[Client, Path]:
        """A user with a client certificate."""
        identity = self.authority.client(name, groups)
        if rules:
            self._allow(f"user-{name}", rules, {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
        path = self.write_kubeconfig(name, identity=identity)
        return Client(self.server, self.authority.certificate, identity), path

    def service_account(self, name: str, rules: Sequence[Json] = (), namespace: str = "default") -> tuple[Client, Path]:
        """A new one."""
        self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        if rules:
            self._allow(f"sa-{name}", rules, {"kind": "ServiceAccount", "name": name, "namespace": namespace})
        token = self.account_token(name, namespace)
        path = self.write_kubeconfig(f"{namespace}-{name}", token=token)
        return Client(self.server, self.authority.certificate, token=token), path

    def account_token(self, name: str, namespace: str) -> str:
        """A new one, good for two hours."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        made = self.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
        return str(made["status"]["token"])

    def apply(self, directory: Path) -> subprocess.CompletedProcess[str]:
        """All of it, as a person would."""
        return self.kubectl("apply", "-k", directory)

    def _allow(self, name: str, rules: Sequence[Json], subject: Json) -> None:
        group = "/apis/rbac.authorization.k8s.io/v1"
        role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        self.admin.create(f"{group}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
        self.admin.create(
            f"{group}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        )

    def _etcd(self) -> Process:
        flags = {
            "data-dir": self.directory / "etcd",
            "listen-client-urls": self.etcd_url,
            "advertise-client-urls": self.etcd_url,
            "unsafe-no-fsync": None if self.fsync else "true",
        }
        return self._process("etcd", flags)

    def _apiserver(self) -> Process:
        serving = self.authority.server("kube-apiserver")
        accounts = private_key(self.directory / "pki" / "service-accounts.key")
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
        return self._process(
            "kube-apiserver",
            {
                "etcd-servers": self.etcd_url,
                "bind-address": "127.0.0.1",
                "advertise-address": "127.0.0.1",
                "secure-port": self.port,
                "tls-cert-file": serving.certificate,
                "tls-private-key-file": serving.key,
                "client-ca-file": self.authority.certificate,
                "authorization-mode": "RBAC",
                "service-account-issuer": "https://kubernetes.default.svc",
                "service-account-key-file": accounts,
                "service-account-signing-key-file": accounts,
                "service-cluster-ip-range": SERVICE_RANGE,
                "audit-policy-file": policy,
                "audit-log-path": self.audit_log,
                "audit-log-mode": "blocking",
                # There are no Pods, and no controller that would make the ServiceAccounts they ask for.
                "disable-admission-plugins": "ServiceAccount",
                "endpoint-reconciler-type": "none",
                "max-requests-inflight": 2000,
                "max-mutating-requests-inflight": 1000,
                "shutdown-delay-duration": "0s",
                **self.flags,
            },
        )

    def _process(self, name: str, flags: Mapping[str, object]) -> Process:
        return Process(name, [self._programs[name], *flag_list(flags)], self.directory / f"{name}.log")
