"""The webhook's server, as the API server meets it: over TLS, with whatever may come."""

from __future__ import annotations

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from cidrella.kube.errors import ConfigError
from cidrella.kube.issuing import Issued, issue, utc_now
from cidrella.kube.listening import CODING_REFUSED, CannotListenError
from cidrella.kube.tls import KeyPair, Serving, serving_context
from cidrella.model.admission import AdmissionRequest, AdmissionResponse, Status
from cidrella.serviceip.review import MalformedError, UnavailableError
from cidrella.webhook import server as server_module
from cidrella.webhook.server import BODY_MAX, PATH, WebhookServer
from tests.testenv.certs import Authority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.testenv.certs import Identity

    Review = Callable[[AdmissionRequest, float], Awaitable[AdmissionResponse]]

NAMES = ("cidrella-webhook.kube-system.svc", "127.0.0.1")
ISSUED = issue(NAMES, utc_now())
QUESTION = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "7", "operation": "CREATE", "object": {"spec": {}}, "userInfo": {"username": "me"}},
}


async def allow(request: AdmissionRequest, _: float) -> AdmissionResponse:
    return AdmissionResponse(uid=request.uid, allowed=True, patch=b"[]", patch_type="JSONPatch", warnings=["mind"])


@asynccontextmanager
async def webhook(
    review: Review = allow, issued: Issued = ISSUED, client_ca: bytes | None = None
) -> AsyncIterator[WebhookServer]:
    async with WebhookServer("127.0.0.1", 0, Serving(issued.pair, client_ca), review) as server:
        yield server


def trusting(issued: Issued = ISSUED) -> ssl.SSLContext:
    """The context of a client that believes one CA, and looks at names, as the API server does."""
    context = ssl.create_default_context(cadata=issued.bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


async def post(
    server: WebhookServer, body: bytes | None = None, *, path: str = PATH, issued: Issued = ISSUED, **headers: str
) -> tuple[int, str]:
    """The code and the text of the reply."""
    data = json.dumps(QUESTION).encode() if body is None else body
    headers = {"Content-Type": "application/json", **{key.replace("_", "-"): each for key, each in headers.items()}}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(issued))) as session,
        session.post(f"{server.url}{path}", data=BytesIO(data), headers=headers) as reply,
    ):
        return reply.status, await reply.text()


def authority(directory: Path) -> Authority:
    directory.mkdir()
    return Authority(directory)


def as_client(identity: Identity) -> ssl.SSLContext:
    context = trusting()
    context.load_cert_chain(identity.certificate, identity.key)
    return context


async def answered(server: WebhookServer, context: ssl.SSLContext) -> bool:
    """Whether one who connects so gets an answer."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        try:
            async with session.post(f"{server.url}{PATH}", json=QUESTION) as reply:
                return reply.status == 200
        except aiohttp.ClientConnectionError:
            return False


def test_an_answer() -> None:
    """B9: the answer is in an AdmissionReview of the same version; bytes are in base64, fields have the API's names."""

    async def scenario() -> None:
        async with webhook() as server:
            code, text = await post(server)
        response = {"uid": "7", "allowed": True, "patch": "W10=", "patchType": "JSONPatch", "warnings": ["mind"]}
        expected = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        assert (code, json.loads(text)) == (200, expected)

    asyncio.run(scenario())


def test_a_denial() -> None:
    """B4: to deny is an answer, with the code and the words that people are shown."""

    async def deny(request: AdmissionRequest, _: float) -> AdmissionResponse:
        return AdmissionResponse(
            uid=request.uid, allowed=False, status=Status(code=422, reason="Invalid", message="no")
        )

    async def scenario() -> None:
        async with webhook(deny) as server:
            code, text = await post(server)
        status = {"code": 422, "reason": "Invalid", "message": "no"}
        assert (code, json.loads(text)["response"]) == (200, {"uid": "7", "allowed": False, "status": status})

    asyncio.run(scenario())


def changed(**fields: Any) -> bytes:
    return json.dumps({**QUESTION, **fields}).encode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "no AdmissionReview: "),
        (b"{", "no AdmissionReview: "),
        (b"\xff", "no AdmissionReview: "),
        (b"[" * 100_000, "no AdmissionReview: "),
        (b"[]", "no AdmissionReview: Expected `object`"),
        (b"{}", "no AdmissionReview: Object missing required field"),
        (changed(kind="Service"), "Service of admission.k8s.io/v1; AdmissionReview of admission.k8s.io/v1 is"),
        (changed(kind="S" * 2000), "SSSS"),
        (changed(apiVersion="admission.k8s.io/v1beta1"), "AdmissionReview of admission.k8s.io/v1beta1; "),
        (changed(request=None), "an AdmissionReview without a request"),
        (changed(request={"uid": "", "operation": "CREATE"}), "an AdmissionReview without a request"),
        (changed(request={"uid": 7, "operation": "CREATE"}), "no AdmissionReview: Expected `str`"),
        (changed(request={"uid": "7" * 65, "operation": "CREATE"}), "a uid of more than 64 characters"),
    ],
)
def test_what_is_no_question(body: bytes, words: str) -> None:
    """B9: it is refused, with words for whoever sent it."""

    async def scenario() -> None:
        async with webhook() as server:
            code, text = await post(server, body)
            assert (code, text.startswith(words)) == (400, True), text
            assert len(text) <= 1001
            assert (await post(server))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "code"), [(MalformedError("no Service: why"), 400), (UnavailableError("the API is away"), 503)]
)
def test_no_decision(error: Exception, code: int) -> None:
    """B6: that there is no decision is no denial: the failurePolicy decides then."""

    async def fail(_: AdmissionRequest, __: float) -> AdmissionResponse:
        raise error

    async def scenario() -> None:
        async with webhook(fail) as server:
            assert await post(server) == (code, f"{error}\n")

    asyncio.run(scenario())


