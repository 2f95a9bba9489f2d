"""What was acknowledged survives `kill -9`: `cidrella up --data-dir` is killed at random moments, again and again.

After each, everything has to be there that was acknowledged, and as it was acknowledged. What was asked for and not
acknowledged may have happened or not; there is no third way.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.app.up import run_up
from cidrella.app.up_settings import UpSettings
from cidrella.app.values import Address
from tests.testenv.client import ApiError, Client
from tests.testenv.ports import free_port
from tests.testenv.processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROUNDS = 50
WRITES = 1_000
"""Acknowledged ones, at least, in all rounds together."""
WRITERS = 8
NAMES = 5
"""That each writer has for itself."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PATIENCE = 30
"""Seconds within which anything happens that is to happen."""
IMPORTED_LATE = (
    "cidrella.apiserver.serving.server",
    "cidrella.apiserver.services.addressing",
    "cidrella.serviceip.desk",
    "cel_expr_python",
)
"""What the command imports only when it is needed."""

Found = tuple[int, Any]
"""A version, and what the object says."""


class Books:
    """What was asked for, and what was acknowledged. Writers have names of their own, and one lock."""

    def __init__(self) -> None:
        self.sure: dict[str, Found] = {}
        """What is there, as far as anybody was told."""
        self.asked: dict[str, Any] = {}
        """What was asked for and not acknowledged yet; None for a deletion."""
        self.versions: set[int] = set()
        """All that were given to a write."""
        self.acknowledged = 0
        self._lock = threading.Condition()

    def ask(self, name: str, value: Any) -> None:
        """Somebody is about to ask for it."""
        with self._lock:
            assert name not in self.asked
            self.asked[name] = value

    def acknowledge(self, name: str, version: int | None) -> None:
        """It was answered; a deletion, without a version."""
        with self._lock:
            value = self.asked.pop(name)
            if version is None:
                del self.sure[name]
            else:
                assert version not in self.versions
                self.versions.add(version)
                self.sure[name] = (version, value)
            self.acknowledged += 1
            self._lock.notify_all()

    def wait(self, count: int) -> None:
        """Until so many have been acknowledged."""
        with self._lock:
            assert self._lock.wait_for(lambda: self.acknowledged >= count, timeout=PATIENCE)

    def check(self, found: dict[str, Found], version: int) -> None:
        """After a restart: what is there, and the version of the whole."""
        assert version >= max(self.versions, default=0)
        for name in {*found, *self.sure, *self.asked}:
            there, known = found.get(name), self.sure.get(name)
            if there != known:
                assert name in self.asked, f"{name} is {there}, acknowledged was {known}"
                assert (there and there[1]) == self.asked[name]
                assert there is None or there[0] not in self.versions
        self.versions |= {there[0] for there in found.values()} | {version}
        self.sure, self.asked = found, {}


class Server:
    """`cidrella up`, over one directory.

    Each is forked from a process that has imported everything already: what is to be killed begins within tenths.
    """

    def __init__(self, directory: Path) -> None:
        self._data, self._log = directory / "data", directory / "log"
        self._address = Address("127.0.0.1", free_port())
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, *IMPORTED_LATE])

    def start(self) -> Client:
        """Returns a client once it answers."""
        self._process = self._context.Process(target=run, args=(self._data, self._address, self._log))
        self._process.start()
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                client = Client(f"https://{self._address}", self._data / "ca.crt")
                with closing(client):
                    client.get(LEASES)
            except (OSError, ApiError):
                time.sleep(0.01)
            else:
                return client
        raise TimeoutError(self._log.read_text())

    def kill(self) -> None:
        """As a power cut would, but for the disk."""
        self._process.kill()
        self._process.join()
        self._process.close()


def run(data: Path, address: Address, log: Path) -> None:
    """In the process that is killed: the command, without its command line."""
    die_with_parent()
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    run_up(UpSettings(data_dir=str(data), bind_address=address, controller=False), Silent())


class Silent:
    """Tells nobody how it goes."""

    @contextmanager
    def progress(self, doing: str) -> Iterator[Callable[[int, int], None]]:  # noqa: ARG002
        yield lambda done, of: None  # noqa: ARG005

    def ready(self, ready: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.kill()


def test_kill_9(server: Server) -> None:
    """50 rounds with 20 writes and more in each: nothing that was acknowledged is missing, and nothing is half."""
    chance = random.Random(7)
    books = Books()
    for number in range(ROUNDS):
        client = server.start()
        inspect(books, client)
        writers = [Writer(books, client, each, random.Random(f"{number} {each}")) for each in range(WRITERS)]
        for each in writers:
            each.start()
        books.wait(books.acknowledged + chance.randint(10, 40))
        time.sleep(chance.random() * 0.01)
        server.kill()
        for each in writers:
            each.join()
        client.close()
        assert [each.wrong for each in writers] == [None] * WRITERS
    with closing(server.start()) as client:
        inspect(books, client)
    assert books.acknowledged >= WRITES


def inspect(books: Books, client: Client) -> None:
    listed = client.get(LEASES)
    found = {
        each["metadata"]["name"]: (int(each["metadata"]["resourceVersion"]), each["spec"]) for each in listed["items"]
    }
    books.check(found, int(listed["metadata"]["resourceVersion"]))


class Writer(threading.Thread):
    """Creates, replaces and deletes its own objects until the server is gone."""

    def __init__(self, books: Books, client: Client, number: int, chance: random.Random) -> None:
        super().__init__()
        self._books = books
        self._client = client
        self._names = [f"{number}-{each}" for each in range(NAMES)]
        self._chance = chance
        self.wrong: Exception | None = None

    def run(self) -> None:
        try:
            while True:
                self._write(self._chance.choice(self._names))
        except ConnectionError:
            pass
        except Exception as error:
            self.wrong = error

    def _write(self, name: str) -> None:
        there = self._books.sure.get(name)
        if there is not None and self._chance.random() < 0.3:
            self._books.ask(name, None)
            self._client.delete(f"{LEASES}/{name}")
            self._books.acknowledge(name, None)
            return
        value = {"holderIdentity": self._chance.choice("xyz") * self._chance.randint(1, 20_000)}
        lease = {"metadata": {"name": name}, "spec": value}
        self._books.ask(name, value)
        if there is None:
            reply = self._client.create(LEASES, lease)
        else:
            lease["metadata"]["resourceVersion"] = str(there[0])
            reply = self._client.replace(f"{LEASES}/{name}", lease)
        self._books.acknowledge(name, int(reply["metadata"]["resourceVersion"]))
