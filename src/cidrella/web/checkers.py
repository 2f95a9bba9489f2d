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
    """A token or a password in a file: whatever is in it now. White space around it is not part of it.

    A pipe, as a shell makes one of a command's output, can be read only once, so that what came out of it stays.
    """

    def __init__(self, path: Path, *, bearer: bool) -> None:
        """Raises `ConfigError` where there is nothing in it that somebody could show."""
        self.name = str(path)
        self.bearer = bearer
        self._path = path
        secret = read_file(path).strip()
        if not secret:
            raise ConfigError(f"{path}: there is nothing in it")
        try:
            secret.decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: this is not UTF-8, so that nobody could type it") from error
        self._lasting = b"" if path.is_file() else secret

    async def accepts(self, credential: str) -> bool:
        """Whether it is that, found out in a time that tells nothing. Raises `ConfigError`: nobody has what is gone."""
        secret = self._lasting or read_file(self._path).strip()
        return bool(secret) and hmac.compare_digest(credential.encode("utf-8", "surrogatepass"), secret)
