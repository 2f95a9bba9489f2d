"""Without a fault the proxy is not there: what goes through it, how it is stopped, and what it tells.

The server behind the proxy is a stand-in for the API server (`standin`): these tests are about the proxy alone. The
faults have a file of their own, `test_proxy_faults.py`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import IncompleteRead, RemoteDisconnected
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.testenv.faults import cut, gone, server_error, stall
from tests.testenv.proxy import FaultProxy
from tests.testenv.proxy_bench import Bench, Clients, bench_of
from tests.testenv.proxy_exchange import Conversation
from tests.testenv.proxy_log import End
from tests.testenv.standin import BREAK, PATIENCE, serving
from tests.testenv.standin_certificates import Certificates, make_certificates

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = os.urandom(1024) * 5000
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["http", "https"])
def bench(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Bench]:
    with bench_of(certificates if request.param == "https" else None) as bench:
        yield bench


def receive(client: socket.socket, end: bytes) -> bytes:
    """Receive until what was received ends like this."""
    received = b""
    while not received.endswith(end):
        piece = client.recv(65536)
        assert piece, f"the connection ended after {received!r}"
        received += piece
    return received


class TestPassingThrough:
    """Requests and replies come out as they went in."""

    def test_heads(self, bench: Bench) -> None:
        """Method, path, query and headers go through unchanged, in order, in their case, tokens included."""
        client = bench.client()
        sent = [("Host", "api"), ("authorization", "Bearer abc"), ("X-Odd-CASE", "a"), ("x-odd-case", "b")]
        client.putrequest("GET", "/a%20b/?q=1&q=%2F", skip_host=True, skip_accept_encoding=True)
        for name, value in sent:
            client.putheader(name, value)
        client.endheaders()
        reply = client.getresponse()
        assert reply.read() == b"/a%20b/?q=1&q=%2F"
        assert reply.getheaders() == [("Content-Length", "17"), ("X-Odd-Case", "Kept as it is")]
        assert reply.reason == "OK"
        assert [(seen.method, seen.path, seen.headers) for seen in bench.standin.seen] == [
            ("GET", "/a%20b/?q=1&q=%2F", sent)
        ]

    def test_big_bodies(self, bench: Bench) -> None:
        """Megabytes go through in both directions, byte by byte the same."""
        assert bench.ask("/echo", "POST", BIG).read() == BIG
        assert bench.standin.seen[0].body == BIG

    def test_big_bodies_in_chunks(self, bench: Bench) -> None:
        """Megabytes of chunks go through in both directions at once."""
        client = bench.client()
        pieces = (BIG[at : at + 100_000] for at in range(0, len(BIG), 100_000))
        client.request("POST", "/chunked", pieces, {"Transfer-Encoding": "chunked"}, encode_chunked=True)
        reply = client.getresponse()
        assert reply.getheader("Transfer-Encoding") == "chunked"
        assert reply.read() == BIG

    def test_a_body_is_carried_as_it_comes(self, bench: Bench) -> None:
        """A piece of a request, and the reply to it, arrive before the next piece is sent."""
        client = bench.raw(b"POST /chunked HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        receive(client, b"\r\n\r\n")
        for piece in (b"first", b"second"):
            client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            assert bench.standin.pieces.get(timeout=PATIENCE) == piece
            assert receive(client, piece + b"\r\n")
        client.sendall(b"0\r\n\r\n")
        receive(client, b"0\r\n\r\n")

    def test_a_watch_is_carried_as_it_comes(self, bench: Bench) -> None:
        """A line of a watch arrives before the next one is sent."""
        reply = bench.ask("/watch")
        for number in range(20):
            line = b'{"type":"ADDED","number":%d}\n' % number
            bench.standin.to_watch.put(line)
            assert reply.readline() == line
        bench.standin.to_watch.put(None)
        assert reply.read() == b""

    def test_connections_are_kept(self, bench: Bench) -> None:
        """Many requests of a client take one connection to the proxy, and one from there."""
        client = bench.client()
        for number in range(20):
            client.request("POST" if number % 2 else "GET", "/echo", b"body" if number % 2 else None)
            assert client.getresponse().read() == (b"body" if number % 2 else b"/echo")
        assert [entry.connection for entry in bench.proxy.requests] == [1] * 20
        assert len({seen.connection for seen in bench.standin.seen}) == 1

    def test_connections_are_kept_when_a_reply_overtakes(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """A reply that is complete before the end of its request was looked at costs no connection."""

        async def look_at_nothing(*_: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(Conversation, "_carry_request_until_gone", look_at_nothing)
        client = bench.client()
        for _ in range(2):
            client.request("GET", "/")
            assert client.getresponse().read() == b"/"
        assert [entry.connection for entry in bench.proxy.requests] == [1, 1]
        assert len({seen.connection for seen in bench.standin.seen}) == 1

    def test_no_bodies(self, bench: Bench) -> None:
        """Replies to HEAD, and those that say 204, have no body, and the connection goes on."""
        client = bench.client()
        client.request("HEAD", "/seven!")
        reply = client.getresponse()
        assert (reply.getheader("Content-Length"), reply.read()) == ("7", b"")
        client.request("DELETE", "/")
        reply = client.getresponse()
        assert (reply.status, reply.getheaders(), reply.read()) == (204, [], b"")
        client.request("GET", "/next")
        assert client.getresponse().read() == b"/next"
        assert {entry.connection for entry in bench.proxy.requests} == {1}

    def test_the_last_of_its_connection(self, bench: Bench) -> None:
        """Where the API server closes after a reply the client is told so, and has the whole reply."""
        client = bench.raw(GET % b"/goodbye")
        received = receive(client, b"goodbye\n")
        assert b"\r\nConnection: close\r\n" in received
        assert client.recv(1) == b""

    def test_a_client_that_wants_no_more(self, bench: Bench) -> None:
        """Where the client asks for the connection to be closed, it is, properly."""
        client = bench.raw(b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        receive(client, b"/last")
        assert client.recv(1) == b""

    def test_requests_in_one_piece(self, bench: Bench) -> None:
        """Requests that are sent without waiting for replies are answered in order."""
        client = bench.raw(GET % b"/first" + GET % b"/second" + GET % b"/third")
        received = receive(client, b"/third")
        assert received.index(b"/first") < received.index(b"/second")
        assert bench.standin.paths() == ["GET /first", "GET /second", "GET /third"]

    def test_being_asked_for_the_body(self, bench: Bench) -> None:
        """A client that waits to be asked for its body is asked by the API server, through the proxy."""
        client = bench.raw(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert receive(client, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.sendall(b"body")
        assert receive(client, b"body").startswith(b"HTTP/1.1 200 ")

    def test_a_reply_before_the_end_of_the_request(self, bench: Bench) -> None:
        """A reply does not wait for the request's end, and is not lost to a client that still sends."""
        client = bench.raw(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nfour" % len(BIG))
        receive(client, b"early\n")
        client.sendall(BIG[4:])
        assert client.recv(1) == b""

    def test_a_long_token(self, bench: Bench) -> None:
        """A head may be much longer than HTTP libraries like it by default."""
        client = bench.client()
        client.request("GET", "/", headers={"Authorization": "x" * 60_000})
        assert client.getresponse().read() == b"/"
        assert dict(bench.standin.seen[0].headers)["Authorization"] == "x" * 60_000

    def test_switching_protocols(self, bench: Bench) -> None:
        """An offer to switch to another protocol is not passed on, and the request is answered as any other."""
        client = bench.raw(b"GET /up HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert receive(client, b"/up").startswith(b"HTTP/1.1 200 ")
        assert "Upgrade" not in dict(bench.standin.seen[0].headers)

    def test_many_at_once(self, bench: Bench) -> None:
        """Many clients are served at the same time, while others watch, and nobody gets another's reply."""
        watches = [bench.ask("/watch") for _ in range(3)]

        def ten(client_number: int) -> bool:
            client, right = bench.client(), 0
            for number in range(10):
                body = b"%d/%d" % (client_number, number) * 1000
                client.request("POST", "/echo", body)
                right += client.getresponse().read() == body
            return right == 10

        with ThreadPoolExecutor(16) as threads:
            assert all(threads.map(ten, range(16)))
        assert len(bench.proxy.requests) == len(watches) + 160
        for _ in watches:
            bench.standin.to_watch.put(None)
        assert [watch.read() for watch in watches] == [b""] * len(watches)

    def test_what_is_not_http(self, bench: Bench) -> None:
        """A request that is not HTTP is refused with the reason, and the proxy goes on."""
        client = bench.raw(b"what is this?\r\n\r\n")
        received = receive(client, b"\n")
        assert received.startswith(b"HTTP/1.1 400 ")
        assert bench.ask("/next").read() == b"/next"
        assert len(bench.proxy.requests) == 1


class TestPeersThatGo:
    """What happens to one side happens to the other."""

    def test_a_client_that_leaves_its_watch(self, bench: Bench) -> None:
        """The API server learns that a client has gone while it was waiting for a reply."""
        client = bench.client()
        client.request("GET", "/hang")
        assert bench.standin.hanging.wait(PATIENCE)
        client.close()
        assert bench.standin.left.wait(PATIENCE)
        bench.proxy.wait_for(lambda entry: entry.end is End.CLIENT_GONE)

    def test_a_reply_that_breaks_off(self, bench: Bench) -> None:
        """A reply that the API server does not finish does not look finished to the client."""
        reply = bench.ask("/watch")
        bench.standin.to_watch.put(b"line\n")
        assert reply.readline() == b"line\n"
        bench.standin.to_watch.put(BREAK)
        with pytest.raises(IncompleteRead):
            reply.read()
        bench.proxy.wait_for(lambda entry: entry.end is End.UPSTREAM_LOST)

    def test_an_idle_connection_that_the_server_ends(self, bench: Bench) -> None:
        """An idle client learns that the API server has closed the connection, as it would without a proxy."""
        client = bench.raw(GET % b"/first")
        receive(client, b"/first")
        bench.standin.disconnect()
        assert client.recv(1) == b""

    def test_a_server_that_is_not_there(self) -> None:
        """A client of an API server that cannot be reached loses its connection, and the log says why."""
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with FaultProxy(url) as proxy, Clients(proxy) as clients:
            with pytest.raises(RemoteDisconnected):
                clients.ask("/")
            proxy.wait_for(lambda entry: entry.end is End.UPSTREAM_LOST)

    def test_a_client_that_leaves_while_the_server_is_silent(self, certificates: Certificates) -> None:
        """A client that gives up while the API server does not even shake hands takes its request with it."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"
            with FaultProxy(url, ca=certificates.ca) as proxy, Clients(proxy) as clients:
                clients.raw(GET % b"/").close()
                proxy.wait_for(lambda entry: entry.end is End.CLIENT_GONE)


class TestTls:
    """Both sides are real TLS, each with its own certificates."""

    def test_the_proxys_certificate(self, certificates: Certificates) -> None:
        """A client that does not trust the proxy's certificate goes away; one that does is served."""
        with bench_of(certificates) as bench:
            with bench.tcp() as client, pytest.raises(ssl.SSLCertVerificationError):
                ssl.create_default_context().wrap_socket(client, server_hostname="127.0.0.1")
            assert bench.ask("/").status == 200

    def test_not_http_2(self, certificates: Certificates) -> None:
        """A client that would rather speak HTTP/2, as Go's do, is told to speak HTTP/1.1."""
        with bench_of(certificates) as bench:
            context = certificates.for_client()
            context.set_alpn_protocols(["h2", "http/1.1"])
            with context.wrap_socket(bench.tcp(), server_hostname="127.0.0.1") as client:
                assert client.selected_alpn_protocol() == "http/1.1"

    def test_the_servers_certificate(self, certificates: Certificates, tmp_path: Path) -> None:
        """The proxy sends nothing to a server whose certificate is not of the CA that it was given."""
        others = make_certificates(tmp_path)
        with serving(certificates) as standin, FaultProxy(standin.url, ca=others.ca) as proxy:
            with Clients(proxy) as clients, pytest.raises(RemoteDisconnected):
                clients.ask("/")
            proxy.wait_for(lambda entry: entry.end is End.UPSTREAM_LOST)
            assert standin.paths() == []

    def test_a_client_certificate(self, certificates: Certificates) -> None:
        """A server that asks for a certificate is shown the proxy's, and refuses a proxy that has none."""
        with serving(certificates, ask_for_certificate=True) as standin:
            without = FaultProxy(standin.url, ca=certificates.ca)
            with without, Clients(without) as clients, pytest.raises(RemoteDisconnected):
                clients.ask("/")
            certificate, key = certificates.client, certificates.client_key
            proxy = FaultProxy(standin.url, ca=certificates.ca, client_certificate=certificate, client_key=key)
            with proxy, Clients(proxy) as clients:
                assert clients.ask("/").status == 200
        assert [seen.certificate for seen in standin.seen] == ["stand-in client"]


class TestRulesOnTheWire:
    """Rules apply to what arrives, from when they are added until they are removed."""

    def test_nth_of_those_that_match(self, bench: Bench) -> None:
        """Method, path and number choose the request; all others go through."""
        rule = bench.proxy.add(server_error(), method="POST", path=r"^/echo\?b=2$", nth=2)
        statuses = [
            bench.ask(path, method, b"" if method == "POST" else None).status
            for path in ("/echo?b=2", "/echo?b=3")
            for method in ("POST", "GET", "POST", "POST")
        ]
        assert statuses == [200, 200, 500, 200, 200, 200, 200, 200]
        assert (rule.seen, rule.hits) == (3, 1)

    def test_removal(self, bench: Bench) -> None:
        """A rule that was removed no longer applies, on a connection that it has already hit too."""
        first, _ = bench.proxy.add(gone()), bench.proxy.add(server_error())
        client, statuses = bench.client(), []
        for change in (partial(bench.proxy.remove, first), bench.proxy.clear, bench.proxy.clear):
            client.request("GET", "/")
            reply = client.getresponse()
            reply.read()
            statuses.append(reply.status)
            change()
        assert statuses == [410, 500, 200]

    def test_same_seed_same_faults(self) -> None:
        """The same requests meet the same faults with the same seed, and others with another."""

        def outcomes(seed: int) -> list[object]:
            with bench_of(seed=seed) as bench:
                bench.proxy.add(cut(), probability=0.3)
                bench.proxy.add(server_error(), probability=0.3)
                return [self.outcome(bench) for _ in range(30)]

        first = outcomes(11)
        assert set(first) == {200, 500, "cut"}
        assert outcomes(11) == first
        assert outcomes(12) != first

    @staticmethod
    def outcome(bench: Bench) -> object:
        try:
            return bench.ask("/").status
        except RemoteDisconnected:
            return "cut"


class TestLog:
    """The proxy tells what it has seen."""

    def test_entries(self, bench: Bench) -> None:
        """Each request has its connection, method, path, time, rule, status and end, in the order of arrival."""
        rule = bench.proxy.add(server_error(), path="own")
        before = time.time()
        bench.ask("/echo?a=b", "POST", b"").read()
        bench.ask("/own").read()
        bench.proxy.wait_for(lambda entry: entry.end is End.COMPLETE, count=2)
        entries = bench.proxy.requests
        assert [(entry.connection, entry.method, entry.path, entry.rule, entry.status) for entry in entries] == [
            (1, "POST", "/echo?a=b", None, 200),
            (2, "GET", "/own", rule, None),
        ]
        assert before - 1 <= entries[0].at <= entries[1].at + 1 <= time.time() + 2  # a clock may be set meanwhile

    def test_a_reading_does_not_change(self, bench: Bench) -> None:
        """What was read of the log stays as it was, while the log goes on."""
        reply = bench.ask("/watch")
        read = bench.proxy.requests
        bench.standin.to_watch.put(None)
        reply.read()
        bench.proxy.wait_for(lambda entry: entry.end is End.COMPLETE)
        assert [entry.end for entry in read] == [None]

    def test_waiting_in_vain(self, bench: Bench) -> None:
        """Who waits for what does not come is told what came instead."""
        bench.ask("/something").read()
        with pytest.raises(TimeoutError, match="/something"):
            bench.proxy.wait_for(count=2, timeout=0.01)


class TestStopping:
    """Nothing is left of a proxy that was stopped."""

    def test_with_everything_open(self, certificates: Certificates) -> None:
        """Idle, watching, stalled, half sent and half shaken hands: all end, and no thread or socket is left."""
        open_before = open_files()
        with bench_of(certificates) as bench:
            bench.proxy.add(stall(), path="^/stall$")
            requests = [GET % path for path in (b"/idle", b"/hang", b"/watch", b"/stall")]
            half = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
            connections = [bench.raw(data) for data in (*requests, half, b"GET /ha", b"")] + [bench.tcp()]
            receive(connections[0], b"/idle")
            assert bench.standin.hanging.wait(PATIENCE)
            bench.proxy.wait_for(count=5)
            bench.proxy.stop()
            assert "fault-proxy" not in {thread.name for thread in threading.enumerate()}
            for connection in connections:
                wait_for_end(connection)
            assert [entry.end for entry in bench.proxy.requests if entry.path != "/idle"] == [End.STOPPED] * 4
            assert bench.standin.left.wait(PATIENCE)
        gc.collect()  # a socket or a loop that is not closed would warn now, and fail the test
        assert open_files() == open_before

    def test_while_a_client_connects(self, bench: Bench) -> None:
        """A connection that comes in at the very moment of stopping is ended too."""
        running = bench.proxy._running
        assert running
        gate = threading.Event()
        running._loop.call_soon_threadsafe(gate.wait)  # until then, the loop sees neither the client nor the stop
        client = bench.tcp()
        running._loop.call_soon_threadsafe(running._stopping.set)
        gate.set()
        bench.proxy.stop()
        wait_for_end(client)
        gc.collect()  # a socket that is not closed would warn now, and fail the test

    def test_nothing_answers_any_more(self, bench: Bench) -> None:
        """A proxy that was stopped refuses connections, and stopping it again does nothing."""
        bench.proxy.stop()
        bench.proxy.stop()
        with pytest.raises(ConnectionRefusedError):
            bench.ask("/")

    def test_starting_again(self, bench: Bench) -> None:
        """A proxy can be started again, with its rules and its log, at a URL that may be another."""
        bench.proxy.add(server_error(), nth=2)
        assert bench.ask("/").status == 200
        bench.proxy.stop()
        bench.proxy.start()
        assert bench.ask("/").status == 500
        assert len(bench.proxy.requests) == 2

    def test_mistakes_of_its_own(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        """What goes wrong within the proxy is raised when it stops, rather than taken for a fault."""

        def broken(*_: object) -> None:
            raise RuntimeError("a mistake")

        monkeypatch.setattr(bench.proxy._script, "decide", broken)
        with pytest.raises(RemoteDisconnected):
            bench.ask("/")
        with pytest.raises(ExceptionGroup) as caught:
            bench.proxy.stop()
        assert caught.group_contains(RuntimeError, match="a mistake")

    @pytest.mark.parametrize("url", ["", "127.0.0.1:6443", "https://127.0.0.1", "ftp://127.0.0.1:21"])
    def test_odd_urls(self, url: str) -> None:
        """Something that is not the URL of an API server is refused before anything starts."""
        with pytest.raises(ValueError, match="not the URL"):
            FaultProxy(url)


def open_files() -> int:
    """Return how many files and sockets this process has open."""
    return len([*Path("/dev/fd").iterdir()])


def wait_for_end(connection: socket.socket) -> None:
    """Return when the other side has ended the connection, one way or another. Raises TimeoutError."""
    with suppress(ConnectionResetError, ssl.SSLEOFError):
        while connection.recv(65536):
            pass
