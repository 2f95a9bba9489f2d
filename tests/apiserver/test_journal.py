"""The journal of the embedded API: what is durable, what is not yet, and a directory that cannot be used."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cidrella.apiserver.store.journal import FILE
from cidrella.apiserver.store.store import DataDirError, GoneError, Journal, Store, StoreError
from tests.apiserver.test_store import LEASES, NODES, paths, silent, soon, thing, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cidrella.apiserver.store.entries import Change

NOBODY = 65534


async def opened_anew(journal: Journal, directory: Path) -> tuple[Journal, Store]:
    await journal.close()
    journal = Journal(directory)
    return journal, Store(journal)


class TestRestart:
    """What was written is there, and versions go on."""

    def test_a_new_directory(self, tmp_path: Path) -> None:
        """Is made, with those above it, for nobody else to look into, and begins at version 1."""

        async def scenario() -> None:
            journal = Journal(tmp_path / "a" / "b")
            assert Store(journal).version == 1
            await journal.close()
            assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0

        asyncio.run(scenario())

    def test_objects_are_back(self, tmp_path: Path) -> None:
        """Every one as it was last: body, version, labels, in order."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            for path in ("b/x", "a/x", "a/y", "c/x"):
                store.create(LEASES, path, thing(path))
            store.create(NODES, "a/x", thing("é", text="ü\0"))
            store.replace(LEASES, "a/x", thing("a/x", y=1), 3)
            await store.settle()
            store.replace(LEASES, "a/x", thing("a/x", y=2), 7)
            store.delete(LEASES, "a/y", 4)
            was = {storage: store.entries(storage) for storage in (NODES, LEASES)}
            journal, again = await opened_anew(journal, tmp_path)
            assert {storage: again.entries(storage) for storage in (NODES, LEASES)} == was
            assert paths(again.entries(LEASES)) == ["a/x", "b/x", "c/x"]
            assert again.entries(LEASES)[0].labels == {"of": "a/x"}
            again.check()
            await journal.close()

        asyncio.run(scenario())

    def test_no_version_is_given_twice(self, tmp_path: Path) -> None:
        """Not that of a deletion either, even if nothing else is left."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            store.delete(NODES, "a", 2)
            for version in (3, 5, 7):
                journal, store = await opened_anew(journal, tmp_path)
                assert store.version == version
                assert store.entries(NODES) == []
                entry = store.create(NODES, "a", thing("a"))
                assert store.delete(NODES, "a", entry.version).version == version + 2
            await journal.close()

        asyncio.run(scenario())

    def test_the_past_is_gone(self, tmp_path: Path) -> None:
        """After a restart, what was before it is not remembered; the version of the restart itself is."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            journal, store = await opened_anew(journal, tmp_path)
            for storage in (NODES, LEASES):
                with pytest.raises(GoneError):
                    store.watch(storage, since=1)
                with pytest.raises(GoneError):
                    store.entries_at(1, storage)
            assert paths(store.entries_at(2, NODES)) == ["a"]
            watcher = store.watch(NODES, since=2)
            store.create(NODES, "b", thing("b"))
            assert told(await soon(watcher)) == [(3, "b")]
            await journal.close()

        asyncio.run(scenario())

    def test_more_than_fits_into_one_statement(self, tmp_path: Path) -> None:
        """A batch may be of any size."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            for number in range(1500):
                store.create(NODES, str(number), thing(str(number)))
            await store.settle()
            for entry in store.entries(NODES)[:1200]:
                store.delete(NODES, entry.path, entry.version)
            was = store.entries(NODES)
            journal, store = await opened_anew(journal, tmp_path)
            assert store.entries(NODES) == was
            assert store.version == 2701
            await journal.close()

        asyncio.run(scenario())


class TestDurability:
    """Nothing is told before it is on the disk."""

    def test_settled_is_on_the_disk(self, tmp_path: Path) -> None:
        """What is settled is in the files, as they are at that moment; what is not, is not."""

        async def scenario() -> None:
            journal = Journal(tmp_path / "live")
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            await store.settle()
            store.create(NODES, "b", thing("b"))
            shutil.copytree(tmp_path / "live", tmp_path / "copy")
            await journal.close()
            journal = Journal(tmp_path / "copy")
            assert paths(Store(journal).entries(NODES)) == ["a"]
            await journal.close()

        asyncio.run(scenario())

    def test_a_commit_waits_for_the_disk(self, tmp_path: Path) -> None:
        """Not only for the operating system: power may fail. No test can pull the plug, so the settings are read."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            settings = [
                journal._database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
            ]
            assert settings == ["wal", 2]
            await journal.close()

        asyncio.run(scenario())

    def test_watchers_are_told_what_is_durable(self, tmp_path: Path) -> None:
        """A change is visible in the store at once, and to watchers when it cannot be lost any more."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            watcher = store.watch(NODES)
            with held(journal):
                store.create(NODES, "a", thing("a"))
                assert store.get(NODES, "a") is not None
                assert await silent(watcher)
                assert watcher.version == 1
                settled = asyncio.create_task(store.settle())
                await asyncio.sleep(0.01)
                assert not settled.done()
            await settled
            assert told(await soon(watcher)) == [(2, "a")]
            await journal.close()

        asyncio.run(scenario())

    def test_of_what_was_written_only_the_durable_part_is_told(self, tmp_path: Path) -> None:
        """A watcher that has something to tell does not tell, in passing, what comes next and may still be lost."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            watcher = store.watch(NODES)
            store.create(NODES, "a", thing("a"))
            await store.settle()
            with held(journal):
                store.create(NODES, "b", thing("b"))
                assert told(await soon(watcher)) == [(2, "a")]
                assert await silent(watcher)
            assert told(await soon(watcher)) == [(3, "b")]
            await journal.close()

        asyncio.run(scenario())

    def test_from_now_on_is_from_what_was_written(self, tmp_path: Path) -> None:
        """A watcher without a version follows on what a list shows at that moment, durable or not yet."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            watcher = store.watch(NODES)
            store.create(NODES, "b", thing("b"))
            assert told(await soon(watcher)) == [(3, "b")]
            await journal.close()

        asyncio.run(scenario())

    def test_who_comes_during_a_commit_goes_in_the_next(self, tmp_path: Path) -> None:
        """However many come: one commit serves them all."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            landed: list[int] = []

            def note(changes: list[Change]) -> None:
                landed.append(len(changes))
                store._landed(changes)

            journal.attach(note, store._failed)

            async def write(name: str) -> None:
                store.create(NODES, name, thing(name))
                await store.settle()

            with held(journal):
                writers = [asyncio.create_task(write("first"))]
                await asyncio.sleep(0.01)
                writers += [asyncio.create_task(write(str(number))) for number in range(50)]
                await asyncio.sleep(0.01)
            await asyncio.gather(*writers)
            assert landed == [1, 50]
            await journal.close()

        asyncio.run(scenario())

    def test_who_stops_waiting_stops_nobody_else(self, tmp_path: Path) -> None:
        """A cancelled request neither takes its write back nor leaves others without an answer."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            waiting = [asyncio.create_task(store.settle()) for _ in range(3)]
            await asyncio.sleep(0)
            waiting[0].cancel()
            await asyncio.gather(*waiting[1:])
            with suppress(asyncio.CancelledError):
                await waiting[0]
            journal, store = await opened_anew(journal, tmp_path)
            assert paths(store.entries(NODES)) == ["a"]
            await journal.close()

        asyncio.run(scenario())


class TestFailure:
    """When the disk fails, nobody is told that all is well."""

    def test_a_full_disk(self, tmp_path: Path) -> None:
        """All who wait are told, watchers too, and everything is refused from then on; what was durable stays."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            await store.settle()
            watcher = store.watch(NODES)
            with no_room():
                store.create(NODES, "b", thing("b", text="x" * 100_000))
                impatient = asyncio.create_task(store.settle())
                await asyncio.sleep(0)
                impatient.cancel()
                outcomes = await asyncio.gather(store.settle(), store.settle(), soon(watcher), return_exceptions=True)
            assert [type(each) for each in outcomes] == [StoreError] * 3
            assert FILE in str(outcomes[0])
            with pytest.raises(StoreError):
                await store.settle()
            version = store.version
            with pytest.raises(StoreError):
                store.create(NODES, "c", thing("c"))
            with pytest.raises(StoreError):
                store.delete(NODES, "a", 2)
            assert store.version == version
            journal, store = await opened_anew(journal, tmp_path)
            assert paths(store.entries(NODES)) == ["a"]
            await journal.close()

        asyncio.run(scenario())

    def test_a_closed_journal(self, tmp_path: Path) -> None:
        """Takes nothing more, and says so."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            await journal.close()
            with pytest.raises(StoreError, match="closed"):
                store.create(NODES, "a", thing("a"))

        asyncio.run(scenario())


class TestDirectory:
    """A directory that cannot be used is refused, in words that say which and why."""

    def test_in_use(self, tmp_path: Path) -> None:
        """By this process or another: two that write would not know of each other."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            with pytest.raises(DataDirError, match=f"^{tmp_path} is in use by another process$"):
                Journal(tmp_path)
            opening = "from cidrella.apiserver.store.journal import *; Journal(Path(sys.argv[1]))"
            program = f"import sys; from pathlib import Path; {opening}"
            other = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, check=False)
            assert f"DataDirError: {tmp_path} is in use" in other.stderr.decode()
            store = Store(journal)
            store.create(NODES, "a", thing("a"))
            await store.settle()
            await journal.close()
            await Journal(tmp_path).close()

        asyncio.run(scenario())

    def test_not_a_directory(self, tmp_path: Path) -> None:
        """A file in its place, or in place of one above it."""
        file = tmp_path / "file"
        file.touch()
        for directory in (file, file / "below"):
            with pytest.raises(DataDirError, match=f"^{directory} is not a directory$"):
                Journal(directory)

    def test_not_permitted(self) -> None:
        """To make it, to write in it, or to write what is there."""
        with tempfile.TemporaryDirectory() as name:  # in a place where anybody may look
            directory = Path(name)
            directory.chmod(0o555)
            with as_nobody():
                with pytest.raises(DataDirError, match=f"^{directory} cannot be used: Permission denied$"):
                    Journal(directory)
                with pytest.raises(DataDirError, match=f"^{directory / 'new'} cannot be used: Permission denied$"):
                    Journal(directory / "new")
            directory.chmod(0o777)
            asyncio.run(Journal(directory).close())
            (directory / FILE).chmod(0o444)
            with as_nobody(), pytest.raises(DataDirError, match=f"^{directory / FILE} cannot be used: Perm"):
                Journal(directory)

    def test_not_a_database(self, tmp_path: Path) -> None:
        """Nothing is written into a file that is something else."""
        (tmp_path / FILE).write_bytes(b"something else " * 100)
        with pytest.raises(DataDirError, match=f"^{tmp_path / FILE} is not a database$"):
            Journal(tmp_path)
        assert (tmp_path / FILE).read_bytes() == b"something else " * 100

    @pytest.mark.parametrize(
        ("statement", "why"),
        [
            ("CREATE TABLE theirs (x)", "is a database of another program"),
            ("PRAGMA application_id = 7", "is a database of another program"),
            (
                f"PRAGMA application_id = {0x43494472}; PRAGMA user_version = 2",
                "was written by another version of Cidrella",
            ),
        ],
    )
    def test_not_ours(self, tmp_path: Path, statement: str, why: str) -> None:
        """Nor into a database of somebody else, or of a Cidrella that writes another way."""
        with sqlite3.connect(tmp_path / FILE) as database:
            database.executescript(statement)
        database.close()
        with pytest.raises(DataDirError, match=why):
            Journal(tmp_path)

    def test_damaged(self, tmp_path: Path) -> None:
        """A database with its pages overwritten is not taken for an empty one."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            for number in range(300):
                store.create(NODES, str(number), thing(str(number)))
            await journal.close()

        asyncio.run(scenario())
        with (tmp_path / FILE).open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * 40_000)
        with pytest.raises(DataDirError, match=f"{tmp_path / FILE} cannot be"):
            Store(Journal(tmp_path))


@contextmanager
def held(journal: Journal) -> Iterator[None]:
    """No commit is made meanwhile: its thread has something else to do."""
    gate = threading.Event()
    journal._thread.submit(gate.wait)
    try:
        yield
    finally:
        gate.set()


@contextmanager
def no_room() -> Iterator[None]:
    """Files do not grow past a few pages."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Who may do everything is somebody else for a while."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)


class TestDamage:
    """A database that somebody or something has changed."""

    @pytest.mark.parametrize(
        "change", ["DELETE FROM latest", "UPDATE latest SET version = 'x'", "UPDATE latest SET version = 1"]
    )
    def test_versions_that_make_no_sense(self, tmp_path: Path, change: str) -> None:
        """It is refused in words: to go on would use versions again."""

        async def fill() -> None:
            journal = Journal(tmp_path)
            store = Store(journal)
            for number in range(3):
                store.create(NODES, f"n{number}", thing(f"n{number}"))
            await store.settle()
            await journal.close()

        asyncio.run(fill())
        database = sqlite3.connect(tmp_path / FILE)
        with database:
            database.execute(change)
        database.close()
        with pytest.raises(DataDirError, match="is damaged: the versions in it make no sense"):
            Journal(tmp_path)

    def test_nobody_elses_business(self, tmp_path: Path) -> None:
        """The database is for its owner alone, also in a directory that is not."""

        async def scenario() -> None:
            journal = Journal(tmp_path)
            assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}
            await journal.close()

        asyncio.run(scenario())
