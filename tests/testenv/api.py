"""An API server under test: what the real one (`Cluster`) and the embedded one (`Embedded`) have in common.

Tests that take an `Api` run on either, and do not ask which.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self

import yaml

from tests.testenv.binaries import find
from tests.testenv.certs import Authority
from tests.testenv.client import ApiError, Client
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.testenv.certs import Identity
    from tests.testenv.client import Json
    from tests.testenv.processes import Process

SERVICE_RANGE = "10.96.0.0/16"
ADMIN = "admin"
NO_FLAGS: Mapping[str, object] = MappingProxyType({})
_READY_SECONDS = 240
_POLL_SECONDS = 0.05
_ASK_SECONDS = 10.0


class Api(ABC):
    """An API server on a free loopback port, with all of its files in one directory. Starts stopped."""

    kind: ClassVar[str]
    """In the names of tests."""
    has_rights: ClassVar[bool]
    """Whether what somebody may do depends on who it is."""
    apiserver: Process
    admin: Client
    """Who may do everything."""
    kubeconfig: Path
    """The administrator's."""

    def __init__(self, directory: Path, port: int = 0, flags: Mapping[str, object] = NO_FLAGS) -> None:
        """Make its files. `flags` are the server's, over those it has; one that is None is left out."""
        self.directory = directory
        self.flags = flags
        certificates = directory / "pki"
        certificates.mkdir(parents=True)
        self.authority = Authority(certificates)
        self.kubectl_path = find(["kubectl"])["kubectl"]
        self.port = port or free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        self.audit_log = directory / "audit.log"

    @classmethod
    @contextmanager
    def temporary(
        cls, port: int = 0, keep_logs_in: Path | None = None, flags: Mapping[str, object] = NO_FLAGS
    ) -> Iterator[Self]:
        """One that is gone afterwards. With `keep_logs_in`, its logs stay there if the block fails."""
        with tempfile.TemporaryDirectory(prefix="cidrella-testenv-", ignore_cleanup_errors=True) as name:
            made = cls(Path(name) / cls.kind, port, flags)
            try:
                made.start()
                yield made
            except BaseException:
                if keep_logs_in is not None:
                    made.copy_logs(keep_logs_in)
                raise
            finally:
                made.stop()

    @property
    @abstractmethod
    def processes(self) -> Sequence[Process]:
        """In the order in which they are started."""

    def start(self) -> None:
        """Start it, and wait until it answers. Raises `RuntimeError` with the logs' ends if it does not."""
        for process in self.processes:
            process.start()
        self.wait_ready()

    def stop(self) -> None:
        """Stop it; no error for what is not running."""
        self.admin.close()
        for process in reversed(self.processes):
            process.stop()

    def restart(self, process: Process) -> None:
        """Kill one of its processes, start it again, and wait until the API answers."""
        process.kill()
        process.start()
        self.wait_ready()
        self.admin.close()  # its connections were to the one that is gone

    def wait_ready(self) -> None:
        """Wait until the API server says that it is ready."""
        deadline = time.monotonic() + _READY_SECONDS
        last: Exception | None = None
        asking = Client(self.server, self.admin.ca, self.admin.identity, self.admin.token, timeout=_ASK_SECONDS)
        while time.monotonic() < deadline:
            for process in self.processes:
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
        directory /= self.directory.parent.name  # a directory for each server: others fail at the same time
        directory.mkdir(parents=True, exist_ok=True)
        for path in (*(process.log for process in self.processes), self.audit_log):
            if path.exists():
                shutil.copy(path, directory)

    @abstractmethod
    def user(self, name: str, rules: Sequence[Json] = (), groups: Sequence[str] = ()) -> tuple[Client, Path]:
        """A user who may do what the rules say: a client, and a kubeconfig file."""

    @abstractmethod
    def service_account(self, name: str, rules: Sequence[Json] = (), namespace: str = "default") -> tuple[Client, Path]:
        """A ServiceAccount with a bearer token, allowed what the rules say: a client, and a kubeconfig file."""

    @abstractmethod
    def account_token(self, name: str, namespace: str) -> str:
        """A token of a ServiceAccount that is there, such as a Pod is given."""

    @abstractmethod
    def apply(self, directory: Path) -> subprocess.CompletedProcess[str]:
        """`kubectl apply -k` of a directory, all of it that this server has kinds for."""

    def kubectl(self, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """The administrator's kubectl, which has to succeed."""
        command: list[str | Path] = [self.kubectl_path, "--kubeconfig", self.kubeconfig, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=180, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {done.stderr}"
        return done

    def write_kubeconfig(self, name: str, identity: Identity | None = None, token: str = "") -> Path:
        """A kubeconfig file for who shows a certificate or a token."""
        user: dict[str, str] = {"token": token}
        if identity is not None:
            user = {"client-certificate": str(identity.certificate), "client-key": str(identity.key)}
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig(self.server, self.authority.certificate, user)))
        return path


def flag_list(flags: Mapping[str, object]) -> list[str]:
    """As on a command line, without those that are None."""
    return [f"--{flag}={value}" for flag, value in flags.items() if value is not None]


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
