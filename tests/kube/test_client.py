"""The client on the wire: what it sends, what it makes of replies, and that it never repeats a request by itself."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from aiohttp import web

from cidrella import __version__
from cidrella.kube import transport
from cidrella.kube.client import METADATA_ONLY, STRATEGIC_PATCH, Client
from cidrella.kube.credentials import Access, Header, Proof
from cidrella.kube.errors import ApiError, ConfigError, KubeError, MalformedReplyError, NoAnswerError
from tests.kube.serving import serving
from tests.testenv.ports import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class Thing(msgspec.Struct):
    """Something small."""

    name: str


STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Conflict",
    "message": "no",
    "code": 409,
}


def run(answer: web.Response | Callable[[web.Request], Awaitable[web.StreamResponse]], use: Any, **options: Any) -> Any:
    """Let `use` use a client of a server that answers so, always; what it returns."""

    async def same(_: web.Request) -> web.StreamResponse:
        assert isinstance(answer, web.Response)
        return web.Response(status=answer.status, body=answer.body, headers=dict(answer.headers), content_type=None)

    async def scenario() -> Any:
        async with serving(same if isinstance(answer, web.Response) else answer) as url:
            access = Access(url, identity=options.pop("identity", Header()))
            async with Client(access, **options) as client:
                return await use(client)

    return asyncio.run(scenario())


def error_of(answer: web.Response, **options: Any) -> KubeError:
    """The error that a GET raises."""

    async def use(client: Client) -> None:
        await client.get("/x", Thing)

    with pytest.raises(KubeError) as raised:
        run(answer, use, **options)
    return raised.value


def test_requests_on_the_wire() -> None:
    """Each verb sends its method, path, parameters, content type and body, uncompressed replies wanted."""
    seen: list[tuple[str, str, str, bytes]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.method, request.raw_path, request.headers.get("Content-Type", ""), await request.read()))
        assert request.headers["Accept-Encoding"] == "identity"
        assert request.headers["User-Agent"] == f"cidrella/{__version__}"
        assert "Authorization" not in request.headers
        assert request.headers["Accept"] == (METADATA_ONLY if "patch" in request.path else "application/json")
        return web.json_response({"name": "n", "unknown": 1})

    async def use(client: Client) -> list[Thing]:
        things = [
            await client.get("/a", Thing, labelSelector="a=b,c in (d)"),
            await client.create("/a", Thing("n"), Thing, fieldManager="m"),
            await client.replace("/a/n", {"name": "n"}, Thing),
            await client.patch("/a/patch", [], Thing, content_type=STRATEGIC_PATCH, accept=METADATA_ONLY),
        ]
        await client.delete("/a/n")
        await client.delete("/a/n", uid="u", propagationPolicy="Background")
        return things

    assert run(answer, use) == [Thing("n")] * 4
    options = b'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"}}'
    assert seen == [
        ("GET", "/a?labelSelector=a%3Db%2Cc+in+%28d%29", "application/json", b""),
        ("POST", "/a?fieldManager=m", "application/json", b'{"name":"n"}'),
        ("PUT", "/a/n", "application/json", b'{"name":"n"}'),
        ("PATCH", "/a/patch", "application/strategic-merge-patch+json", b"[]"),
        ("DELETE", "/a/n", "application/json", b""),
        ("DELETE", "/a/n?propagationPolicy=Background", "application/json", options),
    ]


def test_server_with_a_path() -> None:
    """A server behind a path (as some gateways have it) keeps it."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"name": request.path})

    async def scenario() -> Thing:
        async with serving(answer) as url, Client(Access(f"{url}/k8s/clusters/c")) as client:
            return await client.get("/api/v1/nodes", Thing)

    assert asyncio.run(scenario()) == Thing("/k8s/clusters/c/api/v1/nodes")


@pytest.mark.parametrize(
    ("code", "unsettled"),
    [
        *((code, False) for code in (400, 401, 403, 404, 409, 410, 415, 422, 451)),
        *((code, True) for code in (307, 408, 425, 429, 499, 500, 503, 504)),
    ],
)
def test_refusals(code: int, unsettled: bool) -> None:
    """N9: a Status comes with code, reason and message. 408, 425, 429, 499 and 5xx say nothing of the outcome."""
    error = error_of(web.json_response({**STATUS, "code": code}, status=code))
    assert isinstance(error, ApiError)
    assert (error.code, error.reason, error.message, error.retry_after) == (code, "Conflict", "no", None)
    assert error.unsettled is unsettled
    assert str(error) == f"{code} Conflict: no"


