"""The server as clients meet it: over HTTP, with tokens, watches that stream, and a record of all of it."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from cidrella.apiserver.forms.bodies import BODY_MAX
from cidrella.apiserver.serving import server as server_module
from cidrella.apiserver.serving.routing import Routing
from cidrella.apiserver.serving.server import VERSION, ApiServer, User
from cidrella.apiserver.store.store import Journal, Store, StoreError
from cidrella.kube.issuing import issue, utc_now
from cidrella.kube.listening import CODING_REFUSED, CannotListenError
from cidrella.kube.tls import Serving, serving_context
from tests.apiserver.asking import CRDS, MERGE, NODES, crd, node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from multidict import CIMultiDictProxy

    Json = dict[str, Any]
    Scenario = Callable[["Client", ApiServer], Awaitable[None]]

USERS = {"secret": User("jane", "7", ("admins",)), "other": User("joe")}


class Client:
    """Asks a server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def __call__(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, CIMultiDictProxy[str], bytes]:
        """The code, the headers and the text of the reply."""
        data = None if body is None else BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): each for name, each in headers.items()}
        async with self.session.request(method, f"{self.url}{path}", data=data, headers=sent) as reply:
            return reply.status, reply.headers, await reply.read()

    async def json(self, method: str, path: str, body: object = None, **headers: str) -> Json:
        """The body of the reply."""
        found: Json = json.loads((await self(method, path, body, **headers))[2])
        return found


@asynccontextmanager
async def serving(store: Store | None = None, **options: Any) -> AsyncIterator[tuple[Client, ApiServer]]:
    async with (
        ApiServer(store or Store(), "127.0.0.1", 0, **options) as server,
        aiohttp.ClientSession() as session,
    ):
        yield Client(session, server.url), server


def run(scenario: Scenario, store: Store | None = None, **options: Any) -> None:
    """Play a scenario with a server that ends after it."""

    async def play() -> None:
        async with asyncio.timeout(20), serving(store, **options) as (client, server):
            await scenario(client, server)

    asyncio.run(play())


