"""From what every Pod is given to an `Access`: the API server's address, a ServiceAccount's token, and a CA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from yarl import URL

from cidrella.kube.credentials import DEFAULT_NAMESPACE, Access
from cidrella.kube.errors import ConfigError
from cidrella.kube.files import WatchedFile, read_file
from cidrella.kube.tls import Tls
from cidrella.kube.tokens import TokenFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORT: Final = "KUBERNETES_SERVICE_PORT"


def in_pod(environ: Mapping[str, str], account: Path) -> bool:
    """Whether this is a Pod that may talk to the API: it has the address and a token."""
    return bool(environ.get(_HOST)) and (account / "token").exists()


def in_cluster_access(environ: Mapping[str, str], account: Path) -> Access:
    """The way from a Pod; `account` is the directory of its ServiceAccount. Raises ConfigError.

    The token and the CA are read again when the kubelet replaces them.
    """
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "") or "443"
    if ":" in host:
        host = f"[{host}]"
    try:
        server = str(URL(f"https://{host}:{port}").origin())
    except ValueError as error:
        raise ConfigError(f"{_HOST} and {_PORT} are not an address: {host}:{port}") from error
    return Access(
        server,
        tls=Tls(WatchedFile(account / "ca.crt")),
        identity=TokenFile(WatchedFile(account / "token")),
        namespace=_namespace(account / "namespace"),
        context="in-cluster",
        origin="this Pod's ServiceAccount",
    )


def _namespace(path: Path) -> str:
    if not path.exists():
        return DEFAULT_NAMESPACE
    return read_file(path).decode(errors="replace").strip() or DEFAULT_NAMESPACE