@pytest.mark.parametrize(
    "body",
    [
        "<html>Request Timeout</html>",
        "",
        "[" * 1_000,
        '{"a":' * 1_000 + "1" + "}" * 1_000,
        json.dumps({**STATUS, "details": {"retryAfterSeconds": 10**400}}),
        json.dumps({**STATUS, "apiVersion": "v2"}),
        json.dumps({**STATUS, "kind": "Pod"}),
        json.dumps({**STATUS, "status": "Success"}),
        json.dumps({**STATUS, "code": 422}),
        json.dumps({**STATUS, "code": "409"}),
        *(
            json.dumps({name: value for name, value in STATUS.items() if name != missing})
            for missing in ("kind", "apiVersion", "status", "code")
        ),
    ],
)
def test_a_4xx_without_a_matching_status_is_no_refusal(body: str) -> None:
    """N9: an intermediary may answer 4xx and forward the request later, so only a Status with that code is believed."""
    error = error_of(web.Response(status=409, text=body, content_type="application/json"))
    assert isinstance(error, ApiError)
    assert error.code == 409
    assert error.unsettled


def test_a_status_without_reason_or_message_is_a_refusal() -> None:
    """N9: an admission webhook may deny a request without a reason."""
    body = {name: value for name, value in STATUS.items() if name not in {"reason", "message"}}
    assert not error_of(web.json_response(body, status=409)).unsettled


@pytest.mark.parametrize(
    ("header", "details", "expected"),
    [("7", None, 7.0), ("7", 3, 7.0), ("", 3, 3.0), ("", -3, None), ("soon", None, None), ("9" * 30, None, None)],
)
def test_retry_after(header: str, details: int | None, expected: float | None) -> None:
    """The time to wait is read from the header, or else from the status; rubbish is no time."""
    body = {**STATUS, "details": {"retryAfterSeconds": details}}
    error = error_of(web.json_response(body, status=429, headers={"Retry-After": header} if header else {}))
    assert isinstance(error, ApiError)
    assert error.retry_after == expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"<html>\n<b>Bad\x00 Gateway</b>", "<html> <b>Bad Gateway</b>"),
        (b"x" * 1000, "x" * 200),
        (b"", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"kind": "Status", "message": 5}', '{"kind": "Status", "message": 5}'),
        (b'{"kind": "Other", "reason": "r"}', '{"kind": "Other", "reason": "r"}'),
    ],
)
def test_refusals_that_are_not_kubernetes(body: bytes, message: str) -> None:
    """A refusal by something else has no reason, and of its text what can be shown."""
    error = error_of(web.Response(status=502, body=body, content_type="text/html"))
    assert isinstance(error, ApiError)
    assert (error.code, error.reason, error.message, error.unsettled) == (502, "", message, True)


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>", content_type="text/html"),
        web.Response(status=204),
        web.Response(text='{"name": "n', content_type="application/json"),
        web.Response(text='{"name": 5}', content_type="application/json"),
        web.Response(text="[]", content_type="application/json"),
        web.Response(body=b'{"name": "\xff"}', content_type="application/json"),
        web.Response(text="[" * 100_000, content_type="application/json"),
    ],
)
def test_malformed_successes(answer: web.Response) -> None:
    """A success that the API would not word like this is an error, after which nothing is known."""
    error = error_of(answer)
    assert isinstance(error, MalformedReplyError)
    assert error.unsettled


@pytest.mark.parametrize(
    ("first", "second", "unsettled"),
    [
        ({**STATUS, "code": 401}, {**STATUS, "code": 422}, False),
        ({**STATUS, "code": 401}, None, False),
        ({}, {**STATUS, "code": 422}, True),
        ({}, None, True),
    ],
)
def test_after_a_401_that_is_no_status_nothing_is_a_refusal(
    first: dict[str, object], second: dict[str, object] | None, unsettled: bool
) -> None:
    """N9: what answered 401 may forward the request later, whatever follows: a refusal, or credentials that fail."""

    class Changing(Renewing):
        async def proof(self) -> Proof:
            if self.number > 1 and second is None:
                raise ConfigError("the credential plugin failed")
            return await super().proof()

    async def answer(request: web.Request) -> web.Response:
        if request.headers["Authorization"] == "Bearer 1":
            return web.json_response(first, status=401)
        return web.json_response(second, status=422)

    async def use(client: Client) -> None:
        await client.get("/x", Thing)

    with pytest.raises(KubeError) as raised:
        run(answer, use, identity=Changing())
    assert raised.value.unsettled is unsettled


def test_redirects_are_not_followed() -> None:
    """A redirect is an answer that is not the API server's: our token stays here."""
    error = error_of(web.Response(status=307, headers={"Location": "http://127.0.0.1:1/"}))
    assert isinstance(error, ApiError)
    assert error.code == 307


