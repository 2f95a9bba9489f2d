"""Files that others replace while we run: tokens and certificates that are rotated, behind symbolic links or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import structlog

from cidrella.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE_MAX: Final = 1 << 20
"""Bytes. Kubeconfigs of a hundred clusters have less."""
PERIOD: Final = 5.0
"""Seconds between two looks at a file: far less than an old token stays valid once there is a new one."""
_log = structlog.get_logger()


def read_file(path: Path) -> bytes:
    """The contents of a file. Raises ConfigError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(SIZE_MAX + 1)
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > SIZE_MAX:
        raise ConfigError(f"{path}: larger than {SIZE_MAX} bytes")
    return data


class Fixed:
    """What was given as text, and stays."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        """The same, always."""
        return self._data

    def expire(self) -> None:
        """Nothing can change."""


class WatchedFile:
    """A file's contents, looked at again every few seconds, and read again if the file is another or was changed.

    Once it was read, or with a `fallback`, a file that cannot be read keeps its last contents.
    """

    def __init__(
        self, path: Path, fallback: bytes | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._clock = clock
        self._data = fallback
        self._stamp: tuple[int, ...] = ()
        self._look_at = float("-inf")

    def read(self) -> bytes:
        """Its contents. Raises ConfigError if they were never there."""
        now = self._clock()
        if now >= self._look_at or self._data is None:
            self._look_at = now + PERIOD
            self._look()
        assert self._data is not None
        return self._data

    def expire(self) -> None:
        """Look again at the next reading, even if nothing seems to have changed."""
        self._look_at = float("-inf")
        self._stamp = ()

    def _look(self) -> None:
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._data = read_file(self.path)
                self._stamp = stamp
        except ConfigError as error:
            if self._data is None:
                raise
            _log.warning("a file could not be read again", error=str(error))

    def _stamp_now(self) -> tuple[int, ...]:
        """What changes when the file does, taken before it is read: a change meanwhile is seen next time."""
        try:
            found = self.path.stat()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{self.path}: {getattr(error, 'strerror', None) or error}") from error
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


Material = Fixed | WatchedFile
"""Something to trust or to show, wherever it stands."""
