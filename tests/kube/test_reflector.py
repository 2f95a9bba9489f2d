"""The reflector and what there is: lists, watches, differences, and who asks for a list."""

from __future__ import annotations

import asyncio
import json

import pytest

from cidrella.kube.errors import NoAnswerError
from cidrella.kube.reflector import Change, Reflector, ReflectorSettings
from tests.kube.fakeapi import PATH, FakeApi, Thing, decode, error_event, gone
from tests.kube.following import reflecting, seen, sizes, until
from tests.kube.simulated import simulate


def test_first_list_is_told_at_once() -> None:
    """The first list comes in pages and is told in one call, within which everything is in place already."""

    async def scenario() -> None:
        api = FakeApi()
        for number in range(1234):
            api.put(f"n{number}", number)
        at_call: list[tuple[int, int, bool]] = []

        def on_changes(changes: list[Change[Thing]]) -> None:
            at_call.append((len(changes), len(reflector.objects), reflector.synced))

        reflector = Reflector(api.client, PATH, decode, on_changes)
        task = asyncio.create_task(reflector.run())
        await reflector.wait_synced()
        assert at_call == [(1234, 1234, True)]
        assert seen(reflector) == sizes(api)
        assert api.tokens == [None, *(f"1334/{done}" for done in (250, 500, 750, 1000))]
        task.cancel()

    simulate(scenario())


def test_empty_list_tells_nothing() -> None:
    """Nothing there is no change, but it is known to be nothing."""

    async def scenario() -> None:
        async with reflecting(FakeApi()) as (reflector, follower):
            await reflector.wait_synced()
            assert follower.batches == []

    simulate(scenario())


def test_watch_goes_on_from_the_list() -> None:
    """What is added, modified and deleted later is told as such, and a bookmark moves the version only."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            assert api.requests[-1].params["resourceVersion"] == "101"
            api.put("b", 1)
            await until(lambda: "b" in reflector.objects)
            api.put("b", 2)
            await until(lambda: reflector.objects["b"].size == 2)
            api.delete("a")
            await until(lambda: "a" not in reflector.objects)
            assert [follower.words(at) for at in range(4)] == [["+a"], ["+b"], ["~b"], ["-a"]]
            api.bookmark()
            await asyncio.sleep(50)
            api.send(None)
            await until(lambda: api.count("watch") == 2)
            assert api.requests[-1].params["resourceVersion"] == str(api.version)
            assert api.count("list") == 1
            assert len(follower.batches) == 4

    simulate(scenario())


def test_orderly_end_is_no_trouble() -> None:
    """A watch that the server ends when its time is up is taken up again at once."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            await asyncio.sleep(50)
            ended = asyncio.get_running_loop().time()
            api.send(None)
            await until(lambda: api.count("watch") == 2)
            assert api.requests[-1].time == ended
            assert (reflector.trouble, reflector.faults) == ("", 0)

    simulate(scenario())


def test_one_call_for_each_chunk() -> None:
    """What comes in one chunk is told in one call."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            chunk = [
                json.dumps({"type": "ADDED", "object": {"metadata": {"name": name, "uid": "u"}}}) for name in "abc"
            ]
            api.send("\n".join(chunk).encode())
            await until(lambda: "b" in reflector.objects)
            api.send(b"\n")
            await until(lambda: "c" in reflector.objects)
            assert [len(batch) for batch in follower.batches] == [2, 1]

    simulate(scenario())


def event(kind: str, name: str, uid: str, size: int = 0, version: str = "500") -> bytes:
    metadata = {"name": name, "uid": uid, "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata, "size": size}}).encode() + b"\n"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([("DELETED", "x", "u9")], []),
        ([("MODIFIED", "x", "u9", 1)], ["+x"]),
        ([("ADDED", "a", "u1", 5)], ["~a"]),
        ([("ADDED", "a", "u1", 1)], []),
        ([("MODIFIED", "a", "u2", 1)], ["-a", "+a"]),
        ([("ADDED", "a", "u2", 1)], ["-a", "+a"]),
        ([("ADDED", "a", "u2", 1), ("DELETED", "a", "u1")], ["-a", "+a"]),
        ([("DELETED", "a", "u1"), ("ADDED", "a", "u2")], ["-a", "+a"]),
        ([("DELETED", "a", "u1"), ("DELETED", "a", "u1")], ["-a"]),
    ],
)
def test_events_are_taken_by_what_is_known(events: list[tuple[str, str, str]], words: list[str]) -> None:
    """An event means what it says of the object of that name and uid, whatever its type calls it."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1, uid="u1")
        async with reflecting(api) as (_, follower):
            await until(lambda: api.watches)
            api.send(b"".join(event(*each) for each in events))
            await asyncio.sleep(1)
            told = [word for at in range(1, len(follower.batches)) for word in follower.words(at)]
            assert told == words

    simulate(scenario())