@pytest.mark.parametrize("chunked", [False, True])
def test_replies_have_a_limit(monkeypatch: pytest.MonkeyPatch, chunked: bool) -> None:
    """A reply that would fill the memory is given up on, whether it announces its length or not."""
    monkeypatch.setattr(transport, "BODY_MAX", 100_000)

    async def answer(_: web.Request) -> web.Response:
        response = web.Response(body=b'"' + b"x" * 200_000 + b'"', content_type="application/json")
        if chunked:
            response.enable_chunked_encoding()
        return response

    async def use(client: Client) -> None:
        with pytest.raises(MalformedReplyError, match="more than 100000 bytes"):
            await client.get("/x", str)

    run(answer, use)


def test_observed() -> None:
    """Each request that was sent is told with its verb, its code or `none`, and its time."""
    told: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/cut":
            assert request.transport
            request.transport.close()
        return web.json_response({"name": "n"}, status=409 if request.method == "POST" else 200)

    async def use(client: Client) -> None:
        await client.get("/x", Thing)
        await client.request("GET", "/x", verb="list")
        with pytest.raises(ApiError):
            await client.create("/x", {}, Thing)
        with pytest.raises(NoAnswerError):
            await client.get("/cut", Thing)
        async with client.watch("/x", {}):
            pass

    def observe(verb: str, code: str, seconds: float) -> None:
        assert seconds > 0
        told.append((verb, code))

    run(answer, use, observe=observe)
    assert told == [("get", "200"), ("list", "200"), ("create", "409"), ("get", "none"), ("watch", "200")]


class Renewing:
    """An identity with a new token after each refusal."""

    def __init__(self) -> None:
        self.number = 1

    async def proof(self) -> Proof:
        return Proof(f"Bearer {self.number}")

    def expire(self) -> None:
        self.number += 1


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[None]:
    async with client.watch("/x", {}) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b'{"name": "n"}'
        yield


@pytest.mark.parametrize(("takes", "requests"), [("Bearer 1", 1), ("Bearer 2", 2), ("Bearer 3", 2)])
@pytest.mark.parametrize("watch", [False, True])
def test_unauthorized_is_tried_once_more_with_fresh_credentials(takes: str, requests: int, watch: bool) -> None:
    """After a 401 fresh credentials are tried, once."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.json_response({"name": "n"}, status=200 if seen[-1] == takes else 401)

    async def use(client: Client) -> None:
        if watch:
            async with watching(client):
                pass
        else:
            await client.get("/x", Thing)

    if takes == "Bearer 3":
        with pytest.raises(ApiError, match="401"):
            run(answer, use, identity=Renewing())
    else:
        run(answer, use, identity=Renewing())
    assert seen == ["Bearer 1", "Bearer 2"][:requests]


def test_unauthorized_with_nothing_else_to_try_is_not_repeated() -> None:
    """A 401 for a token that cannot change is final at once."""
    seen = []

    async def answer(_: web.Request) -> web.Response:
        seen.append(1)
        return web.json_response({}, status=401)

    async def use(client: Client) -> None:
        with pytest.raises(ApiError, match="401"):
            await client.get("/x", Thing)

    run(answer, use, identity=Header("Bearer t"))
    assert len(seen) == 1


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_nothing_is_repeated(method: str) -> None:
    """N9: a request whose kept connection breaks is not sent again behind our back: nobody knows what became of it."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/cut":
            seen.append(request.method)
            assert request.transport
            request.transport.close()
        return web.json_response({"name": "n"})

    async def use(client: Client) -> None:
        await client.get("/x", Thing)
        with pytest.raises(NoAnswerError, match="connection lost") as raised:
            await client.request(method, "/cut", body=None if method == "GET" else b"{}")
        assert raised.value.unsettled

    run(answer, use)
    assert seen == [method]


