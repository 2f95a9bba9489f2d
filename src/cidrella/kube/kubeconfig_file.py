"""kubeconfig files as text: read with care, and merged as kubectl merges them.

Rules:

- The first file that has a cluster, user or context of a name, or a current context, is the one that counts.
- Relative paths are relative to the file that they stand in.
- null is as good as absent; unknown fields are none of our business.

What cannot be read is a ConfigError that names the file. The YAML library crashes on text that is nested deeply, and
expands aliases without bound; both are found beforehand, in the parser's events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec
import yaml

from cidrella.kube.errors import ConfigError
from cidrella.kube.files import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

T = TypeVar("T")

_DEPTH_MAX: Final = 50
"""Levels; what we read has seven."""
_TAGS: Final = (None, "!", "tag:yaml.org,2002:str")
"""Tags that cannot trip the library."""


class _Struct(msgspec.Struct, rename="kebab"):
    """Fields are written with hyphens, mostly."""


class Extension(_Struct):
    """Something for somebody's own use."""

    name: str
    extension: object = None


class Cluster(_Struct):
    """A server."""

    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    extensions: list[Extension] | None = None


class Variable(_Struct):
    """A variable of a plugin's environment."""

    name: str
    value: str


class Exec(_Struct, rename="camel"):
    """A credential plugin."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[Variable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class User(_Struct):
    """Whoever we are to a server."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    impersonated: str | None = msgspec.field(default=None, name="as")
    auth_provider: object = None
    exec: Exec | None = None


class Context(_Struct):
    """A server and a user."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(_Struct):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Struct):
    name: str
    user: User | None = None


class _NamedContext(_Struct):
    name: str
    context: Context | None = None


class _File(_Struct):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class Placed(NamedTuple, Generic[T]):
    """An entry, and the file that it stands in."""

    entry: T
    file: Path


@dataclass
class Kubeconfig:
    """All files together."""

    files: list[Path] = field(default_factory=list)
    clusters: dict[str, Placed[Cluster]] = field(default_factory=dict)
    users: dict[str, Placed[User]] = field(default_factory=dict)
    contexts: dict[str, Placed[Context]] = field(default_factory=dict)
    current_context: str = ""

    def add(self, path: Path) -> None:
        """Take in a file, after those before it. Raises ConfigError."""
        file = _read(path)
        self.files.append(path)
        for cluster in file.clusters or ():
            self.clusters.setdefault(cluster.name, Placed(cluster.cluster or Cluster(), path))
        for user in file.users or ():
            self.users.setdefault(user.name, Placed(user.user or User(), path))
        for context in file.contexts or ():
            self.contexts.setdefault(context.name, Placed(context.context or Context(), path))
        self.current_context = self.current_context or file.current_context or ""


def read_kubeconfigs(paths: Iterable[Path]) -> Kubeconfig:
    """The files that are there, in this order; `files` says which. Raises ConfigError."""
    merged = Kubeconfig()
    for path in paths:
        if _exists(path):
            merged.add(path)
    return merged


def _exists(path: Path) -> bool:
    """Whether it is there, or may be: what we may not look at is an error for the reader to tell."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def _read(path: Path) -> _File:
    data = read_file(path)
    try:
        _inspect(data)
        plain = yaml.load(data, yaml.CSafeLoader)
        return msgspec.convert(plain if plain is not None else {}, _File)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{line}: not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, msgspec.ValidationError, ConfigError, ValueError, OverflowError) as error:
        raise ConfigError(f"{path}: not a kubeconfig: {error}") from error


def _inspect(data: bytes) -> None:
    """Refuse what the loader would crash or choke on. Raises ConfigError."""
    depth = 0
    for event in yaml.parse(data, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError("aliases are not read here")
        if depth > _DEPTH_MAX:
            raise ConfigError("nested too deeply")
        if isinstance(event, yaml.ScalarEvent) and event.tag not in _TAGS:
            raise ConfigError(f"a tag that has no place here: {event.tag}")
