"""A Kubernetes API server with its etcd, for tests: real TLS, RBAC, an audit log, and nothing left behind.

with Cluster.temporary() as cluster:
    cluster.admin.items("/api/v1/namespaces")
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import yaml

from tests.testenv.binaries import find
from tests.testenv.certs import Authority, private_key
from tests.testenv.client import ApiError, Client
from tests.testenv.processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.testenv.certs import Identity
    from tests.testenv.client import Json

SERVICE_RANGE = "10.96.0.0/16"
ADMIN = "admin"
NO_FLAGS: Mapping[str, object] = MappingProxyType({})
WITHOUT_AUDIT: Mapping[str, object] = MappingProxyType(
    dict.fromkeys(("audit-policy-file", "audit-log-path", "audit-log-mode"))
)
"""Flags for where the time of a request matters more than what it said."""
_READY_SECONDS = 90
_POLL_SECONDS = 0.05
_ASK_SECONDS = 2.0

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


class Cluster:
    """etcd and kube-apiserver on free loopback ports, with all of their files in one directory."""

    def __init__(self, directory: Path, port: int = 0, flags: Mapping[str, object] = NO_FLAGS) -> None:
        """Make its files. `flags` are for kube-apiserver, over those it has; one that is None is left out."""
        self.directory = directory
        certificates = directory / "pki"
        certificates.mkdir(parents=True)
        self.authority = Authority(certificates)
        self._admin_identity = self.authority.client(ADMIN, ["system:masters"])
        self._programs = find(["kube-apiserver", "etcd", "kubectl"])
        self.kubectl_path = self._programs["kubectl"]
        etcd_port, self.port = free_port(), port or free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.audit_log = directory / "audit.log"
        self.etcd = self._etcd(etcd_port)
        self.apiserver = self._apiserver(etcd_port, certificates, flags)
        self.admin = Client(self.server, self.authority.certificate, self._admin_identity)
        self.kubeconfig = self._write_kubeconfig(ADMIN, identity=self._admin_identity)

    @classmethod
    @contextmanager
    def temporary(
        cls, port: int = 0, keep_logs_in: Path | None = None, flags: Mapping[str, object] = NO_FLAGS
    ) -> Iterator[Cluster]:
        """A cluster that is gone afterwards. With `keep_logs_in`, its logs stay there if the block fails."""
        with tempfile.TemporaryDirectory(prefix="cidrella-testenv-", ignore_cleanup_errors=True) as name:
            cluster = cls(Path(name) / "cluster", port, flags)
            try:
                cluster.start()
                yield cluster
            except BaseException:
                if keep_logs_in is not None:
                    cluster.copy_logs(keep_logs_in)
                raise
            finally:
                cluster.stop()

    def start(self) -> None:
        """Start both, and wait until the API answers. Raises `RuntimeError` with the logs' ends if it does not."""
        self.etcd.start()
        self.apiserver.start()
        self.wait_ready()

    def stop(self) -> None:
        """Stop both; no error for what is not running."""
        self.admin.close()
        self.apiserver.stop()
        self.etcd.stop()

    def restart(self, process: Process) -> None:
        """Kill one of the two, start it again, and wait until the API answers."""
        process.kill()
        process.start()
        self.wait_ready()
        self.admin.close()  # its connections were to the one that is gone

    def wait_ready(self) -> None:
        """Wait until the API server says that it is ready."""
        deadline = time.monotonic() + _READY_SECONDS
        last: Exception | None = None
        asking = Client(self.server, self.authority.certificate, self._admin_identity, timeout=_ASK_SECONDS)
        while time.monotonic() < deadline:
            for process in (self.etcd, self.apiserver):
                if process.ended is not None:
                    raise RuntimeError(f"{process.name} ended with {process.ended}:\n{process.tail()}")
            try:
                asking.get("/readyz")
                # The first namespace is made a moment after the server is ready, and much needs it.
                asking.get("/api/v1/namespaces/default")
            except (OSError, ApiError) as error:
                last = error
                time.sleep(_POLL_SECONDS)
            else:
                return
            finally:
                asking.close()
        raise RuntimeError(f"not ready after {_READY_SECONDS} s ({last}):\n{self.apiserver.tail()}")

    def copy_logs(self, directory: Path) -> None:
        """Keep the logs, for whoever has to find out what went wrong."""
        directory.mkdir(parents=True, exist_ok=True)
        for path in (self.etcd.log, self.apiserver.log, self.audit_log):
            if path.exists():
                shutil.copy(path, directory)

    def user(self, name: str, rules: Sequence[Json] = (), groups: Sequence[str] = ()) -> tuple[Client, Path]:
        """A user with a client certificate who may do what the rules say: a client, and a kubeconfig file."""
        identity = self.authority.client(name, groups)
        if rules:
            self._allow(f"user-{name}", rules, {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"})
        path = self._write_kubeconfig(name, identity=identity)
        return Client(self.server, self.authority.certificate, identity), path

    def service_account(self, name: str, rules: Sequence[Json] = (), namespace: str = "default") -> tuple[Client, Path]:
        """A ServiceAccount with a bearer token, allowed what the rules say: a client, and a kubeconfig file."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.admin.create(accounts, {"metadata": {"name": name}})
        if rules:
            self._allow(f"sa-{name}", rules, {"kind": "ServiceAccount", "name": name, "namespace": namespace})
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        token: str = self.admin.create(f"{accounts}/{name}/token", request)["status"]["token"]
        path = self._write_kubeconfig(f"{namespace}-{name}", token=token)
        return Client(self.server, self.authority.certificate, token=token), path

    def _allow(self, name: str, rules: Sequence[Json], subject: Json) -> None:
        group = "/apis/rbac.authorization.k8s.io/v1"
        role = {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
        self.admin.create(f"{group}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)})
        self.admin.create(
            f"{group}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        )

    def _write_kubeconfig(self, name: str, identity: Identity | None = None, token: str = "") -> Path:
        user: dict[str, str] = {"token": token}
        if identity is not None:
            user = {"client-certificate": str(identity.certificate), "client-key": str(identity.key)}
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig(self.server, self.authority.certificate, user)))
        return path

    def _etcd(self, port: int) -> Process:
        url = f"http://127.0.0.1:{port}"
        flags = {
            "data-dir": self.directory / "etcd",
            "listen-client-urls": url,
            "advertise-client-urls": url,
            # A test's data need not outlive the machine.
            "unsafe-no-fsync": "true",
        }
        return self._process("etcd", flags)

    def _apiserver(self, etcd_port: int, certificates: Path, flags: Mapping[str, object]) -> Process:
        serving = self.authority.server("kube-apiserver")
        accounts = private_key(certificates / "service-accounts.key")
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
        return self._process(
            "kube-apiserver",
            {
                "etcd-servers": f"http://127.0.0.1:{etcd_port}",
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
                **flags,
            },
        )

    def _process(self, name: str, flags: Mapping[str, object]) -> Process:
        command = [
            str(self._programs[name]),
            *(f"--{flag}={value}" for flag, value in flags.items() if value is not None),
        ]
        return Process(name, command, self.directory / f"{name}.log")


def kubeconfig(server: str, ca: Path, user: Mapping[str, object]) -> Json:
    """The contents of a kubeconfig file for one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
