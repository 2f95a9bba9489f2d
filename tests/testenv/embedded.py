"""The embedded API as `cidrella up` serves it, for the tests that also run on the real one.

It runs without its controller: those under test are run by the tests. Nobody is kept from anything; tokens only tell,
in the audit log, who it was.
"""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING

import yaml

from tests.testenv.api import ADMIN, NO_FLAGS, SERVICE_RANGE, Api, flag_list
from tests.testenv.client import Client
from tests.testenv.processes import Process

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.testenv.client import Json

ACCOUNTS = {
    "kube-system": ("cidrella", "cidrella-webhook", "ranger", "reporter", "writer"),
    "default": ("client-tests", "candidate", "reporter", "behind-the-proxy", "reflector"),
}
"""The ServiceAccounts of the tests: who has a token is told when it starts."""
USERS = (
    ADMIN,
    "live-reader",
    "services-reader",
    *(f"system:serviceaccount:{namespace}:{name}" for namespace, names in ACCOUNTS.items() for name in names),
)
"""Who has a token."""


class Embedded(Api):
    """`cidrella up --no-controller`, on a free loopback port."""

    kind = "embedded"
    has_rights = False

    def __init__(self, directory: Path, port: int = 0, flags: Mapping[str, object] = NO_FLAGS) -> None:
        super().__init__(directory, port, flags)
        serving = self.authority.server("embedded")
        told: dict[str, object] = {
            "data-dir": directory / "data",
            "bind-address": f"127.0.0.1:{self.port}",
            "service-cluster-ip-range": SERVICE_RANGE,
            "audit-log": self.audit_log,
            "tls-cert-file": serving.certificate,
            "tls-private-key-file": serving.key,
            "token-auth-file": self._write_tokens(),
            **flags,
        }
        command = [sys.executable, "-m", "cidrella", "up", "--no-controller", "--no-browser", *flag_list(told)]
        self.apiserver = Process("cidrella-up", command, directory / "cidrella-up.log")
        self.admin = Client(self.server, self.authority.certificate, token=_token(ADMIN))
        self.kubeconfig = self.write_kubeconfig(ADMIN, token=_token(ADMIN))

    @property
    def processes(self) -> Sequence[Process]:
        """The one."""
        return (self.apiserver,)

    def user(self, name: str, rules: Sequence[Json] = (), groups: Sequence[str] = ()) -> tuple[Client, Path]:  # noqa: ARG002 - all may do all
        """A user with a token."""
        return self._account(name, name)

    def service_account(self, name: str, rules: Sequence[Json] = (), namespace: str = "default") -> tuple[Client, Path]:  # noqa: ARG002 - likewise
        """Its token alone; the kind is not served."""
        return self._account(f"{namespace}-{name}", _account_user(name, namespace))

    def account_token(self, name: str, namespace: str) -> str:
        """Always the same."""
        return _token(_account_user(name, namespace))

    def apply(self, directory: Path) -> subprocess.CompletedProcess[str]:
        """The CRDs: who may do what, and what runs where, are of kinds that it does not serve."""
        objects = yaml.safe_load_all(self.kubectl("kustomize", directory).stdout)
        served = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
        return self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(served))

    def _account(self, file: str, user: str) -> tuple[Client, Path]:
        token = _token(user)
        return Client(self.server, self.authority.certificate, token=token), self.write_kubeconfig(file, token=token)

    def _write_tokens(self) -> Path:
        path = self.directory / "tokens.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows((_token(user), user, user) for user in USERS)
        return path


def _account_user(name: str, namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:{name}"


def _token(user: str) -> str:
    assert user in USERS, f"{user} is not among those who have a token"
    return f"token-of-{user.replace(':', '-')}"
