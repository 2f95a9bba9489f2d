"""What outlives the process: a SQLite database in a directory that one process uses at a time.

Theory of operation:

- Everything is read once, at opening. After that, changes go in, and nothing is read.
- Commits are made in a thread of their own, one at a time. What comes in while one is under way goes into the next,
  all together: under load one fsync serves many writers, and a single one waits for no other.
- The count of changes is stored with each commit, so that a deletion, too, leaves its number behind. None is reused.
- A commit that fails is the last. What it held may be on the disk or not; that is found out by opening anew.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from cidrella.apiserver.store.entries import Change

FILE: Final = "cidrella.db"
FIRST_VERSION: Final = 1
"""Of a store in which nothing has happened."""
_APPLICATION: Final = 0x43494472
"""By which the database is known as ours: CIDr."""
_FORMAT: Final = 1
_CHECKPOINT_PAGES: Final = 16_384
"""64 MiB: how much is written ahead before it is moved to its place. Large objects fill it within a second or two."""
_MAPPED_BYTES: Final = 1 << 30
"""So much is read without being copied twice: a start with many objects takes half the time."""
_ROWS: Final = 500
"""In one statement. The interpreter's lock is taken anew after each, and under load that may take milliseconds."""
_SCHEMA: Final = (
    "CREATE TABLE object (storage TEXT NOT NULL, path TEXT NOT NULL, version INTEGER NOT NULL, body BLOB NOT NULL,"
    " PRIMARY KEY (storage, path))",
    "CREATE TABLE latest (version INTEGER NOT NULL)",
    f"INSERT INTO latest VALUES ({FIRST_VERSION})",  # noqa: S608 - a constant
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_FORMAT}",
)


class DataDirError(Exception):
    """A directory that cannot be used; the message says which, and why."""


class StoreError(Exception):
    """What was written did not become durable, and nothing will any more."""


class Row(NamedTuple):
    """An object as it is stored."""

    storage: str
    path: str
    version: int
    body: bytes


class Journal:
    """A directory with a database in it, made if it is not there. Raises DataDirError.

    Between opening and `close`, no other process can open it. The end of the process, however it comes, is as good.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / FILE
        self._database, self.version = _opened(directory)
        """Of the latest change in it, when it was opened."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._waiting: list[Change] = []
        self._worker: asyncio.Task[None] | None = None
        self._usable = True
        self._landed: Callable[[list[Change]], object] = id
        self._failed: Callable[[str], object] = id

    def read(self) -> Iterator[Row]:
        """All objects, in no order. Raises DataDirError."""
        try:
            rows = self._database.execute("SELECT storage, path, version, body FROM object")
            yield from map(Row._make, rows)
        except sqlite3.Error as error:
            raise DataDirError(f"{self._file} cannot be read: {error}") from error

    def attach(self, landed: Callable[[list[Change]], object], failed: Callable[[str], object]) -> None:
        """Say whom to call, on the event loop: with changes that are durable, and when nothing will be any more."""
        self._landed, self._failed = landed, failed

    def append(self, change: Change) -> None:
        """Make a change durable, with the next commit. Needs a running loop."""
        self._waiting.append(change)
        if self._worker is None and self._usable:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Let what was appended become durable, and leave the directory to others."""
        if self._worker is not None:
            await asyncio.wait([self._worker])
        self._end("the store is closed")
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()

    async def _work(self) -> None:
        """Commit until nothing waits. Nobody's: who is cancelled cancels no commit."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await loop.run_in_executor(self._thread, self._commit, batch)
                self._landed(batch)
        except Exception as error:  # whatever it is: nobody is left waiting for what does not come
            self._end(f"{self._file} cannot be written: {error}")
        finally:
            self._worker = None

    def _end(self, why: str) -> None:
        if self._usable:
            self._usable = False
            self._failed(why)

    def _commit(self, batch: list[Change]) -> None:
        """In the thread. Of several changes to an object the last counts: all of them become durable at once."""
        last = {(each.storage, each.shown.path): each for each in batch}
        kept = [(*key, each.version, each.after.body) for key, each in last.items() if each.after is not None]
        gone = [key for key, each in last.items() if each.after is None]
        self._database.execute("BEGIN IMMEDIATE")
        self._execute("REPLACE INTO object VALUES {}", kept)
        self._execute("DELETE FROM object WHERE (storage, path) IN (VALUES {})", gone)
        self._database.execute("UPDATE latest SET version = ?", (batch[-1].version,))
        self._database.execute("COMMIT")

    def _execute(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """A statement over many rows: as few calls as may be, see `_ROWS`."""
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            marks = f"({', '.join('?' * len(some[0]))})"
            values = [value for row in some for value in row]
            self._database.execute(statement.format(", ".join([marks] * len(some))), values)


def _opened(directory: Path) -> tuple[sqlite3.Connection, int]:
    """The database, ours alone, with its tables; and the latest version. Raises DataDirError."""
    _make(directory)
    try:
        with suppress(FileExistsError):
            # Others have no business in it; what SQLite puts beside it has the same mode. One that is there is left
            # alone: to close a file gives up every lock that this process has on it.
            os.close(os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        # Locks are not waited for: who has the database has it for long.
        database = sqlite3.connect(directory / FILE, timeout=0, isolation_level=None, check_same_thread=False)
        with ExitStack() as undo:
            undo.callback(database.close)
            version = _prepare(database, directory / FILE)
            undo.pop_all()
    except sqlite3.Error as error:
        raise DataDirError(_reason(error, directory)) from error
    except OSError as error:
        raise DataDirError(f"{directory / FILE} cannot be used: {error.strerror}") from error
    return database, version


def _make(directory: Path) -> None:
    """See that it is there, and that we may do there what we have to. Raises DataDirError."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise DataDirError(f"{directory} is not a directory") from None
    except OSError as error:
        raise DataDirError(f"{directory} cannot be used: {error.strerror}") from error
    as_who_we_are = os.access in os.supports_effective_ids
    for path in (directory, directory / FILE):
        if path.exists() and not os.access(path, os.R_OK | os.W_OK, effective_ids=as_who_we_are):
            raise DataDirError(f"{path} cannot be used: Permission denied")


def _prepare(database: sqlite3.Connection, file: Path) -> int:
    """Settings, tables and checks; returns the latest version."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    database.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
    database.execute("BEGIN IMMEDIATE")
    made_by = database.execute("PRAGMA application_id").fetchone()[0]
    if made_by == 0 and not database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        for statement in _SCHEMA:
            database.execute(statement)
    elif made_by != _APPLICATION:
        raise DataDirError(f"{file} is a database of another program")
    elif database.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        raise DataDirError(f"{file} was written by another version of Cidrella")
    database.execute("COMMIT")
    latest = database.execute("SELECT version FROM latest").fetchone()
    highest = database.execute("SELECT max(version) FROM object").fetchone()[0] or 0
    if latest is None or not isinstance(latest[0], int) or not isinstance(highest, int) or latest[0] < highest:
        raise DataDirError(f"{file} is damaged: the versions in it make no sense")
    return latest[0]


def _reason(error: sqlite3.Error, directory: Path) -> str:
    """What an error at opening means to those who chose the directory."""
    words = {
        sqlite3.SQLITE_BUSY: f"{directory} is in use by another process",
        sqlite3.SQLITE_NOTADB: f"{directory / FILE} is not a database",
    }
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest of it says more than we tell
    return words.get(code, f"{directory / FILE} cannot be used: {error}")
