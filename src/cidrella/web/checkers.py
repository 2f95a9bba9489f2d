"""What is shown to be let in, and who says whether it is right."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Protocol

from cidrella.kube.errors import ConfigError
from cidrella.kube.files import WatchedFile

if TYPE_CHECKING:
    from pathlib import Path


class Checker(Protocol):
    """Who knows whether a credential is right."""

    bearer: bool
    """Whether it may be shown with every request, and not only at the login."""

    async def accepts(self, credential: str) -> bool:
        """Whether it is right. Raises `KubeError` where nobody can tell."""


class SecretFile:
    """A token or a password in a file, which is read again when it changes. White space around it is not part of it."""

    def __init__(self, path: Path, *, bearer: bool) -> None:
        """Raises `ConfigError` where there is nothing in it."""
        self.bearer = bearer
        self._file = WatchedFile(path)
        if not self._secret():
            raise ConfigError(f"{path}: there is nothing in it")

    async def accepts(self, credential: str) -> bool:
        """Whether it is that, found out in a time that tells nothing."""
        secret = self._secret()
        return bool(secret) and hmac.compare_digest(credential.encode("utf-8", "replace"), secret)

    def _secret(self) -> bytes:
        return self._file.read().strip()
