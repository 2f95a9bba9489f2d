"""Watching: from which version, what is told of whom, bookmarks, and how a watch ends."""

from __future__ import annotations

import asyncio

import pytest

from cidrella.apiserver.serving import watching
from cidrella.apiserver.store.history import GoneError
from cidrella.apiserver.store.journal import StoreError
from cidrella.apiserver.store.store import Store
from cidrella.apiserver.store.watcher import OverrunError, Watcher
from cidrella.apiserver.words.statuses import StatusError
from tests.apiserver.asking import CRDS, LEASES, MERGE, METADATA, NODES, TABLE, Api, api, crd, lease, node

NOW = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"


def label(ask: Api, name: str, value: str) -> None:
    ask("PATCH", f"{NODES}/{name}", {"metadata": {"labels": {"color": value}}}, media=MERGE).granted()


def now(ask: Api, path: str = NODES) -> str:
    return str(ask("GET", path).body["metadata"]["resourceVersion"])


class TestTheBeginning:
    """What a watch begins with."""

    @pytest.mark.parametrize("query", ["", "resourceVersion=0", NOW.replace("false", "true")])
    def test_what_there_is(self, query: str) -> None:
        """Without a version, with what there is; a bookmark, if they are wanted, says where that ends."""
        with api() as ask:
            ask.make(NODES, node("a"))
            assert ask.watch(f"{NODES}?{query}").told() == [("ADDED", "a")]
            with_marks = ask.watch(f"{NODES}?{query}&allowWatchBookmarks=1").next(2)
            assert [each["type"] for each in with_marks] == ["ADDED", "BOOKMARK"]
            assert with_marks[1]["object"]["metadata"] == {
                "resourceVersion": now(ask),
                "annotations": {"k8s.io/initial-events-end": "true"},
            }

    def test_from_a_version(self) -> None:
        """Everything that is later, as it happened; from now on, only what is still to come."""
        with api() as ask:
            start = now(ask)
            ask.make(NODES, node("a"))
            label(ask, "a", "red")
            later = ask.watch(f"{NODES}?{NOW}")
            ask("DELETE", f"{NODES}/a").granted()
            ask.make(LEASES, lease("x"))
            ask.make(NODES, node("b"))
            everything = [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
            assert ask.watch(f"{NODES}?resourceVersion={start}").told(4) == everything
            assert later.told(2) == everything[2:]

    def test_in_the_future(self) -> None:
        """A version that is still to come is waited for, unless what there is is asked for as well."""
        with api() as ask:
            ahead = int(now(ask)) + 2
            watch = ask.watch(f"{NODES}?resourceVersion={ahead}")
            for name in "abc":
                ask.make(NODES, node(name))
            assert watch.told() == [("ADDED", "c")]
            query = "sendInitialEvents=1&resourceVersionMatch=NotOlderThan&resourceVersion=999"
            (error,) = ask.watch(f"{NODES}?{query}").next()
            assert (error["type"], error["object"]["code"]) == ("ERROR", 504)

    def test_too_old(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A version that is no longer known is an event of its own, after which the watch ends."""

        def forgotten(*_: object, **__: object) -> None:
            raise GoneError(1, 7)

        with api() as ask:
            monkeypatch.setattr(Store, "watch", forgotten)
            watch = ask.watch(f"{NODES}?resourceVersion=1")
            (error,) = watch.next(2)
            assert error["type"] == "ERROR"
            assert error["object"]["reason"] == "Expired"
            assert error["object"]["message"] == "too old resource version: 1 (7)"
            watch.watch.end()

    @pytest.mark.parametrize(
        ("query", "code", "message"),
        [
            ("sendInitialEvents=1", 422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            ("resourceVersionMatch=NotOlderThan", 422, "forbidden for watch unless sendInitialEvents is provided"),
            ("resourceVersionMatch=Exact", 422, 'supported values: "NotOlderThan"'),
            ("continue=x", 422, "forbidden when continue is provided"),
            ("resourceVersion=x", 500, "resourceVersion: Invalid value"),
            ("labelSelector=-", 400, "unable to parse requirement"),
        ],
    )
    def test_what_makes_no_sense(self, query: str, code: int, message: str) -> None:
        """Such a watch does not begin."""
        with api() as ask, pytest.raises(StatusError, match=message) as refused:
            ask.watch(f"{NODES}?{query}")
        assert refused.value.code == code

    def test_no_such_form(self) -> None:
        """A watch is not told in YAML."""
        with api() as ask, pytest.raises(StatusError, match="stream=watch"):
            ask.watch(NODES, accept="application/yaml")


class TestSelected:
    """Watches of some objects."""

    def test_coming_and_going(self) -> None:
        """What begins to match is added, what matches no more is deleted, as it was when it did."""
        with api() as ask:
            watch = ask.watch(f"{NODES}?labelSelector=color%3Dred&{NOW}")
            ask.make(NODES, node("a", labels={"color": "blue"}))
            for color in ("red", "red", "blue", "green", "red"):
                label(ask, "a", color)
            ask("DELETE", f"{NODES}/a").granted()
            found = watch.next(4)
            assert [each["type"] for each in found] == ["ADDED", "DELETED", "ADDED", "DELETED"]
            assert [each["object"]["metadata"]["labels"]["color"] for each in found] == ["red"] * 4
            versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in found]
            assert versions == sorted(set(versions))

    def test_one_object(self) -> None:
        """By its name, or by a namespace."""
        with api() as ask:
            by_name = ask.watch(f"{NODES}?fieldSelector=metadata.name%3Db&{NOW}")
            inside = ask.watch(f"{LEASES}?{NOW}")
            for name in "abc":
                ask.make(NODES, node(name))
                ask.make(LEASES.replace("default", "kube-system"), lease(name))
            ask.make(LEASES, lease("d"))
            assert by_name.told() == [("ADDED", "b")]
            assert inside.told() == [("ADDED", "d")]


def test_other_forms() -> None:
    """Tables name their columns once; bookmarks have an empty row; metadata comes alone; both groups tell of events."""
    with api() as ask:
        table = ask.watch(f"{NODES}?allowWatchBookmarks=1", accept=TABLE)
        metadata = ask.watch(f"{NODES}?{NOW}", accept=METADATA)
        ask.make(NODES, node("a"))
        mark, added = table.next(2)
        assert mark["object"]["rows"][0]["cells"][0] == ""
        assert [each["name"] for each in mark["object"]["columnDefinitions"]][:2] == ["Name", "Status"]
        assert added["object"]["columnDefinitions"] is None
        assert added["object"]["rows"][0]["cells"][0] == "a"
        assert set(metadata.next()[0]["object"]) == {"kind", "apiVersion", "metadata"}
        new = ask.watch(f"/apis/events.k8s.io/v1/events?{NOW}")
        event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}}
        ask.make("/api/v1/namespaces/default/events", event)
        (told,) = new.next()
        assert told["object"]["apiVersion"] == "events.k8s.io/v1"
        assert told["object"]["regarding"] == {"namespace": "default"}


class TestTheEnd:
    """How a watch ends, and what is told before."""

    def test_bookmarks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every now and then, and shortly before the time is up, a bookmark tells the version; without, nothing."""
        monkeypatch.setattr(watching, "BOOKMARK", 0.2)
        monkeypatch.setattr(watching, "_BEFORE_END", 0.5)
        with api() as ask:
            marked = ask.watch(f"{NODES}?{NOW}&allowWatchBookmarks=1&timeoutSeconds=1")
            silent = ask.watch(f"{NODES}?{NOW}&timeoutSeconds=1")
            ask.make(LEASES, lease("elsewhere"))
            found = marked.next(99)
            assert [each["type"] for each in found] == ["BOOKMARK"] * 3
            assert {each["object"]["metadata"]["resourceVersion"] for each in found} == {now(ask)}
            assert silent.next() == []

    def test_a_kind_that_goes(self) -> None:
        """The last of its objects is told of, and then the watch ends; also where there was none."""
        with api() as ask:
            ask.make(CRDS, crd("gadgets", scope="Cluster"))
            ask.make(CRDS, crd("gizmos", scope="Cluster"))
            gadgets, gizmos = "/apis/example.com/v1/gadgets", "/apis/example.com/v1/gizmos"
            ask.make(gadgets, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}})
            watches = [ask.watch(f"{path}?{NOW}") for path in (gadgets, gizmos)]
            stays = ask.watch(f"{NODES}?{NOW}&timeoutSeconds=1")

            def end() -> None:
                for each in (*watches, stays):
                    if ask.holdings.registry.find(*each.watch.target[:3]) is None:
                        each.watch.finish(ask.store.version)

            ask.holdings.withdrawn = end
            for name in ("gadgets", "gizmos"):
                ask("DELETE", f"{CRDS}/{name}.example.com").granted()
            ask.wait(lambda: not ask.store.entries("customresourcedefinitions.apiextensions.k8s.io"))
            assert watches[0].told(9) == [("DELETED", "a")]
            assert watches[1].told(9) == []
            ask.make(NODES, node("a"))
            assert stays.told() == [("ADDED", "a")]

    def test_while_somebody_waits(self) -> None:
        """A watch that nothing happens in ends at once where the server does, or its kind goes."""
        with api() as ask:
            for how in ("end", "finish"):
                watch = ask.watch(f"{NODES}?{NOW}").watch

                async def wait(watch: watching.Watch = watch, how: str = how) -> None:
                    reading = asyncio.ensure_future(_read(watch))
                    await asyncio.sleep(0.05)
                    watch.end() if how == "end" else watch.finish(ask.store.version)
                    async with asyncio.timeout(1):
                        await reading

                ask.runner.run(wait())

    @pytest.mark.parametrize(("error", "code"), [(OverrunError(), 410), (StoreError("disk"), 500)])
    def test_what_goes_wrong(self, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
        """Who reads too slowly, or of a store that failed, is told, and begins anew."""

        async def fail(_: Watcher) -> None:
            raise error

        with api() as ask:
            watch = ask.watch(f"{NODES}?{NOW}")
            monkeypatch.setattr(Watcher, "__anext__", fail)
            (told,) = watch.next(2)
            assert (told["type"], told["object"]["code"]) == ("ERROR", code)


async def _read(watch: watching.Watch) -> list[bytes]:
    return [each async for each in watch.lines()]