def test_an_error_of_ours() -> None:
    """B6: it ends one request, and not the server; nothing of it is told."""

    async def fail(request: AdmissionRequest, within: float) -> AdmissionResponse:
        if request.uid == "7":
            raise ZeroDivisionError("secret")
        return await allow(request, within)

    async def scenario() -> None:
        async with webhook(fail) as server:
            code, text = await post(server)
            assert (code, "secret" in text) == (500, False)
            assert (await post(server, changed(request={"uid": "8", "operation": "CREATE"})))[0] == 200

    asyncio.run(scenario())


def test_other_requests() -> None:
    """B9: there is one thing to be asked, in one way."""

    async def scenario() -> None:
        async with webhook() as server:
            assert await post(server, Content_Type="text/plain") == (415, "send application/json, not text/plain\n")
            assert (await post(server, path="/"))[0] == 404
            assert (await post(server, Content_Encoding="identity"))[0] == 200
            for path in (PATH, "/"):
                assert await post(server, path=path, Content_Encoding="gzip") == (415, f"{CODING_REFUSED}\n")
            assert (await post(server, Content_Type="application/json; charset=utf-8"))[0] == 200
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting())) as session,
                session.get(f"{server.url}{PATH}") as reply,
            ):
                assert reply.status == 405
                assert "Server" not in reply.headers

    asyncio.run(scenario())


def test_too_large() -> None:
    """B9: a body has its bound, whether its size is told beforehand or not; below it, it is read."""

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(BODY_MAX // (1 << 20) + 1):
            yield b" " * (1 << 20)

    async def scenario() -> None:
        async with webhook() as server:
            code, text = await post(server, b" " * (BODY_MAX + 1))
            assert (code, text) == (413, "a request may have 7,340,032 bytes\n")
            assert (await post(server, b" " * (BODY_MAX - 1000) + changed()))[0] == 200
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting())) as session,
                session.post(
                    f"{server.url}{PATH}", data=in_pieces(), headers={"Content-Type": "application/json"}
                ) as it,
            ):
                assert it.status == 413

    asyncio.run(scenario())


