"""Bearer tokens: in text, and in files that are written again before they expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cidrella.kube.credentials import Proof
from cidrella.kube.errors import ConfigError

if TYPE_CHECKING:
    from cidrella.kube.files import WatchedFile

_log = structlog.get_logger()


def bearer(token: str, source: str) -> str:
    """The value of the header for a token. Raises ConfigError, which names the source and never the token."""
    token = token.strip()
    if not token:
        raise ConfigError(f"{source}: the token is empty")
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"{source}: the token has characters that no token has")
    return f"Bearer {token}"


class TokenFile:
    """Whoever is known by the token in a file. One that is of no use leaves the last in use."""

    def __init__(self, file: WatchedFile) -> None:
        self._file = file
        self._read = b""
        self._proof: Proof | None = None

    async def proof(self) -> Proof:
        """The token, at most some seconds old. Raises ConfigError if there never was one."""
        data = self._file.read()
        if self._proof is None or data is not self._read:
            self._read = data
            self._proof = self._renewed(data)
        return self._proof

    def expire(self) -> None:
        """Read the file again."""
        self._file.expire()

    def _renewed(self, data: bytes) -> Proof:
        try:
            return Proof(bearer(data.decode(errors="replace"), str(self._file.path)))
        except ConfigError as error:
            if self._proof is None:
                raise
            _log.warning("a new token is of no use, the old one stays", error=str(error))
            return self._proof
