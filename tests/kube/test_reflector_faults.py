"""The reflector and what goes wrong: how often it asks then, what it says, and what it still serves."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

import pytest
from structlog.testing import capture_logs

from cidrella.kube.errors import ApiError, ConfigError, MalformedReplyError, NoAnswerError
from cidrella.kube.reflector import ReflectorSettings
from cidrella.kube.reflector_settings import Absence
from tests.kube.fakeapi import FakeApi, error_event, gone
from tests.kube.following import reflecting, seen, sizes, until
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR = 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize(
    "refusal",
    [
        lambda: error_event(410),
        gone,
        lambda: error_event(500),
        lambda: b"",
        lambda: b"<html>\n",
        lambda: b'{"type":"WEIRD","object":{}}\n',
        lambda: b'{"type":"DELETED","object":{}}\n',
        lambda: b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"999"}}}\n' + error_event(410),
        lambda: NoAnswerError("cut"),
        lambda: MalformedReplyError("text/html"),
        lambda: ApiError(403, "Forbidden", "no"),
    ],
)
def test_watch_refused_again_and_again_is_no_tight_loop(refusal: Callable[[], bytes | Exception]) -> None:
    """Pitfall 25: whatever every watch is answered, a list before each or not, requests become few."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        api.refuse_watches = refusal
        async with reflecting(api) as (reflector, _):
            await asyncio.sleep(HOUR)
            first_minute = sum(request.time < 1060 for request in api.requests)
            assert first_minute < 130
            assert len(api.requests) < HOUR
            api.refuse_watches = None
            api.put("b", 1)
            await until(lambda: "b" in reflector.objects)
            assert reflector.trouble == ""

    simulate(scenario())


def test_watches_that_bring_something_and_are_cut() -> None:
    """A watch that brings something new and is cut is taken up soon, again and again, but not in a tight loop."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            for number in range(100):
                await until(lambda: api.watches)
                api.put(f"n{number}", number)
                api.send(NoAnswerError("cut"))
                await until(lambda: not api.watches)
            await until(lambda: len(reflector.objects) == 100)
            assert 0.1 * 100 < now() - 1000 < 0.35 * 100
            assert api.count("list") == 1

    simulate(scenario())


def test_pauses_are_short_again_after_a_watch_that_lasted() -> None:
    """What went wrong long ago does not make the next pause longer."""

    async def scenario() -> None:
        api = FakeApi()
        api.list_faults.extend([NoAnswerError("refused")] * 30)
        async with reflecting(api) as (_, __):
            await until(lambda: api.watches)
            await asyncio.sleep(10)
            cut = now()
            api.send(NoAnswerError("cut"))
            await until(lambda: api.watches == 0)
            await until(lambda: api.watches)
            assert now() - cut < 0.4

    simulate(scenario())


def test_api_away() -> None:
    """While the server does not answer it says since when and why; what was known stays; then all is well again."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            assert (reflector.away_since, reflector.trouble) == (None, "")
            api.watch_faults.extend([NoAnswerError("connection refused")] * 9)
            cut = now()
            api.send(NoAnswerError("connection reset"))
            await until(lambda: reflector.trouble)
            assert reflector.trouble == "/api/v1/things: connection reset"
            await until(lambda: "refused" in reflector.trouble)
            assert reflector.away_since == cut
            assert list(reflector.objects) == ["a"]
            await until(lambda: api.watches)
            assert reflector.trouble == ""
            assert vars(reflector)["away_since"] is None
            assert (len(follower.batches), api.count("list")) == (1, 1)

    simulate(scenario())


