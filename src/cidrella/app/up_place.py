"""Where `cidrella up` keeps its files: a directory that it has to itself while it runs.

Rules:

- It is the directory of `--data-dir`, where everything stays; else one in the home directory, at a fixed place, so that
  other commands find the kubeconfig there. Nothing stays in that one.
- A lock says that it is taken. The lock goes with the process, however that ends. Other commands try the lock, too, to
  find out whether one runs: a kubeconfig that a killed one left behind does not say so.
- Nobody else can read what is in it, and no file is ever seen half written.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KUBECONFIG: Final = "kubeconfig"
_LOCK: Final = "up.lock"
_LOCK_RETRY: Final = 0.1
"""Seconds after which a lock that is taken is tried once more: a command that tries it holds it for a moment."""


class PlaceError(Exception):
    """The directory cannot be used: why, and what to do, in one line."""


class Place:
    """A directory that is ours. `lasting`: what is written stays there."""

    def __init__(self, directory: Path, *, lasting: bool) -> None:
        self.directory = directory
        self.lasting = lasting

    @property
    def kubeconfig(self) -> Path:
        """The one for whoever wants to talk to this API."""
        return self.directory / KUBECONFIG

    def read(self, name: str) -> bytes:
        """A file's contents, b"" where there is none."""
        try:
            return (self.directory / name).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise PlaceError(f"{self.directory / name} cannot be read: {error.strerror}") from error

    def write(self, name: str, data: bytes) -> None:
        """Put a file in the place of the one of that name."""
        write_private(self.directory / name, data)

    def remove(self, name: str) -> None:
        """Have no such file."""
        with suppress(OSError):
            (self.directory / name).unlink()


@contextmanager
def occupied(data_dir: str, environ: Mapping[str, str] = os.environ) -> Iterator[Place]:
    """The directory, for us alone. Raises `PlaceError`, also where another one runs there."""
    directory = Path(data_dir).absolute() if data_dir else default_directory(environ)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise PlaceError(f"{directory} cannot be used: {error.strerror}; choose another --data-dir") from error
    try:
        _take(lock, directory, named=bool(data_dir))
        place = Place(directory, lasting=bool(data_dir))
        if not place.lasting:
            place.remove(KUBECONFIG)  # of one that was killed
        try:
            yield place
        finally:
            if not place.lasting:
                place.remove(KUBECONFIG)
    finally:
        os.close(lock)


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where it is without `--data-dir`. Raises `PlaceError` for somebody without a home."""
    state, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if not state.startswith("/") and not home:
        raise PlaceError("there is no home directory to keep the kubeconfig in; choose a --data-dir")
    return (Path(state) if state.startswith("/") else Path(home, ".local", "state")) / "cidrella" / "up"


def running_kubeconfig(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The kubeconfig of the `cidrella up` that runs at the fixed place; None where none runs, or is not ready yet."""
    try:
        directory = default_directory(environ)
    except PlaceError:
        return None
    kubeconfig = directory / KUBECONFIG
    return kubeconfig if _is_locked(directory) and kubeconfig.exists() else None


def write_private(path: Path, data: bytes) -> None:
    """Put a file that nobody else can read in the place of the one of that name, all at once. Raises `PlaceError`."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123 -- a descriptor
            file.write(data)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise PlaceError(f"{path} cannot be written: {error.strerror}") from error


def _take(lock: int, directory: Path, *, named: bool) -> None:
    import fcntl  # noqa: PLC0415 -- other commands run where there is none, too

    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_RETRY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        other = "choose another --data-dir" if named else "give this one a --data-dir of its own"
        raise PlaceError(
            f"another cidrella up runs in {directory}{f' (process {holder})' if holder else ''}; stop it, or {other}"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _is_locked(directory: Path) -> bool:
    """Whether a process holds the lock. Tried with a shared one, so that several commands can try at a time."""
    try:
        import fcntl  # noqa: PLC0415 -- as above

        lock = os.open(directory / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False
