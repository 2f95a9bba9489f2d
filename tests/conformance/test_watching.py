"""Watches: every change once, in order, from the version that a client has seen."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.bodies import CRDS, NODES, POOLS, await_kind, crd, lease, leases, made, node, pool, version
from tests.conformance.talking import PARTIAL, TABLE

if TYPE_CHECKING:
    from tests.conformance.talking import Talk

    Json = dict[str, Any]

GUARD = "example.com/guard"


def now(talk: Talk, path: str) -> str:
    """The version of a list."""
    return str(talk.get(path).granted()["metadata"]["resourceVersion"])


def labelled(name: str, **labels: str) -> Json:
    """A Lease with labels."""
    body = lease(name)
    body["metadata"]["labels"] = labels
    return body


def test_every_change_in_order(talk: Talk, namespace: str) -> None:
    """What happens after the list is told as it happens: how caches stay true."""
    path = leases(namespace)
    with talk.watch(path, resourceVersion=now(talk, path)) as watching:
        made(talk, path, lease("a"))
        made(talk, path, lease("b"))
        talk.patch(f"{path}/a", {"spec": {"holderIdentity": "x"}}).granted()
        talk.delete(f"{path}/a").granted()
        assert watching.take(4) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_from_a_version_in_the_past(talk: Talk, namespace: str) -> None:
    """A client that lost its connection goes on after the last change that it saw."""
    path = leases(namespace)
    start = now(talk, path)
    first = made(talk, path, lease("a"))
    second = talk.patch(f"{path}/a", {"spec": {"holderIdentity": "x"}}).granted()
    talk.delete(f"{path}/a").granted()
    with talk.watch(path, resourceVersion=start) as watching:
        assert watching.next() == ("ADDED", first)
        assert watching.next() == ("MODIFIED", second)
        kind, last = watching.next()
        assert kind == "DELETED"
        assert version(last) > version(second)
        assert last["spec"] == second["spec"]
    with talk.watch(path, resourceVersion=first["metadata"]["resourceVersion"]) as watching:
        assert watching.next() == ("MODIFIED", second)


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["none", "zero"])
def test_from_no_version(talk: Talk, namespace: str, query: dict[str, str]) -> None:
    """What is there comes first, as if it were new; then what happens."""
    path = leases(namespace)
    made(talk, path, lease("b"))
    made(talk, path, lease("a"))
    with talk.watch(path, **query) as watching:
        assert sorted(watching.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        talk.delete(f"{path}/a").granted()
        assert watching.take(1) == [("DELETED", "a")]


def test_only_what_is_asked_for(talk: Talk, namespace: str) -> None:
    """Not what is in other namespaces, nor other kinds."""
    path = leases(namespace)
    with talk.watch(path, resourceVersion=now(talk, path)) as watching:
        made(talk, leases("default"), lease(f"{namespace}-other"))
        made(talk, POOLS, pool(namespace))
        made(talk, path, lease("mine"))
        assert watching.take(1) == [("ADDED", "mine")]


def test_changes_of_finalizers_and_the_end(talk: Talk, name: str) -> None:
    """A deletion that waits is a change; the deletion comes when it is gone."""
    body = pool(name)
    body["metadata"]["finalizers"] = [GUARD]
    start = made(talk, POOLS, body)["metadata"]["resourceVersion"]
    with talk.watch(POOLS, resourceVersion=start, fieldSelector=f"metadata.name={name}") as watching:
        talk.delete(f"{POOLS}/{name}").granted()
        kind, marked = watching.next()
        assert (kind, "deletionTimestamp" in marked["metadata"]) == ("MODIFIED", True)
        talk.patch(f"{POOLS}/{name}", {"metadata": {"finalizers": None}}).granted()
        kind, last = watching.next()
        assert kind == "DELETED"
        assert version(last) > version(marked)


def test_nothing_for_what_did_not_change(talk: Talk, name: str) -> None:
    """A write that changes nothing wakes nobody."""
    before = made(talk, NODES, node(name))
    query = {"resourceVersion": before["metadata"]["resourceVersion"], "fieldSelector": f"metadata.name={name}"}
    with talk.watch(NODES, **query) as watching:
        talk.replace(f"{NODES}/{name}", before).granted()
        talk.patch(f"{NODES}/{name}", {"metadata": {"labels": None}}).granted()
        talk.patch(f"{NODES}/{name}", {"metadata": {"labels": {"a": "b"}}}).granted()
        kind, told = watching.next()
        assert (kind, told["metadata"]["labels"]) == ("MODIFIED", {"a": "b"})


class TestSelected:
    """A watch of what a selector selects is a list that stays true."""

    def test_coming_in_and_going_out(self, talk: Talk, namespace: str) -> None:
        """What begins to match is new to this client, and what no longer does is gone for it."""
        path = leases(namespace)
        with talk.watch(path, resourceVersion=now(talk, path), labelSelector="in=yes") as watching:
            made(talk, path, labelled("a"))
            made(talk, path, labelled("b", **{"in": "yes"}))
            assert watching.take(1) == [("ADDED", "b")]
            talk.patch(f"{path}/a", {"metadata": {"labels": {"in": "yes"}}}).granted()
            talk.patch(f"{path}/a", {"metadata": {"labels": {"more": "x"}}}).granted()
            assert watching.take(2) == [("ADDED", "a"), ("MODIFIED", "a")]
            left = talk.patch(f"{path}/a", {"metadata": {"labels": {"in": "no"}}}).granted()
            kind, told = watching.next()
            assert kind == "DELETED"
            assert told["metadata"]["labels"] == {"in": "yes", "more": "x"}, "as it was when it still matched"
            assert version(told) == version(left)
            talk.delete(f"{path}/a").granted()
            talk.delete(f"{path}/b").granted()
            assert watching.take(1) == [("DELETED", "b")]

    def test_by_fields(self, talk: Talk, name: str) -> None:
        """Fields likewise."""
        start = now(talk, NODES)
        query = {"resourceVersion": start, "labelSelector": f"t={name}", "fieldSelector": "spec.unschedulable=true"}
        with talk.watch(NODES, **query) as watching:
            made(talk, NODES, node(name, {"t": name}))
            talk.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}}).granted()
            assert watching.take(1) == [("ADDED", name)]
            talk.patch(f"{NODES}/{name}", {"spec": {"unschedulable": None}}).granted()
            assert watching.take(1) == [("DELETED", name)]

    def test_one_object(self, talk: Talk, name: str) -> None:
        """As `kubectl wait` does: by its name, though it is not there yet."""
        query = {"resourceVersion": now(talk, POOLS), "fieldSelector": f"metadata.name={name}"}
        with talk.watch(POOLS, **query) as watching:
            made(talk, POOLS, pool(f"{name}-other"))
            made(talk, POOLS, pool(name))
            assert watching.take(1) == [("ADDED", name)]

    def test_selectors_that_make_no_sense(self, talk: Talk) -> None:
        """They are refused before anything is sent."""
        talk.get(NODES, watch="true", labelSelector="a b").refused(400, "BadRequest")
        talk.get(NODES, watch="true", fieldSelector="spec.nonsense=x").refused(400, "BadRequest")


class TestVersionsOnTheWay:
    """Bookmarks: a client that sees few changes learns nevertheless from where to go on."""

    def test_before_the_time_is_up(self, talk: Talk, name: str, namespace: str) -> None:
        """A watch that ends by its timeout tells, shortly before, a version that is newer than the last it told."""
        path = leases(namespace)
        start = now(talk, path)
        query = {"resourceVersion": start, "timeoutSeconds": "4", "allowWatchBookmarks": "true"}
        with talk.watch(path, **query, labelSelector=f"none={name}") as watching:
            time.sleep(0.3)
            last = made(talk, path, lease("unseen"))
            kind, told = watching.next()
            assert kind == "BOOKMARK"
            assert (told["kind"], told["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
            assert version(told) >= version(last)
            assert "name" not in told["metadata"]
            assert {event["type"] for event in watching} <= {"BOOKMARK"}

    def test_only_who_asks(self, talk: Talk, namespace: str) -> None:
        """Who did not is not told."""
        path = leases(namespace)
        with talk.watch(path, resourceVersion=now(talk, path), timeoutSeconds="3", labelSelector="none=x") as watching:
            made(talk, path, lease("unseen"))
            assert list(watching) == []

    @pytest.mark.parametrize("start", ["", "0"], ids=["none", "zero"])
    def test_after_what_is_there(self, talk: Talk, namespace: str, start: str) -> None:
        """A list by watching: all there is, then a bookmark that says so, then what happens."""
        path = leases(namespace)
        made(talk, path, lease("a"))
        last = made(talk, path, lease("b"))
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        with talk.watch(path, **query, resourceVersion=start) as watching:
            assert watching.take(2) == [("ADDED", "a"), ("ADDED", "b")]
            kind, told = watching.next()
            assert kind == "BOOKMARK"
            assert told["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            assert version(told) >= version(last)
            made(talk, path, lease("c"))
            assert watching.take(1) == [("ADDED", "c")]

    def test_after_nothing(self, talk: Talk, namespace: str) -> None:
        """Nothing is there: the bookmark comes at once."""
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
        with talk.watch(leases(namespace), **query) as watching:
            assert watching.next()[0] == "BOOKMARK"

    @pytest.mark.parametrize(
        "query",
        [
            {"sendInitialEvents": "true"},
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        ],
        ids=["alone", "exact", "match"],
    )
    def test_which_make_no_sense(self, talk: Talk, query: dict[str, str]) -> None:
        """What is there, not older than a version: both are said, or neither."""
        talk.get(NODES, watch="true", **query).refused(422, "Invalid", "resourceVersionMatch")


class TestItsEnd:
    """A watch ends in good order."""

    @pytest.mark.parametrize("seconds", [1, 2])
    def test_when_the_time_is_up(self, talk: Talk, namespace: str, seconds: int) -> None:
        """After timeoutSeconds, with nothing half said."""
        path = leases(namespace)
        began = time.monotonic()
        with talk.watch(path, resourceVersion=now(talk, path), timeoutSeconds=str(seconds)) as watching:
            assert list(watching) == []
        assert seconds - 0.1 <= time.monotonic() - began < seconds + 15

    def test_a_version_that_is_none(self, talk: Talk) -> None:
        """It is refused before anything is sent."""
        assert talk.get(NODES, watch="true", resourceVersion="x").code >= 400

    def test_of_a_kind_that_goes(self, talk: Talk, name: str) -> None:
        """A client is told that what it watches is gone, each object and then the end of the watch."""
        plural, group = "watcheds", f"{name}.example.com"
        made(talk, CRDS, crd(plural, group))
        path = f"/apis/{group}/v1/{plural}"
        await_kind(talk, path)
        thing = {"apiVersion": f"{group}/v1", "kind": "Watched", "metadata": {"name": "a"}}
        start = made(talk, path, thing)["metadata"]["resourceVersion"]
        with talk.watch(path, resourceVersion=start) as watching:
            talk.delete(f"{CRDS}/{plural}.{group}").granted()
            assert watching.take(1) == [("DELETED", "a")]
            assert list(watching) == []


@pytest.mark.parametrize("accept", [TABLE, PARTIAL], ids=["table", "partial"])
def test_in_other_forms(talk: Talk, name: str, accept: str) -> None:
    """As `kubectl get -w` asks: each event has a row, or the metadata alone."""
    start = now(talk, NODES)
    query = {"resourceVersion": start, "fieldSelector": f"metadata.name={name}"}
    with talk.watch(NODES, accept=accept, **query) as watching:
        made(talk, NODES, node(name))
        talk.patch(f"{NODES}/{name}", {"metadata": {"labels": {"a": "b"}}}).granted()
        (_, first), (kind, second) = watching.next(), watching.next()
    assert kind == "MODIFIED"
    if accept == TABLE:
        assert [each["name"] for each in first["columnDefinitions"]][:2] == ["Name", "Status"]
        assert "columnDefinitions" not in second or not second["columnDefinitions"]
        assert second["rows"][0]["cells"][0] == name
    else:
        assert (second["kind"], second["metadata"]["labels"]) == ("PartialObjectMetadata", {"a": "b"})
        assert "spec" not in second


def test_many_who_watch(talk: Talk, namespace: str) -> None:
    """Each sees all, in the same order."""
    path = leases(namespace)
    start = now(talk, path)

    def follow(_: int) -> list[str]:
        with talk.watch(path, resourceVersion=start) as watching:
            return [json.dumps(watching.next()[1]["metadata"]["resourceVersion"]) for _ in range(30)]

    with ThreadPoolExecutor(6) as workers:
        following = workers.map(follow, range(5))
        for number in range(30):
            made(talk, path, lease(f"l-{number}"))
        seen = list(following)
    assert all(each == seen[0] for each in seen)
    assert [int(json.loads(each)) for each in seen[0]] == sorted({int(json.loads(each)) for each in seen[0]})