def test_deletions_in_the_gap_are_seen() -> None:
    """Pitfall 26: after a 410, the new list is told as the difference: what was deleted meanwhile is gone, first."""

    async def scenario() -> None:
        api = FakeApi()
        for name in "abcde":
            api.put(name, 1)
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            api.list_faults.extend([NoAnswerError("no route")] * 3)
            api.send(error_event(410))
            await until(lambda: not api.watches)
            api.delete("a")
            api.delete("b")
            api.put("b", 1)
            api.put("c", 2)
            api.put("f", 1)
            api.compact()
            await until(lambda: "f" in reflector.objects)
            assert follower.words(1) == ["-a", "-b", "~c", "+b", "+f"]
            assert len(follower.batches) == 2
            assert seen(reflector) == sizes(api)

    simulate(scenario())


def test_410_as_a_status() -> None:
    """A watch that is refused with 410 instead of an ERROR event means a new list just the same."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        api.watch_faults.append(gone())
        async with reflecting(api) as (reflector, _):
            await until(lambda: reflector.trouble)
            assert reflector.away_since is None
            await until(lambda: api.watches)
            assert (api.count("list"), api.count("watch")) == (2, 2)
            assert reflector.trouble == ""

    simulate(scenario())


def test_token_that_has_expired_starts_the_list_over() -> None:
    """A 410 in the middle of a list means that the list begins anew, and what was read before does not count."""

    async def scenario() -> None:
        api = FakeApi()
        for number in range(7):
            api.put(f"n{number}", number)

        def once(start: int) -> None:
            if start == 3:
                api.before_page = lambda _: None
                api.delete("n0")
                api.compact()

        api.before_page = once
        async with reflecting(api, settings=ReflectorSettings(page=3)) as (reflector, follower):
            await reflector.wait_synced()
            assert sorted(reflector.objects) == ["n1", "n2", "n3", "n4", "n5", "n6"]
            assert len(follower.batches) == 1
            assert api.tokens == [None, "107/3", None, "108/3"]

    simulate(scenario())


def test_relist() -> None:
    """Who asks for a list gets one from then on, shared with others who ask; the watch goes on from there."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)
        async with reflecting(api) as (reflector, follower):
            await until(lambda: api.watches)
            api.mute = True
            api.put("b", 1)
            began = asyncio.get_running_loop().time()
            await asyncio.gather(*(reflector.relist() for _ in range(5)))
            assert asyncio.get_running_loop().time() - began < 0.1
            assert api.count("list") == 2
            assert follower.words(1) == ["+b"]
            await until(lambda: api.watches)
            assert api.requests[-1].params["resourceVersion"] == str(api.version)

    simulate(scenario())


def test_version_of_a_list_is_that_of_its_first_page() -> None:
    """Should later pages be of a later version, nothing that happened in between is missed."""

    async def scenario() -> None:
        api = FakeApi()
        api.list_faults.append(b'{"metadata":{"resourceVersion":"50","continue":"100/0"},"items":[]}')
        async with reflecting(api):
            await until(lambda: api.watches)
            assert api.requests[-1].params["resourceVersion"] == "50"

    simulate(scenario())


def test_relist_just_as_something_comes() -> None:
    """A chunk that comes in the moment when somebody asks for a list does not make their wish forgotten."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            asked = asyncio.create_task(reflector.relist())
            api.put("a", 1)
            async with asyncio.timeout(1):
                await asked
            assert api.count("list") == 2

    simulate(scenario())


def test_relist_while_a_list_is_under_way() -> None:
    """A list that had begun before somebody asked does not count: it may be of before."""

    async def scenario() -> None:
        api = FakeApi()
        for number in range(5):
            api.put(f"n{number}", number)
        asked: list[asyncio.Task[None]] = []

        def ask(start: int) -> None:
            if start == 2 and not asked:
                asked.append(asyncio.create_task(reflector.relist()))

        api.before_page = ask
        async with reflecting(api, settings=ReflectorSettings(page=2)) as (reflector, _):
            await reflector.wait_synced()
            assert not asked[0].done()
            await asked[0]
            assert api.tokens == [None, "105/2", "105/4"] * 2

    simulate(scenario())


def test_relist_while_the_api_is_away() -> None:
    """Who asks for a list while the API is away waits until it is back, and makes no more requests than otherwise."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            api.list_faults.extend([NoAnswerError("no route")] * 20)
            for _ in range(5):
                await asyncio.sleep(0.5)
                asyncio.create_task(reflector.relist())  # noqa: RUF006 - awaited below, in effect
            await reflector.relist()
            assert reflector.away_since is None
            assert api.count("list") == 1 + 20 + 1

    simulate(scenario())


def test_who_gave_up_on_a_list() -> None:
    """Somebody who asked for a list and was cancelled disturbs nobody."""

    async def scenario() -> None:
        api = FakeApi()
        async with reflecting(api) as (reflector, _):
            await until(lambda: api.watches)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await reflector.relist()
            await reflector.relist()
            api.put("a", 1)
            await until(lambda: "a" in reflector.objects)

    simulate(scenario())


def test_what_on_changes_raises_ends_it() -> None:
    """A fault in whoever is told is not survived in silence: nobody could tell any more what they know."""

    async def scenario() -> None:
        api = FakeApi()
        api.put("a", 1)

        def on_changes(_: list[Change[Thing]]) -> None:
            raise LookupError("a bug")

        reflector = Reflector(api.client, PATH, decode, on_changes)
        with pytest.raises(LookupError, match="a bug"):
            await reflector.run()

    simulate(scenario())
