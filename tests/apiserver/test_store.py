"""The store of the embedded API, in memory: what it holds, what it remembers, and whom it tells."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cidrella.apiserver.store.entries import Change, Entry
from cidrella.apiserver.store.history import History
from cidrella.apiserver.store.store import (
    ExistsError,
    GoneError,
    MissingError,
    OverrunError,
    StaleError,
    Store,
    Watcher,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NODES, LEASES = "nodes", "leases.coordination.k8s.io"


def thing(name: str, **spec: object) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"of": name}}, "spec": spec}


def filled(names: Iterable[str], storage: str = LEASES, remembered: int = 100) -> Store:
    store = Store(remembered=remembered)
    for name in names:
        store.create(storage, name, thing(name))
    return store


def paths(entries: Iterable[Entry]) -> list[str]:
    return [each.path for each in entries]


def told(changes: Iterable[Change]) -> list[tuple[int, str]]:
    return [(each.version, each.shown.path) for each in changes]


async def soon(watcher: Watcher) -> list[Change]:
    """The next changes, which have to be there."""
    async with asyncio.timeout(1):
        return await anext(watcher)


async def silent(watcher: Watcher) -> bool:
    """Whether there is nothing to tell now."""
    try:
        async with asyncio.timeout(0.01):
            await anext(watcher)
    except TimeoutError:
        return True
    return False


class TestWrites:
    """Create, replace and delete, each a compare and swap."""

    def test_an_empty_store_is_at_version_1(self) -> None:
        """The first change is the second version: clients take 0 for `any`, and 1 has to be somewhere."""
        store = Store()
        assert store.version == 1
        assert store.create(NODES, "a", thing("a")).version == store.version == 2

    def test_the_version_is_in_the_object_and_in_what_was_handed_over(self) -> None:
        """What is answered is what was handed over, and it has to say its version."""
        obj = thing("a", x=1)
        entry = Store().create(NODES, "a", obj)
        assert obj["metadata"]["resourceVersion"] == "2"
        assert entry.read() == obj
        assert entry.labels == {"of": "a"}

    def test_nobody_changes_what_is_stored(self) -> None:
        """Neither through what was handed over, nor through what was read."""
        store, obj = Store(), thing("a", x=1)
        entry = store.create(NODES, "a", obj)
        obj["spec"]["x"] = obj["metadata"]["labels"]["of"] = 2
        entry.read()["spec"]["x"] = 3
        assert entry.read()["spec"] == {"x": 1}
        assert entry.labels == {"of": "a"}
        assert store.get(NODES, "a") == entry

    def test_an_object_without_labels(self) -> None:
        """None, null, and none given are the same."""
        store = Store()
        assert store.create(NODES, "a", {"metadata": {}}).labels == {}
        assert store.create(NODES, "b", {"metadata": {"labels": None}}).labels == {}

    def test_a_taken_path(self) -> None:
        """Is refused, and nothing happens; another storage has paths of its own."""
        store = filled(["a"], NODES)
        with pytest.raises(ExistsError):
            store.create(NODES, "a", thing("a"))
        assert store.version == 2
        store.create(LEASES, "a", thing("a"))

    def test_who_is_late_is_refused(self) -> None:
        """A replacement or a deletion of another version than the latest changes nothing."""
        store = filled(["a"], NODES)
        store.replace(NODES, "a", thing("a", x=1), 2)
        with pytest.raises(StaleError):
            store.replace(NODES, "a", thing("a", x=2), 2)
        with pytest.raises(StaleError):
            store.delete(NODES, "a", 2)
        with pytest.raises(MissingError):
            store.replace(NODES, "b", thing("b"), 2)
        with pytest.raises(MissingError):
            store.delete(NODES, "b", 2)
        entry = store.get(NODES, "a")
        assert entry is not None
        assert (entry.version, entry.read()["spec"], store.version) == (3, {"x": 1}, 3)

    def test_a_deletion_is_a_change_of_its_own(self) -> None:
        """It has a version, and shows the last state with it; the next object of that name begins anew."""
        store = filled(["a"], NODES)
        shown = store.delete(NODES, "a", 2)
        assert shown.version == store.version == 3
        assert shown.read() == {**thing("a"), "metadata": {**thing("a")["metadata"], "resourceVersion": "3"}}
        assert store.get(NODES, "a") is None
        assert store.create(NODES, "a", thing("a")).version == 4


class TestLists:
    """All objects, or those in a namespace, now or as they were."""

    def test_the_order_is_that_of_the_paths(self) -> None:
        """As strings: what sorts before the slash comes before a namespace that it begins with."""
        store = filled(["b/x", "a/z", "a/b", "a-b/c", "a0/a", "ab/a"])
        assert paths(store.entries(LEASES)) == ["a-b/c", "a/b", "a/z", "a0/a", "ab/a", "b/x"]

    def test_a_namespace(self) -> None:
        """Has what is in it, and nothing of those that its name begins, or whose names begin with it."""
        store = filled(["b/x", "a/z", "a/b", "a-b/c", "a0/a", "ab/a"])
        assert paths(store.entries(LEASES, "a")) == ["a/b", "a/z"]
        assert store.entries(LEASES, "c") == []

    def test_as_it_was(self) -> None:
        """Later changes are undone: what was made is not there, what was deleted or replaced is as it was."""
        store = filled(["a/1", "a/2", "b/3"])
        then = store.version
        was = store.entries(LEASES)
        store.delete(LEASES, "a/1", 2)
        store.replace(LEASES, "a/2", thing("2", x=1), 3)
        store.replace(LEASES, "a/2", thing("2", x=2), 6)
        store.create(LEASES, "a/0", thing("0"))
        store.delete(LEASES, "b/3", 4)
        store.create(LEASES, "b/3", thing("3"))
        store.create(NODES, "a/9", thing("9"))
        assert store.entries_at(then, LEASES) == was
        assert store.entries_at(then, LEASES, "b") == was[2:]
        assert store.entries_at(store.version, LEASES) == store.entries(LEASES)

    def test_too_long_ago(self) -> None:
        """A version from before what is remembered is gone, and the error says what is left."""
        store = filled([str(number) for number in range(10)], remembered=3)
        assert len(store.entries_at(8, LEASES)) == 7
        with pytest.raises(GoneError) as caught:
            store.entries_at(7, LEASES)
        assert (caught.value.version, caught.value.oldest) == (7, 8)

    def test_a_quiet_storage_is_remembered_for_long(self) -> None:
        """Only its own changes count: what is forgotten elsewhere cannot have changed it."""
        store = Store(remembered=3)
        store.create(LEASES, "a", thing("a"))
        for number in range(10):
            store.create(NODES, str(number), thing(str(number)))
        assert paths(store.entries_at(2, LEASES)) == ["a"]
        with pytest.raises(GoneError):
            store.entries_at(1, LEASES)


def test_the_history_is_bounded_in_bytes() -> None:
    """Large objects leave room for fewer changes; one that is larger than all the room is not remembered at all."""
    history = History(start=1, changes=100, size=1000)

    def change(version: int, size: int) -> Change:
        entry = Entry("a", version, b"x" * size)
        return Change(NODES, None, entry, entry)

    for version in range(2, 12):
        history.add(change(version, 300))
    assert [each.version for each in history.between(NODES, 8, 99)] == [9, 10, 11]
    assert history.oldest(NODES) == 8
    history.add(change(12, 2000))
    assert history.oldest(NODES) == 12
    history.add(change(13, 1000))
    assert [each.version for each in history.between(NODES, 12, 99)] == [13]


class TestWatching:
    """A watcher is told what happens after its version: each change once, in order."""

    def test_from_now_on(self) -> None:
        """Without a version, what is there already is not told."""

        async def scenario() -> None:
            store = filled(["a", "b"])
            watcher = store.watch(LEASES)
            assert await silent(watcher)
            store.delete(LEASES, "a", 2)
            store.create(LEASES, "c", thing("c"))
            assert told(await soon(watcher)) == [(4, "a"), (5, "c")]
            assert await silent(watcher)

        asyncio.run(scenario())

    def test_from_a_version(self) -> None:
        """The changes since come first, then those to come."""

        async def scenario() -> None:
            store = filled(["a", "b"])
            watcher = store.watch(LEASES, since=2)
            assert told(await soon(watcher)) == [(3, "b")]
            waiting = asyncio.create_task(soon(watcher))
            await asyncio.sleep(0)
            store.create(LEASES, "c", thing("c"))
            assert told(await waiting) == [(4, "c")]

        asyncio.run(scenario())

    def test_what_a_change_says(self) -> None:
        """What was before and what is after tell the kinds of change apart."""

        async def scenario() -> None:
            store = Store()
            watcher = store.watch(NODES)
            one = store.create(NODES, "a", thing("a"))
            two = store.replace(NODES, "a", thing("a", x=1), one.version)
            three = store.delete(NODES, "a", two.version)
            seen = [(each.before, each.after, each.shown) for each in await soon(watcher)]
            assert seen == [(None, one, one), (one, two, two), (two, None, three)]

        asyncio.run(scenario())

    def test_only_its_own(self) -> None:
        """Neither other storages nor other namespaces are told."""

        async def scenario() -> None:
            store = Store()
            everywhere, there = store.watch(LEASES), store.watch(LEASES, "a")
            for path in ("b/x", "a/x", "ab/x"):
                store.create(LEASES, path, thing("x"))
                store.create(NODES, path, thing("x"))
            assert [path for _, path in told(await soon(everywhere))] == ["b/x", "a/x", "ab/x"]
            assert [path for _, path in told(await soon(there))] == ["a/x"]

        asyncio.run(scenario())

    def test_a_version_too_old(self) -> None:
        """Is gone at once; the oldest that is not is served."""
        store = filled([str(number) for number in range(10)], remembered=3)
        with pytest.raises(GoneError):
            store.watch(LEASES, since=7)
        store.watch(LEASES, since=8)

    def test_who_reads_too_slowly(self) -> None:
        """Loses its place, and nobody else theirs."""

        async def scenario() -> None:
            store = Store(remembered=3)
            slow, quick = store.watch(NODES), store.watch(NODES)
            for number in range(4):
                store.create(NODES, str(number), thing(str(number)))
                assert len(await soon(quick)) == 1
            with pytest.raises(OverrunError):
                await anext(slow)
            with pytest.raises(OverrunError):
                await anext(slow)

        asyncio.run(scenario())

    def test_how_far_it_is(self) -> None:
        """For bookmarks: never past what is to be told yet, and ahead where nothing of it concerns the watcher."""

        async def scenario() -> None:
            store = Store()
            watcher = store.watch(NODES, since=1)
            assert watcher.version == 1
            store.create(LEASES, "a", thing("a"))
            assert watcher.version == 2
            store.create(NODES, "a", thing("a"))
            store.create(LEASES, "b", thing("b"))
            assert watcher.version == 2
            assert told(await soon(watcher)) == [(3, "a")]
            assert watcher.version == 4

        asyncio.run(scenario())

    def test_closing(self) -> None:
        """Who waits for the next is told that there is none; other watchers go on."""

        async def scenario() -> None:
            store = Store()
            watcher, other = store.watch(NODES), store.watch(NODES)
            waiting = [asyncio.create_task(soon(each)) for each in (watcher, other)]
            await asyncio.sleep(0)
            watcher.close()
            with pytest.raises(StopAsyncIteration):
                await waiting[0]
            store.create(NODES, "a", thing("a"))
            assert told(await waiting[1]) == [(2, "a")]
            with pytest.raises(StopAsyncIteration):
                await anext(watcher)

        asyncio.run(scenario())

    def test_giving_up_leaves_nothing_behind(self) -> None:
        """A watcher that is asked again and again with a timeout costs no memory for each time."""

        async def scenario() -> None:
            store = Store()
            watcher = store.watch(NODES)
            for _ in range(3):
                assert await silent(watcher)
            waiting = asyncio.create_task(soon(watcher))
            await asyncio.sleep(0)
            waiting.cancel()
            store.create(NODES, "a", thing("a"))
            assert told(await soon(watcher)) == [(2, "a")]
            assert not any(store._bells._sleepers.values())

        asyncio.run(scenario())


def test_in_memory_all_is_settled() -> None:
    """There is nothing to wait for: `settle` returns without a turn of the loop."""
    store = filled(["a"])
    with pytest.raises(StopIteration):
        store.settle().send(None)