def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """B9: nobody is waited for longer than it takes to send a question."""
    monkeypatch.setattr(server_module, "_READING", 0.1)

    async def scenario() -> None:
        async with webhook() as server:
            host, port = server.url.removeprefix("https://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port), ssl=trusting())
            head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
            writer.write(head.encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 408")
            assert b"Connection: close" in await reader.read()
            writer.close()

    asyncio.run(scenario())


def test_too_much_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """B9: all that is not answered yet has its bound: who comes when it is reached is refused, and others later not."""
    monkeypatch.setattr(server_module, "BODIES_MAX", 1000)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: AdmissionRequest, within: float) -> AdmissionResponse:
        begun.set()
        await go_on.wait()
        return await allow(request, within)

    async def scenario() -> None:
        large = b" " * 700 + changed()
        async with webhook(slow) as server:
            first = asyncio.create_task(post(server, large))
            await begun.wait()
            code, text = await post(server, large)
            assert (code, text) == (503, "requests that are not yet answered have more than 1,000 bytes\n")
            go_on.set()
            assert [(await first)[0], (await post(server, large))[0]] == [200, 200]

    asyncio.run(scenario())


@pytest.mark.parametrize(("query", "seconds"), [("", 9.0), ("?timeout=5s", 4.5), ("?timeout=soon", 9.0)])
def test_how_long_an_answer_may_take(query: str, seconds: float) -> None:
    """B6: less than the API server waits, so that nothing is given to one who has gone."""
    asked: list[float] = []

    async def note(request: AdmissionRequest, within: float) -> AdmissionResponse:
        asked.append(within)
        return await allow(request, within)

    async def scenario() -> None:
        async with webhook(note) as server:
            await post(server, path=f"{PATH}{query}")

    asyncio.run(scenario())
    assert asked == [pytest.approx(seconds)]


def test_the_end() -> None:
    """B6: what is under way is answered; nobody new is."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: AdmissionRequest, within: float) -> AdmissionResponse:
        begun.set()
        await go_on.wait()
        return await allow(request, within)

    async def scenario() -> None:
        server = WebhookServer("127.0.0.1", 0, Serving(ISSUED.pair), slow)
        await server.__aenter__()
        under_way = asyncio.create_task(post(server))
        await begun.wait()
        url = server.url
        ending = asyncio.create_task(server.__aexit__())
        await asyncio.sleep(0.1)
        host, port = url.removeprefix("https://").split(":")
        with pytest.raises(OSError, match="onnect"):
            await asyncio.open_connection(host, int(port))
        go_on.set()
        assert (await under_way)[0] == 200
        await ending

    asyncio.run(scenario())


def test_an_address_that_is_taken() -> None:
    """O6: it is told in words that it cannot listen there."""

    async def scenario() -> None:
        async with webhook() as server:
            port = int(server.url.rpartition(":")[2])
            with pytest.raises(CannotListenError):
                await WebhookServer("127.0.0.1", port, Serving(ISSUED.pair), allow).__aenter__()

    asyncio.run(scenario())


class TestTls:
    """Who is believed, and how."""

    def test_by_name(self) -> None:
        """B9: the API server comes by the Service's name, and finds it in the certificate."""

        async def scenario() -> None:
            async with webhook() as server:
                host, port = server.url.removeprefix("https://").split(":")
                for name in NAMES:
                    _, writer = await asyncio.open_connection(host, int(port), ssl=trusting(), server_hostname=name)
                    assert writer.get_extra_info("ssl_object").version() in {"TLSv1.2", "TLSv1.3"}
                    writer.close()
                with pytest.raises(ssl.SSLCertVerificationError):
                    await asyncio.open_connection(host, int(port), ssl=trusting(), server_hostname="other")

        asyncio.run(scenario())

    def test_nothing_below_1_2(self) -> None:
        """B9: what is broken is not spoken, also where OpenSSL would still do it."""
        assert serving_context(Serving(ISSUED.pair)).minimum_version is ssl.TLSVersion.TLSv1_2

        async def scenario() -> None:
            async with webhook() as server:
                host, port = server.url.removeprefix("https://").split(":")
                context = trusting()
                with pytest.warns(DeprecationWarning, match="TLS"):
                    context.minimum_version = ssl.TLSVersion.TLSv1
                with pytest.warns(DeprecationWarning, match="TLS"):
                    context.maximum_version = ssl.TLSVersion.TLSv1_1
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await asyncio.open_connection(host, int(port), ssl=context)

        asyncio.run(scenario())

    def test_a_new_certificate(self) -> None:
        """B9: it is shown from the next connection on; a connection that is there stays."""
        other = issue(NAMES, utc_now())

        async def scenario() -> None:
            async with (
                webhook() as server,
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting())) as session,
            ):
                for number in range(2):
                    if number:
                        server.show(Serving(other.pair))
                    async with session.post(f"{server.url}{PATH}", json=QUESTION) as reply:
                        assert reply.status == 200
                assert (await post(server, issued=other))[0] == 200
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await post(server)

        asyncio.run(scenario())

    def test_who_may_ask(self, tmp_path: Path) -> None:
        """B9: with a CA for clients, only who shows a certificate of it; a new one counts at once."""
        first, second = (authority(tmp_path / name) for name in ("first", "second"))

        async def scenario() -> None:
            async with webhook(client_ca=first.certificate.read_bytes()) as server:
                known, stranger = as_client(first.client("a")), as_client(second.client("b"))
                assert await answered(server, known)
                assert not await answered(server, stranger)
                assert not await answered(server, trusting())
                server.show(Serving(ISSUED.pair, second.certificate.read_bytes()))
                assert not await answered(server, known)
                assert await answered(server, stranger)
                with pytest.raises(ConfigError, match="the certificate authority is not a certificate in PEM"):
                    server.show(Serving(ISSUED.pair, b""))
                assert await answered(server, stranger)

        asyncio.run(scenario())

    def test_a_server_is_no_client(self, tmp_path: Path) -> None:
        """B9: a certificate for servers opens nothing, be it of the right CA."""
        made = authority(tmp_path / "made")

        async def scenario() -> None:
            async with webhook(client_ca=made.certificate.read_bytes()) as server:
                assert not await answered(server, as_client(made.server("a")))

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        "pair",
        [
            KeyPair(issue(NAMES, utc_now()).pair.certificate, ISSUED.pair.key),
            KeyPair(b"", b""),
            KeyPair(ISSUED.pair.certificate, b"-----BEGIN PRIVATE KEY-----\n"),
        ],
    )
    def test_a_certificate_of_no_use(self, pair: KeyPair) -> None:
        """B9: one that was written half does not take the place of the one that works."""

        async def scenario() -> None:
            async with webhook() as server:
                with pytest.raises(ConfigError, match="the serving certificate and key are of no use"):
                    server.show(Serving(pair))
                assert (await post(server))[0] == 200

        asyncio.run(scenario())
