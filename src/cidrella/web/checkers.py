"""What is shown to be let in, and who says whether it is right."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Protocol

from cidrella.kube.errors import ConfigError
from cidrella.kube.files import read_file

if TYPE_CHECKING:
    from pathlib import Path


class Checker(Protocol):
    """Who knows whether a credential is right."""

    name: str
    """For the log."""
    bearer: bool
    """Whether it may be shown with every request, and not only at the login."""

    async def accepts(self, credential: str) -> bool:
        """Whether it is right. Raises `KubeError` where nobody can tell."""


class SecretFile:
    """A token or a password in a file: whatever is in it now. White space around it is not part of it."""

    def __init__(self, path: Path, *, bearer: bool) -> None:
        """Raises `ConfigError` where there is nothing in it that somebody could show."""
        self.name = str(path)
        self.bearer = bearer
        self._path = path
        secret = self._secret()
        if not secret:
            raise ConfigError(f"{path}: there is nothing in it")
        try:
            secret.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: this is not UTF-8, so that nobody could type it") from error

    async def accepts(self, credential: str) -> bool:
        """Whether it is that, found out in a time that tells nothing. Raises `ConfigError`: nobody has what is gone."""
        secret = self._secret()
        return bool(secret) and hmac.compare_digest(credential.encode("utf-8", "replace"), secret)

    def _secret(self) -> bytes:
        return read_file(self._path).strip()
