"""From a context of a kubeconfig to an `Access`: all that kubectl understands, or a clear word about what we do not.

What comes first where several are given, as with kubectl: data before files; a token's file before the token, which it
falls back on; a token or password of the user's before a plugin's.
"""

from __future__ import annotations

import base64
import binascii
import os
from typing import TYPE_CHECKING, Final

from yarl import URL

from cidrella.kube.credentials import DEFAULT_NAMESPACE, Access, Header
from cidrella.kube.errors import ConfigError
from cidrella.kube.execplugin import ExecPlugin
from cidrella.kube.files import Fixed, WatchedFile
from cidrella.kube.tls import Tls
from cidrella.kube.tokens import TokenFile, bearer

if TYPE_CHECKING:
    from pathlib import Path

    from cidrella.kube.credentials import Identity
    from cidrella.kube.files import Material
    from cidrella.kube.kubeconfig_file import Cluster, Exec, Kubeconfig, Placed, User

_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for plugins."""


def kubeconfig_access(config: Kubeconfig, context: str = "") -> Access:
    """The way that a context describes, by default the current one. Raises ConfigError."""
    files = ", ".join(map(str, config.files))
    name = context or config.current_context
    if not name:
        raise ConfigError(f"{files}: there is no current-context; name one of: {_names(config)}")
    if name not in config.contexts:
        raise ConfigError(f"{files}: there is no context {name!r}, but: {_names(config)}")
    chosen, file = config.contexts[name]
    cluster = config.clusters.get(chosen.cluster or "")
    if cluster is None:
        raise ConfigError(f"{file}: context {name!r} is for cluster {chosen.cluster or ''!r}, which is not there")
    user = config.users.get(chosen.user or "")
    if user is None and chosen.user:
        raise ConfigError(f"{file}: context {name!r} is for user {chosen.user!r}, which is not there")
    server = _server(cluster)
    return Access(
        server,
        tls=_tls(cluster, user) if server.startswith("https:") else None,
        identity=_identity(user, cluster) if user else Header(),
        namespace=chosen.namespace or DEFAULT_NAMESPACE,
        context=name,
        origin=str(file),
        tls_server_name=cluster.entry.tls_server_name or "",
        proxy=_proxy(cluster),
    )


def _names(config: Kubeconfig) -> str:
    return ", ".join(sorted(config.contexts)) or "none"


def _server(cluster: Placed[Cluster]) -> str:
    text = cluster.entry.server or ""
    try:
        url = URL(text)
        wrong = url.scheme not in {"http", "https"} or not url.host or url.query_string or url.fragment or url.user
    except ValueError:
        wrong = True
    if wrong:
        raise ConfigError(f"{cluster.file}: server {text!r} is not the URL of a server, such as https://host:6443")
    return str(url).rstrip("/")


def _proxy(cluster: Placed[Cluster]) -> str:
    text = cluster.entry.proxy_url or ""
    if text and not text.startswith("http://"):
        raise ConfigError(f"{cluster.file}: proxy-url {text!r} is not supported, only http:// is")
    return text


def _tls(cluster: Placed[Cluster], user: Placed[User] | None) -> Tls:
    entry = cluster.entry
    insecure = bool(entry.insecure_skip_tls_verify)
    ca = _material(cluster.file, "certificate-authority", entry.certificate_authority, entry.certificate_authority_data)
    if insecure and ca:
        raise ConfigError(f"{cluster.file}: insecure-skip-tls-verify and a certificate-authority exclude each other")
    if user is None:
        return Tls(ca, insecure=insecure)
    shown = user.entry
    certificate = _material(user.file, "client-certificate", shown.client_certificate, shown.client_certificate_data)
    key = _material(user.file, "client-key", shown.client_key, shown.client_key_data)
    if bool(certificate) != bool(key):
        raise ConfigError(f"{user.file}: client-certificate and client-key go together, and one is missing")
    return Tls(ca, certificate, key, insecure=insecure)


def _material(file: Path, field: str, path: str | None, data: str | None) -> Material | None:
    """A certificate or a key that is given as a file or as data; None if as neither."""
    if data:
        return Fixed(_decode(file, f"{field}-data", data))
    return WatchedFile(file.parent / path) if path else None


def _decode(file: Path, field: str, data: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(f"{file}: {field} is not base64") from error


def _identity(user: Placed[User], cluster: Placed[Cluster]) -> Identity:
    entry, file = user
    if entry.auth_provider:
        raise ConfigError(f"{file}: auth-provider is gone from Kubernetes since 1.26; use an exec plugin")
    if entry.impersonated:
        raise ConfigError(f"{file}: impersonation (as: {entry.impersonated}) is not supported")
    if entry.token_file:
        return TokenFile(WatchedFile(file.parent / entry.token_file, entry.token.encode() if entry.token else None))
    if entry.token:
        return Header(bearer(entry.token, str(file)))
    if entry.username:
        both = f"{entry.username}:{entry.password or ''}"
        return Header(f"Basic {base64.b64encode(both.encode()).decode()}")
    return _plugin(entry.exec, file, cluster) if entry.exec else Header()


def _plugin(spec: Exec, file: Path, cluster: Placed[Cluster]) -> ExecPlugin:
    command = spec.command
    if os.sep in command:
        command = str(file.parent / command)
    return ExecPlugin(spec, command, _cluster_info(cluster) if spec.provide_cluster_info else None)


def _cluster_info(cluster: Placed[Cluster]) -> dict[str, object]:
    """What a plugin that asks for it is told of the server."""
    entry, file = cluster
    ca = _material(file, "certificate-authority", entry.certificate_authority, entry.certificate_authority_data)
    told: dict[str, object] = {
        "server": entry.server,
        "tls-server-name": entry.tls_server_name,
        "insecure-skip-tls-verify": entry.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca.read()).decode() if ca else None,
        "proxy-url": entry.proxy_url,
        "config": next((each.extension for each in entry.extensions or () if each.name == _EXEC_EXTENSION), None),
    }
    return {field: value for field, value in told.items() if value}
