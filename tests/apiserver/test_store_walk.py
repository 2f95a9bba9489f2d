"""The store beside a model that is obviously right: all states that there ever were, each a plain copy."""

from __future__ import annotations

import asyncio
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cidrella.apiserver.store.store import (
    ExistsError,
    GoneError,
    Journal,
    MissingError,
    OverrunError,
    StaleError,
    Store,
    Watcher,
)

REMEMBERED = 12
STORAGES = ("nodes", "leases")
NAMESPACES = ("a", "a-b", "ab", "a0")
PATHS = [f"{namespace}/{name}" for namespace in NAMESPACES for name in "xyz"]

storages = st.sampled_from(STORAGES)
namespaces = st.sampled_from(("", *NAMESPACES))
paths = st.sampled_from(PATHS)
bodies = st.fixed_dictionaries({"spec": st.integers(0, 9), "labels": st.none() | st.just({"l": "é"})})

State = dict[str, dict[str, tuple[int, Any]]]
"""Version and spec of each object, by storage and path."""


class Told(NamedTuple):
    """A change, as a watcher sees it."""

    version: int
    storage: str
    path: str
    before: Any
    after: Any


class Following(NamedTuple):
    """A watcher and what it has to be told."""

    watcher: Watcher
    storage: str
    namespace: str
    since: list[int]
    """In which the one number grows."""


class Model:
    """Everything that ever was."""

    def __init__(self) -> None:
        self.states: dict[int, State] = {1: {storage: {} for storage in STORAGES}}
        self.changes: list[Told] = []
        self.version = 1
        self.start = 1
        """The version of the last restart."""

    @property
    def state(self) -> State:
        return self.states[self.version]

    def change(self, storage: str, path: str, spec: Any) -> None:
        state = deepcopy(self.state)
        before = state[storage].pop(path, None)
        self.version += 1
        if spec is not None:
            state[storage][path] = (self.version, spec)
        self.states[self.version] = state
        self.changes.append(Told(self.version, storage, path, before, state[storage].get(path)))

    def oldest(self, storage: str) -> int:
        recent = [each for each in self.changes if each.version > self.start]
        forgotten = [each.version for each in recent[:-REMEMBERED] if each.storage == storage]
        return max(forgotten, default=self.start)

    def between(self, storage: str, namespace: str, after: int, until: int) -> list[Told]:
        return [
            each
            for each in self.changes
            if each.storage == storage and after < each.version <= until and within(each.path, namespace)
        ]


def within(path: str, namespace: str) -> bool:
    return namespace in {"", path.partition("/")[0]}


