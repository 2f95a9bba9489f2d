"""Pages of lists that are too large for a reply are asked for again with half the limit."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from cidrella.kube import paging, transport
from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import ReplyTooLargeError
from cidrella.kube.listing import PAGE, list_all
from cidrella.kube.reflector import Reflector, ReflectorSettings
from cidrella.kube.wire import read_head
from tests.kube.fakeapi import PATH, FakeApi, Thing, decode
from tests.kube.following import reflecting, seen, sizes, until
from tests.kube.serving import serving
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

OBJECT = 100
"""Bytes of an object, at most."""


def filled(count: int) -> FakeApi:
    """A collection of so many objects."""
    api = FakeApi()
    for number in range(count):
        api.put(f"thing-{number:04}")
    return api


class TestReflector:
    """Lists that are followed by watches."""

    def test_half_the_limit(self) -> None:
        """A page is asked for again, with the same token, and later lists begin with what was found."""

        async def scenario() -> None:
            api = filled(20)
            api.page_max = 6 * OBJECT
            async with reflecting(api, settings=ReflectorSettings(page=16)) as (reflector, _):
                await until(lambda: reflector.synced)
                assert seen(reflector) == sizes(api)
                assert api.limits == [16, 8, 4, 4, 4, 4, 4]
                assert reflector.faults == 0
                api.requests.clear()
                await reflector.relist()
                assert api.limits == [4] * 5

        simulate(scenario())

    def test_in_the_middle_of_a_list(self) -> None:
        """The list goes on where it was, of the same version."""

        async def scenario() -> None:
            api = filled(12)
            for number in range(8, 12):
                api.objects[f"thing-{number:04}"]["padding"] = "x" * 1000
            api.page_max = 3000
            async with reflecting(api, settings=ReflectorSettings(page=4)) as (reflector, _):
                await until(lambda: reflector.synced)
                assert seen(reflector) == sizes(api)
                assert api.limits == [4, 4, 4, 2, 2]
                assert api.tokens == [None, "112/4", "112/8", "112/8", "112/10"]

        simulate(scenario())

    def test_a_single_object(self) -> None:
        """One object that is too large alone is an error that says so, and no endless loop; it may become smaller."""

        async def scenario() -> None:
            api = filled(3)
            api.page_max = 10
            async with reflecting(api, settings=ReflectorSettings(page=5)) as (reflector, _):
                await until(lambda: reflector.trouble)
                assert api.limits == [5, 2, 1]
                assert "a page with a single object is too large: the reply has more than 10 bytes" in reflector.trouble
                assert not reflector.synced
                api.page_max = 10_000
                await until(lambda: reflector.synced)
                assert api.limits[3:] == [1, 1, 1, 1][: len(api.limits) - 3]
                assert seen(reflector) == sizes(api)

        simulate(scenario())

    def test_the_full_limit_is_tried_again(self) -> None:
        """After a while: the objects may be smaller by then."""

        async def scenario() -> None:
            api = filled(8)
            api.page_max = 4 * OBJECT
            async with reflecting(api, settings=ReflectorSettings(page=8)) as (reflector, _):
                await until(lambda: reflector.synced)
                api.page_max = 10_000
                await asyncio.sleep(paging.KEPT / 2)
                api.requests.clear()
                await reflector.relist()
                assert set(api.limits) == {2}
                await asyncio.sleep(paging.KEPT / 2 + 1)
                api.requests.clear()
                await reflector.relist()
                assert api.limits == [8]

        simulate(scenario())


class Collection:
    """Objects of a size each, served in pages as an API server does."""

    def __init__(self, objects: Sequence[int]) -> None:
        self.objects = [
            {"metadata": {"name": f"thing-{number}", "uid": str(number)}, "padding": "x" * size}
            for number, size in enumerate(objects)
        ]
        self.asked: list[tuple[int, int]] = []
        """Where each page began, and its limit."""

    async def answer(self, request: web.Request) -> web.Response:
        begin, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
        self.asked.append((begin, limit))
        end = begin + limit
        metadata = {"resourceVersion": "7", "continue": str(end) if end < len(self.objects) else ""}
        body = {"kind": "ThingList", "metadata": metadata, "items": self.objects[begin:end]}
        return web.Response(body=json.dumps(body).encode(), content_type="application/json")


class TestOverHttp:
    """With real replies."""

    @pytest.fixture(autouse=True)
    def _small_replies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(transport, "BODY_MAX", 100_000)

    def test_list_all(self, run: Any) -> None:
        """All objects come, in order, in smaller pages from the first that was too large on."""
        collection = Collection([10] * PAGE + [1_000] * PAGE)

        async def scenario() -> None:
            async with serving(collection.answer) as url, Client(Access(url)) as client:
                found = [read_head(each).name for each in await list_all(client, PATH)]
                assert found == [f"thing-{number}" for number in range(2 * PAGE)]
                assert collection.asked[:5] == [(0, 500), (500, 500), (500, 250), (500, 125), (500, 62)]
                assert {limit for _, limit in collection.asked[4:]} == {62}

        run(scenario())

    def test_list_all_with_a_single_object_too_large(self, run: Any) -> None:
        """The error names the request and the limit of bytes."""
        collection = Collection([10, 200_000])

        async def scenario() -> None:
            async with serving(collection.answer) as url, Client(Access(url)) as client:
                with pytest.raises(ReplyTooLargeError, match=r"single object .*limit=1&.* more than 100000 bytes"):
                    await list_all(client, PATH)
                assert [limit for _, limit in collection.asked] == [500, 250, 125, 62, 31, 15, 7, 3, 1, 1]

        run(scenario())

    def test_reflector(self, run: Any) -> None:
        """The same for those who watch."""
        collection = Collection([1_000] * 300)
        changes: list[Any] = []

        async def scenario() -> None:
            async with serving(collection.answer) as url, Client(Access(url)) as client:
                reflector: Reflector[Thing] = Reflector(client, PATH, decode, changes.extend)
                task = asyncio.create_task(reflector.run())
                async with asyncio.timeout(50):
                    await reflector.wait_synced()
                task.cancel()
                await asyncio.wait([task])
                assert len(reflector.objects) == len(changes) == 300
                assert collection.asked[:3] == [(0, 250), (0, 125), (0, 62)]

        run(scenario())


def test_the_error_leaves_a_write_in_doubt() -> None:
    """A reply that is too large may be one to a write that took effect."""
    assert ReplyTooLargeError("").unsettled
