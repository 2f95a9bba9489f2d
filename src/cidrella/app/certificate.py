"""The certificate that `cidrella run` shows, where it is given one: from two files that others replace.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


class Certificate:
    """Of one listener. Whoever connects finds the newest, while it is kept."""

    def __init__(self, certificate_file: str, key_file: str) -> None:
        """Raises `ConfigError` for files that are of no use."""
        from cidrella.kube.files import WatchedFile  # noqa: PLC0415
        from cidrella.kube.tls import Serving, ServingTls  # noqa: PLC0415
        from cidrella.webhook.certificates import CertificateFiles, Keeper  # noqa: PLC0415

        files = CertificateFiles(WatchedFile(Path(certificate_file)), WatchedFile(Path(key_file)))
        self._tls = ServingTls(Serving(files.read()))
        self._keeper = Keeper(files)

    @property
    def context(self) -> ssl.SSLContext:
        """To listen with."""
        return self._tls.context

    async def keep(self) -> None:
        """Show what is new, for ever."""
        await self._keeper.keep(self._tls.show)