class StoreWalk(RuleBasedStateMachine):
    """In memory: what the store holds, held, tells and refuses is what the model says."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = Model()
        self.following: list[Following] = []
        self.store = self.open()

    def open(self) -> Store:
        return Store(remembered=REMEMBERED)

    def teardown(self) -> None:
        self.runner.close()

    @rule(storage=storages, path=paths, body=bodies)
    def create(self, storage: str, path: str, body: dict[str, Any]) -> None:
        self.run(self._create(storage, path, body))

    async def _create(self, storage: str, path: str, body: dict[str, Any]) -> None:
        obj = self.object(body)
        if path in self.model.state[storage]:
            with pytest.raises(ExistsError):
                self.store.create(storage, path, obj)
            return
        self.model.change(storage, path, body["spec"])
        assert self.store.create(storage, path, obj).version == self.model.version

    @rule(storage=storages, path=paths, body=bodies, late=st.sampled_from((0, 0, 0, 1)))
    def replace(self, storage: str, path: str, body: dict[str, Any], late: int) -> None:
        self.run(self._replace(storage, path, body, late))

    async def _replace(self, storage: str, path: str, body: dict[str, Any], late: int) -> None:
        known = self.model.state[storage].get(path)
        expected = known[0] - late if known else 1
        if known is None or late:
            with pytest.raises(MissingError if known is None else StaleError):
                self.store.replace(storage, path, self.object(body), expected)
            return
        self.model.change(storage, path, body["spec"])
        assert self.store.replace(storage, path, self.object(body), expected).version == self.model.version

    @rule(storage=storages, path=paths, late=st.sampled_from((0, 0, 0, 1)))
    def delete(self, storage: str, path: str, late: int) -> None:
        self.run(self._delete(storage, path, late))

    async def _delete(self, storage: str, path: str, late: int) -> None:
        known = self.model.state[storage].get(path)
        expected = known[0] - late if known else 1
        if known is None or late:
            with pytest.raises(MissingError if known is None else StaleError):
                self.store.delete(storage, path, expected)
            return
        self.model.change(storage, path, None)
        shown = self.store.delete(storage, path, expected)
        assert (shown.version, shown.read()["spec"]) == (self.model.version, known[1])

    @rule(storage=storages, namespace=namespaces, back=st.integers(0, 40))
    def list_as_it_was(self, storage: str, namespace: str, back: int) -> None:
        version = max(1, self.model.version - back)
        if version < self.model.oldest(storage):
            with pytest.raises(GoneError) as caught:
                self.store.entries_at(version, storage, namespace)
            assert caught.value.oldest == self.model.oldest(storage)
            return
        entries = self.store.entries_at(version, storage, namespace)
        assert [each.path for each in entries] == sorted(each.path for each in entries)
        assert {each.path: (each.version, each.read()["spec"]) for each in entries} == {
            path: known for path, known in self.model.states[version][storage].items() if within(path, namespace)
        }

    @rule(storage=storages, namespace=namespaces, back=st.none() | st.integers(0, 40))
    def watch(self, storage: str, namespace: str, back: int | None) -> None:
        since = None if back is None else max(1, self.model.version - back)
        if since is not None and since < self.model.oldest(storage):
            with pytest.raises(GoneError):
                self.store.watch(storage, namespace, since)
            return
        watcher = self.store.watch(storage, namespace, since)
        self.following.append(Following(watcher, storage, namespace, [since or self.model.version]))

    @precondition(lambda self: self.following)
    @rule(data=st.data())
    def read_watcher(self, data: st.DataObject) -> None:
        following = data.draw(st.sampled_from(self.following))
        self.run(self._read(following))

    async def _read(self, following: Following) -> None:
        """Everything is durable when it is read, so that what it is told is known."""
        watcher, storage, namespace, since = following
        await self.store.settle()
        due = self.model.between(storage, namespace, since[0], self.model.version)
        if since[0] < self.model.oldest(storage):
            with pytest.raises(OverrunError):
                await anext(watcher)
            self.following.remove(following)
            return
        assert watcher.version == (since[0] if due else self.model.version)
        if due:
            changes = await anext(watcher)
            assert [seen(each) for each in changes] == due
        since[0] = self.model.version
        assert watcher.version == self.model.version

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        self.store.check()
        assert self.store.version == self.model.version
        for storage in STORAGES:
            entries = self.store.entries(storage)
            assert {each.path: (each.version, each.read()["spec"]) for each in entries} == self.model.state[storage]
            for namespace in NAMESPACES:
                assert self.store.entries(storage, namespace) == [
                    each for each in entries if within(each.path, namespace)
                ]

    @staticmethod
    def object(body: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"labels": body["labels"]}, "spec": body["spec"]}

    def run(self, scenario: Any) -> None:
        self.runner.run(asyncio.wait_for(scenario, 10))


def seen(change: Any) -> Told:
    before, after = ((each.version, each.read()["spec"]) if each else None for each in (change.before, change.after))
    return Told(change.version, change.storage, change.shown.path, before, after)


class JournalWalk(StoreWalk):
    """With a journal: the same, over any number of restarts."""

    def open(self) -> Store:
        self.directory = tempfile.TemporaryDirectory()
        self.journal = Journal(Path(self.directory.name))
        return Store(self.journal, remembered=REMEMBERED)

    def teardown(self) -> None:
        self.run(self.journal.close())
        super().teardown()
        self.directory.cleanup()

    @rule()
    def settle(self) -> None:
        self.run(self.store.settle())

    @rule()
    def restart(self) -> None:
        """Watchers end with the process; what they followed is gone."""
        self.run(self.journal.close())
        self.following.clear()
        self.journal = Journal(Path(self.directory.name))
        self.store = Store(self.journal, remembered=REMEMBERED)
        self.model.start = self.model.version


TestStoreWalk = StoreWalk.TestCase
TestJournalWalk = JournalWalk.TestCase