def test_not_there_at_the_start() -> None:
    """A server that is away at the start, or credentials that are wrong then, are waited for."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        api.list_faults.extend([NoAnswerError("refused"), ConfigError("no such file"), b"<html>", b"{}"])
        async with reflecting(api) as (reflector, _):
            await until(lambda: "no such file" in reflector.trouble)
            assert not reflector.synced
            await reflector.wait_synced()
            assert list(reflector.objects) == ["a"]

    simulate(scenario())


def test_not_allowed() -> None:
    """A 403 is told in words that lead to RBAC, and is tried again every half minute at most."""

    async def scenario() -> None:
        api = FakeApi()
        forbidden = ApiError(403, "Forbidden", 'things is forbidden: User "x" cannot list resource "things"')
        api.list_faults.extend([forbidden] * 1000)
        async with reflecting(api) as (reflector, _):
            await asyncio.sleep(HOUR)
            assert "not allowed to list and watch /api/v1/things (RBAC)" in reflector.trouble
            assert 'User "x" cannot list' in reflector.trouble
            pauses = [two.time - one.time for one, two in zip(api.requests, api.requests[1:], strict=False)]
            assert 10 < max(pauses) < 30.01
            api.list_faults.clear()
            began = now()
            await reflector.wait_synced()
            assert now() - began < 30

    simulate(scenario())


def test_credentials_not_accepted() -> None:
    """A 401 is told in words of its own."""

    async def scenario() -> None:
        api = FakeApi()
        api.list_faults.append(ApiError(401, "Unauthorized", "Unauthorized"))
        async with reflecting(api) as (reflector, _):
            await until(lambda: reflector.trouble)
            assert "does not accept our credentials" in reflector.trouble

    simulate(scenario())


@pytest.mark.parametrize(("asked", "waited"), [(7.0, 7.0), (99999.0, 120.0), (None, 0.1)])
def test_too_many_requests(asked: float | None, waited: float) -> None:
    """A server that has too much to do says when to come back, and is not asked before, within reason."""

    async def scenario() -> None:
        api = FakeApi()
        api.list_faults.append(ApiError(429, "TooManyRequests", "later", asked))
        async with reflecting(api) as (reflector, _):
            await reflector.wait_synced()
            pause = api.requests[1].time - api.requests[0].time
            assert waited <= pause < waited + 0.5

    simulate(scenario())


def test_what_is_not_served() -> None:
    """What the server does not serve is absent and empty, until it is there; when it vanishes, all of it is gone."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        api.served = False
        async with reflecting(api) as (reflector, follower):
            await reflector.wait_synced()
            assert (reflector.absent, dict(reflector.objects), reflector.trouble) == (True, {}, "")
            await asyncio.sleep(100)
            assert 10 <= len(api.requests) <= 12
            api.served = True
            await until(lambda: not reflector.absent)
            assert follower.words(0) == ["+a"]
            await until(lambda: api.watches)
            api.served = False
            api.send(None)
            await until(lambda: reflector.absent)
            assert follower.words(1) == ["-a"]
            assert (reflector.trouble, reflector.away_since) == ("", None)
            api.served = True
            asked = now()
            await reflector.relist()
            assert now() - asked < 1
            assert follower.words(2) == ["+a"]

    simulate(scenario())


def test_404_that_is_not_the_api_servers() -> None:
    """A load balancer that does not know where to turn is trouble, and not a sign that all objects are gone."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            page = ApiError(404, "", "<html><h1>404 Not Found</h1></html>")
            api.list_faults.extend([page] * 3)
            api.watch_faults.append(page)
            api.send(None)
            await until(lambda: "404" in reflector.trouble)
            assert reflector.away_since is not None
            await until(lambda: api.watches)
            assert api.count("list") == 5
            assert [follower.words(at) for at in range(len(follower.batches))] == [["+a"]]

    simulate(scenario())


def test_silent_watch() -> None:
    """A watch on which nothing comes for too long, not even a bookmark, is taken up from the last version."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api, settings=ReflectorSettings(stall=60)) as (reflector, _):
            await until(lambda: api.watches)
            for _ in range(4):
                await asyncio.sleep(50)
                api.bookmark()
            await asyncio.sleep(50)
            assert api.count("watch") == 1
            heard = now() - 50
            api.mute = True
            api.put("a", 1)
            api.watch_faults.append(NoAnswerError("no route"))
            await until(lambda: reflector.away_since)
            assert "nothing was heard for 60 s" in reflector.trouble
            assert reflector.away_since == pytest.approx(heard, abs=0.1)
            await until(lambda: "a" in reflector.objects)
            assert (api.count("list"), api.count("watch")) == (1, 3)

    simulate(scenario())


def test_event_without_end() -> None:
    """A line that never ends is not kept for ever: the connection is dropped, and a list tells what there is."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            api.mute = True
            api.put("a", 1)
            megabyte = b"x" * 2**20
            for _ in range(65):
                api.send(megabyte)
            await until(lambda: "a" in reflector.objects)
            assert (api.count("list"), reflector.faults) == (2, 1)

    simulate(scenario())


def test_changes_before_an_error_are_told() -> None:
    """What a chunk brings before an ERROR event or a line that cannot be read is told, and not twice."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (_, follower):
            await until(lambda: api.watches)
            metadata = {"name": "a", "uid": "u", "resourceVersion": "101"}
            line = json.dumps({"type": "ADDED", "object": {"metadata": metadata, "size": 1}}).encode()
            api.send(line + b"\n" + error_event(500))
            await until(lambda: follower.batches)
            assert follower.words(0) == ["+a"]
            await until(lambda: api.count("watch") == 2)
            assert api.requests[-1].params["resourceVersion"] == "101"

    simulate(scenario())


