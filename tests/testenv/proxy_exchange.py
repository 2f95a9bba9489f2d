"""A client's connection, and the connection to the API server that mirrors it: requests there, replies back, faults.

- One connection of a client has at most one to the API server, made for the first request that needs it. Each ends with
  the other: also while idle, so that a client learns of an API server that went away as it would without the proxy.
- Bodies are carried piece by piece in both directions at once. Only a request that waits for its fault (`delay`,
  `hold`, `swallow`) is read to its end before it goes on.
- What is to be forwarded after the proxy has answered goes out on a connection of its own, also when the client has
  gone by then. Only stopping the proxy keeps it from that.
- A client that gives up in the middle takes the connection to the API server with it, so that its watch ends there.
- Heads go through as they are. Only an offer to switch protocols (`Upgrade`) is dropped: the proxy speaks nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, TypeVar

import h11

from tests.testenv.faults import (
    Answer,
    AnswerThenForward,
    Cut,
    CutReply,
    Delay,
    DelayReply,
    Fault,
    Flood,
    Hold,
    Stall,
    StallWatch,
    Swallow,
)
from tests.testenv.proxy_allowance import allowance_of
from tests.testenv.proxy_log import End, Log
from tests.testenv.proxy_wire import LostError, Peer, Wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tests.testenv.fault_script import Script

T = TypeVar("T")

BODILESS: Final = (204, 304)
"""Statuses of replies that never have a body."""
FLOOD_PIECE: Final = b" " * (1 << 18)
"""What `flood` sends again and again: blanks, with which JSON may begin."""
_LOOK: Final = 0.02
"""Seconds between two looks at whether a request is let go."""


async def unless_lost(work: Coroutine[None, None, T], until_lost: Coroutine[None, None, None], peer: Peer) -> T:
    """Return what `work` returns. If the other returns before, the peer is lost; whatever still runs is cancelled."""
    tasks = working, losing = asyncio.ensure_future(work), asyncio.ensure_future(until_lost)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            losing.result()  # raises what is no loss but a mistake of ours
            raise LostError(peer)
        return working.result()
    finally:
        working.cancel()
        losing.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Conversation:
    """A client's connection from the handshake to the end."""

    def __init__(
        self, number: int, client: Wire, connect: Callable[[], Awaitable[Wire]], script: Script, log: Log
    ) -> None:
        self._number = number
        self._client = client
        self._connect = connect
        self._upstream: Wire | None = None
        self._script = script
        self._log = log
        self._late = asyncio.TaskGroup()
        """Requests that are forwarded after they were answered."""

    async def run(self) -> None:
        """Serve the client until either side ends it. Leaves no connection open, also when cancelled."""
        async with self._late:
            await self._converse()

    async def _converse(self) -> None:
        try:
            with contextlib.suppress(LostError):  # a client that does not like our certificate says so itself
                await self._client.handshake()
                await self._serve()
        finally:
            ends = [wire.stream for wire in (self._client, self._upstream) if wire]
            for stream in ends:
                stream.abort()  # both before waiting, which may be cancelled
            for stream in ends:
                await stream.closed()

    async def _serve(self) -> None:
        while request := await self._next_request():
            if await self._exchange(request) is not End.COMPLETE:
                return
            if self._upstream and not self._upstream.next_cycle():
                await self._leave_upstream()
            if not self._client.next_cycle():
                break
        await self._client.stream.close()

    async def _next_request(self) -> h11.Request | None:
        """Return the next request; None when either side has gone, or when it is no request."""
        try:
            if self._upstream:
                event = await unless_lost(self._client.receive(), self._upstream.gone(), Peer.UPSTREAM)
            else:
                event = await self._client.receive()
        except LostError as lost:
            if isinstance(lost.__cause__, h11.RemoteProtocolError):
                with contextlib.suppress(LostError):
                    await self._refuse(lost.__cause__)
            return None
        return event if isinstance(event, h11.Request) else None

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        """Tell a client that its request is not HTTP."""
        body = f"the fault proxy cannot read this request: {error}\n".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body))), ("Connection", "close")]
        head = h11.Response(status_code=error.error_status_hint, headers=headers)
        await self._client.send(head, h11.Data(data=body), h11.EndOfMessage())

    async def _exchange(self, request: h11.Request) -> End:
        """Answer a request and log it."""
        method, path = request.method.decode(), request.target.decode()
        rule = self._script.decide(method, path)
        place = self._log.arrived(self._number, method, path, rule)
        end = End.STOPPED
        try:
            end = await self._answer(request, rule.fault if rule else None, place)
        except LostError as lost:
            end = End.CLIENT_GONE if lost.peer is Peer.CLIENT else End.UPSTREAM_LOST
        finally:
            self._log.ended(place, end)
        return end

    async def _answer(self, request: h11.Request, fault: Fault | None, place: int) -> End:
        """Act out a fault, or none."""
        match fault:
            case Cut(reset):
                if not self._client.http.they_are_waiting_for_100_continue:
                    await self._read_body()  # bytes left unread would turn any close into a reset
                return self._drop_client(reset=reset)
            case Stall():
                await self._client.gone()
                raise LostError(Peer.CLIENT)
            case Answer() | AnswerThenForward() | Flood():
                return await self._reply(request, fault, place)
            case Delay(seconds, even_if_gone):
                body = await self._read_body()
                waiting = asyncio.sleep(seconds)
                await (waiting if even_if_gone else self._while_client_stays(waiting))
                replying = self._pass_on(request, body, fault, place)
                return await (replying if even_if_gone else self._while_client_stays(replying))
            case Hold(let_go):
                body = await self._read_body()
                while not let_go.is_set():
                    await asyncio.sleep(_LOOK)
                return await self._pass_on(request, body, fault, place)
            case Swallow():
                return await self._pass_on(request, await self._read_body(), fault, place)
            case _:
                return await self._stream_on(request, fault, place)

    async def _reply(self, request: h11.Request, fault: Answer | AnswerThenForward | Flood, place: int) -> End:
        """Answer in place of the API server; perhaps let it have the request later."""
        body = await self._read_body()
        match fault:
            case Flood():
                return await self._flood(fault)
            case AnswerThenForward(own, seconds):
                self._late.create_task(self._forward_late(request, body, seconds, place))
                return await self._send_own(request, own)
            case own:
                return await self._send_own(request, own)

    async def _send_own(self, request: h11.Request, own: Answer) -> End:
        """Answer in place of the API server."""
        head = h11.Response(status_code=own.status, headers=list(own.headers), reason=b"")
        has_body = own.body and request.method != b"HEAD" and own.status not in BODILESS
        await self._client.send(head, *[h11.Data(data=own.body)] * bool(has_body), h11.EndOfMessage())
        return End.COMPLETE

    async def _forward_late(self, request: h11.Request, body: list[h11.Event], seconds: float, place: int) -> None:
        """Send a request that was answered, and note the API server's status. An API server that is away gets none."""
        await asyncio.sleep(seconds)
        with contextlib.suppress(LostError):
            upstream = await self._connect()
            try:
                await upstream.send(_head(request), *body)
                while not isinstance(event := await upstream.receive(), h11.EndOfMessage):
                    if isinstance(event, h11.Response):
                        self._log.replied(place, event.status_code)
            finally:
                upstream.stream.abort()
                await upstream.stream.closed()

    async def _flood(self, fault: Flood) -> End:
        """Answer with the beginning of a reply, however long that is."""
        headers = [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")]
        await self._client.send(h11.Response(status_code=200, headers=headers))
        for begin in range(0, fault.size, len(FLOOD_PIECE)):
            await self._client.send(h11.Data(data=FLOOD_PIECE[: fault.size - begin]))
        if fault.stall:
            await self._client.gone()
            raise LostError(Peer.CLIENT)
        return self._drop_client(reset=False)

    async def _pass_on(self, request: h11.Request, body: list[h11.Event], fault: Fault, place: int) -> End:
        """Send a request whose body is there already, and carry the reply back."""
        upstream = await self._send_head(request)
        await upstream.send(*body)
        return await self._carry_reply(upstream, fault, place)

    async def _stream_on(self, request: h11.Request, fault: Fault | None, place: int) -> End:
        """Send a request as its body comes, and carry the reply back at the same time."""
        upstream = await self._while_client_stays(self._send_head(request))
        end = await unless_lost(
            self._carry_reply(upstream, fault, place), self._carry_request_until_gone(upstream), Peer.CLIENT
        )
        # A reply can come before the last event of its request, which has no bytes, was handed on. Neither connection
        # could be used again without it. An API server that is lost by now has given its reply.
        with contextlib.suppress(LostError):
            while event := self._client.pending():
                await upstream.send(event)
        return end

    async def _send_head(self, request: h11.Request) -> Wire:
        """Connect to the API server if that is still to do, and send the request's head."""
        if not self._upstream:
            self._upstream = await self._connect()
        await self._upstream.send(_head(request))
        return self._upstream

    async def _carry_request_until_gone(self, upstream: Wire) -> None:
        """Send the request's body as it comes, and return when the client has gone."""
        event: h11.Event | None = None
        try:
            while not isinstance(event, h11.EndOfMessage):
                event = await self._client.receive()
                await upstream.send(event)
        except LostError as lost:
            if lost.peer is Peer.CLIENT:
                return
            # The API server wants no more of it, perhaps because it has replied already. That is for the reply to show.
        await self._client.gone()

    async def _carry_reply(self, upstream: Wire, fault: Fault | None, place: int) -> End:
        """Send the API server's reply to the client as it comes, as far as the fault lets it."""
        head = await self._receive_head(upstream)
        self._log.replied(place, head.status_code)
        match fault:
            case Swallow(reset):
                while not isinstance(await upstream.receive(), h11.EndOfMessage):
                    pass
                return self._drop_client(reset=reset)
            case DelayReply(seconds):
                await asyncio.sleep(seconds)
        await self._client.send(head)
        if not await self._carry_reply_body(upstream, fault):
            return await self._break_off(fault)
        return End.COMPLETE

    async def _receive_head(self, upstream: Wire) -> h11.Response:
        """Return the head of the reply. What comes before it, such as 100 Continue, goes to the client."""
        while not isinstance(event := await upstream.receive(), h11.Response):
            assert isinstance(event, h11.InformationalResponse)
            if event.status_code != 100 or self._client.http.they_are_waiting_for_100_continue:
                await self._client.send(event)
        return event

    async def _carry_reply_body(self, upstream: Wire, fault: Fault | None) -> bool:
        """Send the reply's body to the client as it comes. Return False where a fault stops it."""
        allowance = allowance_of(fault)
        while not (allowance and allowance.spent):
            event = await upstream.receive()
            if not allowance:
                await self._client.send(event)
                if isinstance(event, h11.EndOfMessage):
                    return True
            elif isinstance(event, h11.Data):
                await self._client.send(h11.Data(data=allowance.take(event.data)))
            else:
                await self._client.send(h11.Data(data=allowance.finish()))
                break
        return False

    async def _break_off(self, fault: Fault | None) -> End:
        """Do what comes in place of the rest of the reply."""
        match fault:
            case CutReply(reset=reset):
                return self._drop_client(reset=reset)
            case _:
                assert isinstance(fault, StallWatch)
                never: asyncio.Future[End] = asyncio.get_running_loop().create_future()
                return await never  # until the client has gone, and this is cancelled

    async def _read_body(self) -> list[h11.Event]:
        """Read the request to its end. A client that waits to be asked for the body is asked."""
        if self._client.http.they_are_waiting_for_100_continue:
            await self._client.send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
        body = [await self._client.receive()]
        while not isinstance(body[-1], h11.EndOfMessage):
            body.append(await self._client.receive())
        return body

    async def _while_client_stays(self, work: Coroutine[None, None, T]) -> T:
        return await unless_lost(work, self._client.gone(), Peer.CLIENT)

    def _drop_client(self, *, reset: bool) -> End:
        if reset:
            self._client.stream.reset()
        else:
            self._client.stream.abort()
        return End.FAULT

    async def _leave_upstream(self) -> None:
        if self._upstream:
            self._upstream.stream.abort()
            await self._upstream.stream.closed()
            self._upstream = None


def _head(request: h11.Request) -> h11.Request:
    """Return the head as it goes to the API server."""
    headers = [(name, value) for name, value in request.headers.raw_items() if name.lower() != b"upgrade"]
    return h11.Request(method=request.method, target=request.target, headers=headers)