class TestReplies:
    """What every reply is like."""

    def test_of_themselves(self) -> None:
        """Nobody keeps them; they do not say which library made them; what to warn of is in headers."""

        async def scenario(client: Client, _: ApiServer) -> None:
            sent = {"metadata": {"name": "a"}, "x": 1, "y": 2}
            code, headers, _text = await client("POST", NODES, sent)
            assert code == 201
            assert (headers["Content-Type"], headers["Cache-Control"]) == ("application/json", "no-cache, private")
            assert "Server" not in headers
            assert headers.getall("Warning") == ['299 - "unknown field \\"x\\""', '299 - "unknown field \\"y\\""']

        run(scenario)

    def test_many_warnings(self) -> None:
        """Clients take only so many headers: of thousands of unknown fields some are told."""

        async def scenario(client: Client, _: ApiServer) -> None:
            sent = {"metadata": {"name": "a"}, **{f"x{number}": 1 for number in range(5000)}}
            code, headers, _text = await client("POST", NODES, sent)
            told = headers.getall("Warning")
            assert code == 201
            assert len(told) > 50
            assert sum(map(len, told)) < 10_000

        run(scenario)

    def test_fixed_ones(self) -> None:
        """Whether it runs, whether it is ready, and what it is."""
        ready = iter([False, True])

        async def scenario(client: Client, _: ApiServer) -> None:
            assert [(await client("GET", path))[::2] for path in ("/healthz", "/livez")] == [(200, b"ok")] * 2
            assert [(await client("GET", "/readyz"))[0] for _ in range(2)] == [500, 200]
            told = await client.json("GET", "/version")
            assert (told["gitVersion"], VERSION.partition("+")[2]) == (VERSION, "cidrella")

        run(scenario, ready=lambda: next(ready))

    def test_too_much(self) -> None:
        """A body has its size."""

        async def scenario(client: Client, _: ApiServer) -> None:
            code, _headers, text = await client("POST", NODES, b" " * (BODY_MAX + 2))
            assert (code, json.loads(text)["reason"]) == (413, "RequestEntityTooLarge")

        run(scenario)

    def test_our_own_faults(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever goes wrong here is told as such, and the next request is answered."""

        async def fail(*_: object) -> None:
            raise ZeroDivisionError

        async def scenario(client: Client, _: ApiServer) -> None:
            with monkeypatch.context() as patched:
                patched.setattr(Routing, "answer", fail)
                refused = await client.json("GET", NODES)
            assert (refused["code"], refused["reason"]) == (500, "InternalError")
            assert (await client("GET", NODES))[0] == 200

        run(scenario)


class TestTokens:
    """Who may ask."""

    def test_who_it_is(self) -> None:
        """Only who shows a token that is known; health and version are for everybody without one."""

        async def scenario(client: Client, _: ApiServer) -> None:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic secret"}):
                refused = await client.json("GET", NODES, **headers)
                assert (refused["code"], refused["reason"], refused["message"]) == (401, "Unauthorized", "Unauthorized")
            for token in USERS:
                assert (await client("GET", NODES, Authorization=f"Bearer {token}"))[0] == 200
            for path in ("/healthz", "/livez", "/readyz", "/version"):
                assert (await client("GET", path))[0] == 200
                assert (await client("GET", path, Authorization="Bearer wrong"))[0] == 401

        run(scenario, users=USERS)

    def test_none_is_asked_for(self) -> None:
        """Without users, everybody may; whatever token they show."""

        async def scenario(client: Client, _: ApiServer) -> None:
            assert (await client("GET", NODES, Authorization="Bearer anything"))[0] == 200

        run(scenario)


def test_content_codings_are_refused() -> None:
    """With a Status, whatever is asked for and whoever asks. The audit log has it."""
    told: list[Json] = []

    async def scenario(client: Client, _: ApiServer) -> None:
        for method, path in (("POST", NODES), ("GET", "/healthz"), ("GET", "/nowhere")):
            code, headers, text = await client(method, path, node("a"), Content_Encoding="gzip")
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 415}
            assert json.loads(text) == {**status, "reason": "UnsupportedMediaType", "message": CODING_REFUSED}
            assert (code, headers["Accept-Encoding"]) == (415, "identity")
        sent = {"Authorization": "Bearer secret", "Content_Encoding": "identity"}
        assert (await client("POST", NODES, node("a"), **sent))[0] == 201

    run(scenario, users=USERS, audit=told.append)
    assert [each["responseStatus"]["code"] for each in told] == [415, 415, 415, 201]
    assert "requestObject" not in told[0]


def test_audit() -> None:
    """Each request is told of before it is answered: who, what, about what, and what came of it."""
    told: list[Json] = []

    async def scenario(client: Client, _: ApiServer) -> None:
        ask = {"Authorization": "Bearer secret", "User_Agent": "me"}
        await client("POST", NODES, node("a"), **ask)
        assert [each["verb"] for each in told] == ["create"]
        await client("PATCH", f"{NODES}/a/status", {"status": {}}, **(ask | {"Content_Type": MERGE}))
        await client("PUT", "/apis/coordination.k8s.io/v1/namespaces/x/leases/b", b"{", **ask)
        for method, path in (("GET", NODES), ("GET", f"{NODES}/a"), ("GET", f"{NODES}?watch=1&timeoutSeconds=1")):
            await client(method, path, **ask)
        await client("DELETE", NODES, **ask)
        await client("GET", "/healthz")
        await client("GET", f"{NODES}?x=y")

    run(scenario, users=USERS, audit=told.append)
    verbs = ["create", "patch", "update", "list", "get", "watch", "deletecollection", "get", "list"]
    assert [each["verb"] for each in told] == verbs
    assert [each["responseStatus"]["code"] for each in told] == [201, 200, 400, 200, 200, 200, 200, 200, 401]
    assert {each["stage"] for each in told} == {"ResponseComplete"}
    assert (told[0]["user"], told[0]["userAgent"]) == ({"username": "jane", "uid": "7", "groups": ["admins"]}, "me")
    assert told[0]["requestObject"] == node("a")
    assert told[1]["objectRef"] == {"resource": "nodes", "name": "a", "apiVersion": "v1", "subresource": "status"}
    assert told[2]["objectRef"]["apiGroup"] == "coordination.k8s.io"
    assert told[2]["requestObject"] is None
    assert told[-1]["user"]["username"] == "system:anonymous"
    assert told[-1]["requestURI"] == f"{NODES}?x=y"
    assert "objectRef" not in told[-2]


class TestWatches:
    """Answers that do not end."""

    def test_as_it_happens(self) -> None:
        """What happens is told as soon as it has."""

        async def scenario(client: Client, _: ApiServer) -> None:
            async with client.session.get(f"{client.url}{NODES}?watch=1") as reply:
                assert reply.headers["Content-Type"] == "application/json"
                for name in "ab":
                    await client("POST", NODES, node(name))
                    event = json.loads(await reply.content.readline())
                    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)

        run(scenario)

    def test_the_end_of_the_server(self) -> None:
        """Watches end with it at once, whether or not anything happens in them."""

        async def scenario() -> float:
            async with aiohttp.ClientSession() as session:
                async with ApiServer(Store(), "127.0.0.1", 0) as server:
                    watches = [await session.get(f"{server.url}{NODES}?watch=1") for _ in range(3)]
                    began = asyncio.get_running_loop().time()
                assert [await each.read() for each in watches] == [b""] * 3
                return asyncio.get_running_loop().time() - began

        assert asyncio.run(scenario()) < server_module.GRACE

    def test_the_end_of_a_kind(self) -> None:
        """A watch of what is no longer served ends."""

        async def scenario(client: Client, _: ApiServer) -> None:
            await client("POST", CRDS, crd("gadgets", scope="Cluster"))
            async with client.session.get(f"{client.url}/apis/example.com/v1/gadgets?watch=1") as reply:
                await client("DELETE", f"{CRDS}/gadgets.example.com")
                assert await reply.read() == b""

        run(scenario)

    def test_who_reads_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One who does not read what is told is cut off, and costs nobody else anything."""
        monkeypatch.setattr(server_module, "STALLED", 0.2)

        async def scenario(client: Client, server: ApiServer) -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(f"GET {NODES}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await asyncio.sleep(0.05)
            assert len(server._watches) == 1
            for number in range(100):
                sent = node(f"n{number}", annotations={"x": "y" * 100_000})
                assert (await client("POST", NODES, sent))[0] == 201
            while server._watches:
                await asyncio.sleep(0.01)
            writer.close()

        run(scenario)

    def test_who_hangs_up(self) -> None:
        """A client that goes away in the middle is no fault."""

        async def scenario(client: Client, server: ApiServer) -> None:
            reply = await client.session.get(f"{client.url}{NODES}?watch=1")
            reply.close()
            for name in "abc":
                await client("POST", NODES, node(name))
                await asyncio.sleep(0.02)
            assert not server._watches

        run(scenario)


class TestDurability:
    """What is answered is durable."""

    def test_after_a_restart(self, tmp_path: Path) -> None:
        """All that was answered is there again, and what is made then has newer versions."""

        async def scenario() -> None:
            versions = []
            for name in "ab":
                journal = Journal(tmp_path)
                async with serving(Store(journal)) as (client, _):
                    made = await client.json("POST", NODES, node(name))
                    versions.append(int(made["metadata"]["resourceVersion"]))
                    listed = await client.json("GET", NODES)
                await journal.close()
            assert [each["metadata"]["name"] for each in listed["items"]] == ["a", "b"]
            assert versions == sorted(versions)

        asyncio.run(scenario())

    @pytest.mark.parametrize("method", ["GET", "POST"])
    def test_a_disk_that_fails(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        """What cannot be made durable is not answered, be it a read or a write, or a refusal."""

        async def scenario(client: Client, _: ApiServer) -> None:
            await client("POST", NODES, node("a"))

            async def fail(_: Store) -> None:
                raise StoreError("the disk is full")

            monkeypatch.setattr(Store, "settle", fail)
            refused = await client.json(method, NODES, node("a") if method == "POST" else None)
            assert (refused["code"], refused["message"]) == (500, "Internal error occurred: the disk is full")

        run(scenario)


class TestListening:
    """Where it is served."""

    def test_tls(self) -> None:
        """With a certificate, if one is given."""
        issued = issue(("127.0.0.1",), utc_now())
        context = serving_context(Serving(issued.pair))

        async def scenario() -> None:
            async with ApiServer(Store(), "127.0.0.1", 0, context=context) as server:
                assert server.url.startswith("https://127.0.0.1:")
                trusting = ssl.create_default_context(cadata=issued.bundle.decode())
                async with (
                    aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
                    session.get(f"{server.url}{NODES}") as reply,
                ):
                    assert reply.status == 200

        asyncio.run(scenario())

    def test_a_port_that_is_taken(self) -> None:
        """It is said, and nothing is left behind."""

        async def scenario(_: Client, server: ApiServer) -> None:
            port = int(server.url.rpartition(":")[2])
            with pytest.raises(CannotListenError):
                async with ApiServer(Store(), "127.0.0.1", port):
                    pass

        run(scenario)