def test_object_that_cannot_be_read() -> None:
    """It keeps its last good state through events and lists, others are served, and it is logged once, and counted."""

    async def scenario() -> None:
        api = FakeApi()
        for name in "abc":
            api.put(name, 1)
        api.put("never", "garbage")
        with capture_logs() as logs:
            async with reflecting(api) as (reflector, follower):
                await until(lambda: api.watches)
                for _ in range(3):
                    api.put("a", "garbage")
                api.put("b", 2)
                await until(lambda: reflector.objects["b"].size == 2)
                await reflector.relist()
                assert reflector.objects["a"].size == 1
                assert sorted(reflector.objects) == ["a", "b", "c"]
                assert reflector.faults == 6
                api.put("a", 3)
                api.delete("never")
                await until(lambda: reflector.objects["a"].size == 3)
                assert [follower.words(at) for at in range(3)] == [["+a", "+b", "+c"], ["~b"], ["~a"]]
        warned = [(log["name"], log["kind"]) for log in logs if log["log_level"] == "warning"]
        assert warned == [("never", "ValidationError"), ("a", "ValidationError")]
        assert [log["faults"] for log in logs if "again" in log["event"]] == [{"ValidationError": 4}]

    simulate(scenario())


def test_another_object_that_cannot_be_read() -> None:
    """An unreadable object under a known name but with another uid means that the known one is gone."""

    async def scenario() -> None:
        api = FakeApi()
        for name in "ab":
            api.put(name, 1)
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            api.put("a", "garbage", uid="another")
            await until(lambda: "a" not in reflector.objects)
            api.mute = True
            api.put("b", "garbage", uid="another")
            await reflector.relist()
            assert dict(reflector.objects) == {}

    simulate(scenario())


@pytest.mark.parametrize(
    "garbage", [{}, [], None, 5, {"metadata": {"name": 5}}, {"metadata": {"name": "", "uid": "u"}}]
)
def test_object_without_a_name(garbage: object) -> None:
    """An object that may be anybody is taken for nobody, and a list with one takes nobody for gone."""

    async def scenario() -> None:
        api = FakeApi()
        for name in "ab":
            api.put(name, 1)
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            api.send(json.dumps({"type": "MODIFIED", "object": garbage}).encode() + b"\n")
            api.mute = True
            api.delete("a")
            cast("dict[str, object]", api.objects)["x"] = garbage
            await reflector.relist()
            assert sorted(reflector.objects) == ["a", "b"]
            del api.objects["x"]
            await reflector.relist()
            assert seen(reflector) == sizes(api)

    simulate(scenario())


def test_repeated_faults_are_logged_once() -> None:
    """Each kind of fault is logged when it begins, and with its number when things have gone well for a while."""

    async def scenario() -> None:
        api = FakeApi()
        api.list_faults.extend([NoAnswerError("refused")] * 50 + [ApiError(500, "", "etcd")] * 5)
        with capture_logs() as logs:
            async with reflecting(api) as (_, __):
                await until(lambda: api.watches)
                await asyncio.sleep(6)
        assert [(log["log_level"], log.get("kind")) for log in logs] == [
            ("warning", "NoAnswerError"),
            ("warning", "ApiError 500"),
            ("info", None),
        ]
        assert logs[-1]["faults"] == {"NoAnswerError": 50, "ApiError 500": 5}

    simulate(scenario())


def test_list_that_never_ends() -> None:
    """A server that gives the same page for ever is not asked for it for ever."""

    async def scenario() -> None:
        api = FakeApi()
        page = b'{"metadata":{"resourceVersion":"5","continue":"c"},"items":[]}'
        api.list_faults.extend([page] * 2)
        async with reflecting(api) as (reflector, _):
            await until(lambda: reflector.trouble)
            assert "again and again" in reflector.trouble
            await reflector.wait_synced()

    simulate(scenario())


def test_a_version_that_the_server_fails_at() -> None:
    """A server that fails at a version every time, as one restored from a backup does, is asked for a list at last."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        api.watch_faults.extend([ApiError(504, "Timeout", "Too large resource version")] * 2)
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            assert api.count("list") == 1
            api.watch_faults.extend([ApiError(504, "Timeout", "Too large resource version")] * 3)
            api.send(None)
            await until(lambda: api.count("list") == 2)
            await until(lambda: api.watches)
            assert reflector.trouble == ""

    simulate(scenario())


@pytest.mark.parametrize("absence", Absence)
def test_a_stray_404(absence: Absence) -> None:
    """P2, A7, N8: one 404 takes nothing for gone; a collection that may go is believed to if told so repeatedly."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        async with reflecting(api, settings=ReflectorSettings(absence=absence)) as (reflector, _):
            await until(lambda: api.watches)
            api.list_faults.append(ApiError(404, "", "404 page not found"))
            api.watch_faults.append(gone())
            api.send(None)
            await until(lambda: api.count("list") == 3)
            assert list(reflector.objects) == ["a"]
            assert not reflector.absent
            await until(lambda: api.watches)
            api.served = False
            api.compact()
            api.watch_faults.append(gone())
            api.send(None)
            await asyncio.sleep(600)
            assert reflector.absent == (absence is Absence.REPEATED)
            assert list(reflector.objects) == ([] if absence is Absence.REPEATED else ["a"])
            assert bool(reflector.trouble) == (absence is not Absence.REPEATED)

    simulate(scenario())
