"""The client behind a proxy that does what networks and load balancers do: each fault is the right error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from cidrella.kube.client import Client
from cidrella.kube.credentials import Access
from cidrella.kube.errors import ApiError, KubeError, MalformedReplyError, NoAnswerError
from tests.kube.serving import serving
from tests.testenv import faults
from tests.testenv.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.testenv.faults import Fault

EVENTS = b'{"type":"ADDED"}\n' * 3
HALF = faults.answer(200, '{"kind": "No')
SHORT = 0.5
"""Seconds for what never comes."""


async def answer(request: web.Request) -> web.Response:
    """A watch of three events, an object for everything else."""
    if "watch" in request.query:
        return web.Response(body=EVENTS, content_type="application/json")
    return web.json_response({"kind": "Node"})


def through(fault: Fault, use: Callable[[Client], Awaitable[None]], timeout: float = 30.0) -> None:
    """Let `use` use a client on whose way every request meets the fault."""

    async def scenario() -> None:
        async with serving(answer) as url:
            proxy = FaultProxy(url)
            await asyncio.to_thread(proxy.start)
            try:
                proxy.add(fault)
                async with Client(Access(proxy.url), timeout=timeout) as client:
                    await use(client)
            finally:
                await asyncio.to_thread(proxy.stop)

    asyncio.run(scenario())


FAULTS: list[tuple[Fault, type[KubeError], str, bool, float]] = [
    (faults.cut(), NoAnswerError, "connection lost", True, 30.0),
    (faults.reset(), NoAnswerError, "connection lost", True, 30.0),
    (faults.stall(), NoAnswerError, "no answer in time", True, SHORT),
    (faults.delay(300), NoAnswerError, "no answer in time", True, SHORT),
    (faults.delay_reply(300), NoAnswerError, "no answer in time", True, SHORT),
    (faults.stall_watch(5), NoAnswerError, "no answer in time", True, SHORT),
    (faults.cut_reply(5), NoAnswerError, "connection lost", True, 30.0),
    (faults.cut_reply(5, reset=True), NoAnswerError, "connection lost", True, 30.0),
    (faults.swallow(), NoAnswerError, "connection lost", True, 30.0),
    (faults.swallow(reset=True), NoAnswerError, "connection lost", True, 30.0),
    (faults.html(502), ApiError, "^502: <html>", True, 30.0),
    (faults.html(403), ApiError, "^403: <html>", True, 30.0),
    (faults.answer_then_forward(faults.html(408), 0.1), ApiError, "^408: <html>", True, 30.0),
    (faults.refused(403, "Forbidden", "not you"), ApiError, "^403 Forbidden: not you$", False, 30.0),
    (faults.html(200), MalformedReplyError, "not JSON but text/html", True, 30.0),
    (faults.server_error(), ApiError, "^500 InternalError: .*etcdserver", True, 30.0),
    (faults.too_many_requests(4), ApiError, "^429: Too many requests, please try again later.$", True, 30.0),
    (faults.too_many_requests_status(4), ApiError, "^429 TooManyRequests: ", True, 30.0),
    (faults.gone(), ApiError, "^410 Expired: ", False, 30.0),
    (HALF, MalformedReplyError, "not a dict", True, 30.0),
]


@pytest.mark.parametrize(("fault", "kind", "message", "unsettled", "timeout"), FAULTS)
def test_write_that_meets_a_fault(
    fault: Fault, kind: type[KubeError], message: str, unsettled: bool, timeout: float
) -> None:
    """N9: after each fault it is known whether the write may have taken effect, or may yet."""

    async def use(client: Client) -> None:
        with pytest.raises(kind, match=message) as raised:
            await client.patch("/api/v1/nodes/n", {}, dict)
        assert raised.value.unsettled is unsettled
        if isinstance(raised.value, ApiError) and raised.value.code == 429:
            assert raised.value.retry_after == 4.0

    through(fault, use, timeout)


async def drain(client: Client, got: bytearray) -> None:
    """Watch to the end."""
    async with client.watch("/api/v1/nodes", {}) as chunks:
        async for chunk in chunks:
            got += chunk


@pytest.mark.parametrize("fault", [faults.cut_reply(mid_line=True, after_lines=1), faults.cut_reply(20, reset=True)])
def test_watch_that_is_cut(fault: Fault) -> None:
    """A watch that is cut is no answer, after what had come in until then."""

    async def use(client: Client) -> None:
        got = bytearray()
        with pytest.raises(NoAnswerError, match="connection lost"):
            await drain(client, got)
        assert EVENTS.startswith(bytes(got))

    through(fault, use)


def test_watch_that_stalls() -> None:
    """A watch that has begun and falls silent is for its reader to give up on, whatever a request's time is."""

    async def use(client: Client) -> None:
        got = bytearray()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(drain(client, got), 3 * SHORT)
        assert got == EVENTS[:5]

    through(faults.stall_watch(5), use, SHORT)


@pytest.mark.parametrize(
    ("fault", "kind", "message", "unsettled", "timeout"),
    [each for each in FAULTS if each[0] not in {faults.stall_watch(5), HALF}],
)
def test_watch_that_meets_a_fault(
    fault: Fault, kind: type[KubeError], message: str, unsettled: bool, timeout: float
) -> None:
    """A watch meets the same faults as errors of the same kind."""

    async def use(client: Client) -> None:
        with pytest.raises(kind, match=message) as raised:
            await drain(client, bytearray())
        assert raised.value.unsettled is unsettled

    through(fault, use, timeout)