def test_no_connection() -> None:
    """A refused connection and a name that is none are no answer, with the reason."""

    async def scenario(server: str) -> None:
        async with Client(Access(server)) as client:
            await client.get("/x", Thing)

    with pytest.raises(NoAnswerError, match=r"no connection: .*Connect call failed"):
        asyncio.run(scenario(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(NoAnswerError, match="no connection: "):
        asyncio.run(scenario("http://nobody.invalid"))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", MalformedReplyError),
        (b"HTTP/1.1 abc\r\n\r\n", MalformedReplyError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", MalformedReplyError),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000, MalformedReplyError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", (MalformedReplyError, NoAnswerError)),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}", NoAnswerError),
        (b"", NoAnswerError),
    ],
)
def test_what_is_no_http(text: bytes, kind: type[KubeError] | tuple[type[KubeError], ...]) -> None:
    """Whoever answers with something else than HTTP, or with half of it, causes an error of ours and no other."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server, Client(Access(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
            with pytest.raises(kind) as raised:
                await client.get("/x", Thing)
            assert raised.value.unsettled

    asyncio.run(scenario())


def test_timeouts() -> None:
    """A request has its time for all of it, or what it is given, however little; a watch has it until it begins."""

    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(300)
        raise AssertionError

    async def use(client: Client) -> None:
        with pytest.raises(NoAnswerError, match="no answer in time"):
            await client.get("/x", Thing)
        with pytest.raises(NoAnswerError, match="no answer in time"):
            async with client.watch("/x", {}):
                pass

    async def use_shorter(client: Client) -> None:
        with pytest.raises(NoAnswerError, match="no answer in time"):
            await client.request("GET", "/x", timeout=0.05)
        with pytest.raises(NoAnswerError, match="no answer in time"):
            await client.request("GET", "/x", timeout=-1.0)

    run(answer, use, timeout=0.05)
    run(answer, use_shorter, timeout=300.0)


def test_a_peer_that_does_not_even_shake_hands() -> None:
    """A port that takes connections and never speaks TLS is no answer in time."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            access = Access(f"https://127.0.0.1:{listener.getsockname()[1]}")
            async with Client(access, timeout=0.2) as client:
                with pytest.raises(NoAnswerError, match="no answer in time"):
                    await client.get("/x", Thing)

    asyncio.run(scenario())


def test_cancelling_a_request() -> None:
    """Whoever is cancelled is cancelled, the server sees the connection go, and the client goes on working."""

    async def scenario() -> None:
        arrived, gone = asyncio.Event(), asyncio.Event()

        async def answer(request: web.Request) -> web.Response:
            if request.path == "/slow":
                arrived.set()
                while request.transport and not request.transport.is_closing():
                    await asyncio.sleep(0.01)
                gone.set()
            return web.json_response({"name": "n"})

        async with serving(answer) as url, Client(Access(url)) as client:
            asking = asyncio.create_task(client.get("/slow", Thing))
            await arrived.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(gone.wait(), 30)
            assert await client.get("/x", Thing) == Thing("n")

    asyncio.run(scenario())


def test_watch_gives_chunks_as_they_come() -> None:
    """What the server has flushed can be read before it says more; the end of the reply is the end of the watch."""

    async def scenario() -> None:
        more = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            assert dict(request.query) == {"watch": "true", "resourceVersion": "5"}
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            await response.write(b"one\n")
            await more.wait()
            await response.write(b"two\n")
            return response

        async with (
            serving(answer) as url,
            Client(Access(url)) as client,
            client.watch("/x", {"resourceVersion": "5"}) as chunks,
        ):
            assert await anext(chunks) == b"one\n"
            more.set()
            assert [chunk async for chunk in chunks] == [b"two\n"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (web.json_response({**STATUS, "code": 410}, status=410), ApiError, "410 Conflict: no"),
        (web.Response(text="<html>", content_type="text/html"), MalformedReplyError, "not JSON but text/html"),
        (web.Response(status=503, text="busy"), ApiError, "503: busy"),
    ],
)
def test_watch_that_does_not_begin(answer: web.Response, kind: type[KubeError], message: str) -> None:
    """A watch that is refused, or answered by something else, raises before it begins."""

    async def use(client: Client) -> None:
        with pytest.raises(kind, match=message):
            async with client.watch("/x", {}):
                pass

    run(answer, use)


def test_closed_client() -> None:
    """Closing ends requests under way with an error of ours; nothing can be sent afterwards; closing twice is fine."""

    async def scenario() -> None:
        arrived = asyncio.Event()

        async def answer(_: web.Request) -> web.Response:
            arrived.set()
            await asyncio.sleep(300)
            raise AssertionError

        async with serving(answer) as url:
            client = Client(Access(url))
            asking = asyncio.create_task(client.get("/x", Thing))
            await arrived.wait()
            await client.close()
            with pytest.raises(NoAnswerError):
                await asking
            with pytest.raises(NoAnswerError, match="closed"):
                await client.get("/x", Thing)
            await client.close()

    asyncio.run(scenario())


def test_through_a_proxy() -> None:
    """A proxy-url is gone through: the server's name need not even be known here."""
    seen = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(str(request.url))
        return web.json_response({"name": "n"})

    async def scenario() -> Thing:
        async with serving(answer) as url, Client(Access("http://nobody.invalid:1", proxy=url)) as client:
            return await client.get("/x", Thing)

    assert asyncio.run(scenario()) == Thing("n")
    assert seen == ["http://nobody.invalid:1/x"]
