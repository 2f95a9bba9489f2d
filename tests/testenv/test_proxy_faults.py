"""Every fault of the proxy happens to a plain client, with and without TLS, and says so in the proxy's log.

The server behind the proxy is a stand-in for the API server (`standin`): these tests are about the proxy alone.
Where a client waits for what never comes, its timeout is short; what does come may take as long as a slow day needs.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import suppress
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from threading import Event
from typing import TYPE_CHECKING

import pytest

from tests.testenv import faults
from tests.testenv.ports import free_port
from tests.testenv.proxy import FaultProxy
from tests.testenv.proxy_bench import Bench, Clients, bench_of
from tests.testenv.proxy_log import End
from tests.testenv.standin import PATIENCE
from tests.testenv.standin_certificates import Certificates, make_certificates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.testenv.proxy_log import Entry

LONG = 600.0
"""Seconds that no test waits for."""
SHORT = 0.1
"""Seconds that a test can afford to wait for nothing."""
LINES = [b'{"type":"ADDED"}\n', b'{"type":"MODIFIED"}\n', b'{"type":"DELETED"}\n']
PATCH = b"PATCH /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
ASKING = b"PATCH /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
WATCHED = b"".join(LINES)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(params=["http", "https"])
def bench(request: pytest.FixtureRequest, certificates: Certificates) -> Iterator[Bench]:
    with bench_of(certificates if request.param == "https" else None) as bench:
        yield bench


def put_lines(bench: Bench) -> None:
    """Let a watch of the stand-in have all lines, and end."""
    for line in [*LINES, None]:
        bench.standin.to_watch.put(line)


def wait_in_vain(bench: Bench) -> HTTPConnection:
    """Send a request to which no reply comes, and return the client, which has waited for one."""
    client = bench.client()
    client.request("PATCH", "/echo", b"body")
    bench.proxy.wait_for()
    client.sock.settimeout(SHORT)
    with pytest.raises(TimeoutError):
        client.getresponse()
    return client


def last(bench: Bench, end: End) -> Entry:
    """Return the last entry of the log, once it has ended, and this way."""
    bench.proxy.wait_for(lambda entry: entry.end is not None, count=len(bench.proxy.requests))
    entry = bench.proxy.requests[-1]
    assert entry.end is end
    return entry


def end_of_tcp(client: socket.socket) -> str:
    """Return how the connection ends. Looks beneath TLS, where Python 3.11 takes a reset for a mere end."""
    try:
        while socket.socket.recv(client, 65536):
            pass
    except ConnectionResetError:
        return "reset"
    return "closed"


class TestBeforeForwarding:
    """Faults of which the API server learns nothing, or learns late."""

    def test_delay(self, bench: Bench) -> None:
        """A delayed request takes at least that long, and goes through unharmed."""
        bench.proxy.add(faults.delay(SHORT))
        begin = time.monotonic()
        assert bench.ask("/echo", "PATCH", b"body").read() == b"body"
        assert time.monotonic() - begin >= SHORT * 0.9  # clocks are not that exact
        assert last(bench, End.COMPLETE).status == 200

    def test_delay_and_a_client_that_gives_up(self, bench: Bench) -> None:
        """A client that gives up during the delay takes its request with it."""
        bench.proxy.add(faults.delay(LONG))
        wait_in_vain(bench).close()
        assert last(bench, End.CLIENT_GONE).status is None
        assert bench.standin.paths() == []

    def test_delay_even_if_gone(self, bench: Bench) -> None:
        """A request can arrive although its client gave up during the delay."""
        bench.proxy.add(faults.delay(SHORT, even_if_gone=True))
        client = bench.client()
        client.request("PATCH", "/echo", b"late")
        bench.proxy.wait_for()
        client.close()
        bench.proxy.wait_for(lambda entry: entry.status == 200)
        assert [(seen.method, seen.body) for seen in bench.standin.seen] == [("PATCH", b"late")]

    def test_hold(self, bench: Bench) -> None:
        """A request arrives when it is let go, although its client gave up, and not before."""
        let_go = Event()
        bench.proxy.add(faults.hold(let_go), nth=1)
        client = bench.client()
        client.request("PATCH", "/echo", b"held")
        bench.proxy.wait_for()
        client.close()
        bench.ask("/echo")
        assert [seen.method for seen in bench.standin.seen] == ["GET"]
        let_go.set()
        bench.proxy.wait_for(lambda entry: entry.rule is not None and entry.status == 200)
        assert [(seen.method, seen.body) for seen in bench.standin.seen][1:] == [("PATCH", b"held")]

    def test_cut(self, bench: Bench) -> None:
        """The client loses the connection without a reply, and the request goes nowhere."""
        rule = bench.proxy.add(faults.cut())
        with pytest.raises(RemoteDisconnected):
            bench.ask("/echo", "PATCH", b"x" * 300_000)
        assert last(bench, End.FAULT).rule is rule
        assert bench.standin.paths() == []

    def test_cut_of_a_client_that_waits_to_be_asked(self, bench: Bench) -> None:
        """A client that waits to be asked for its body is cut without having been asked."""
        bench.proxy.add(faults.cut())
        client = bench.raw(ASKING)
        with suppress(ssl.SSLEOFError):
            assert client.recv(1) == b""
        last(bench, End.FAULT)

    @pytest.mark.parametrize("fault", [faults.delay(0), faults.server_error()])
    def test_a_body_that_has_to_be_asked_for(self, bench: Bench, fault: faults.Fault) -> None:
        """Where the body is wanted before the API server could ask for it, the proxy asks, and it alone."""
        bench.proxy.add(fault)
        client = bench.raw(ASKING)
        asked = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert client.recv(len(asked)) == asked
        client.sendall(b"body")
        assert client.recv(65536).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 500 "))
        last(bench, End.COMPLETE)

    def test_cut_has_no_goodbye(self, bench: Bench) -> None:
        """The end of TCP comes without that of TLS, as when a machine or a load balancer dies."""
        bench.proxy.add(faults.cut())
        assert end_of_tcp(bench.raw(PATCH)) == "closed"
        if bench.certificates:
            context = bench.certificates.for_client()
            context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # which early versions of Python 3.11 set
            client = bench.enter_context(
                context.wrap_socket(bench.tcp(), server_hostname="127.0.0.1", suppress_ragged_eofs=False)
            )
            client.sendall(PATCH)
            with pytest.raises(ssl.SSLError, match=r"(?i)eof"):
                client.recv(1)
        else:
            assert bench.raw(PATCH).recv(1) == b""

    def test_reset(self, bench: Bench) -> None:
        """The client's connection is reset, which is not the same as closed, and the request goes nowhere."""
        bench.proxy.add(faults.reset())
        assert end_of_tcp(bench.raw(PATCH)) == "reset"
        with pytest.raises(ConnectionResetError):
            bench.ask("/echo", "PATCH", b"body")
        last(bench, End.FAULT)
        assert bench.standin.paths() == []

    def test_stall(self, bench: Bench) -> None:
        """The client waits for a reply in vain, until it gives up, and the request goes nowhere."""
        bench.proxy.add(faults.stall())
        client = wait_in_vain(bench)
        assert [entry.end for entry in bench.proxy.requests] == [None]
        client.close()
        last(bench, End.CLIENT_GONE)
        assert bench.standin.paths() == []


class TestOwnAnswers:
    """Replies that the API server never gave."""

    def test_answer(self, bench: Bench) -> None:
        """The client gets exactly the reply of the script, and the request goes nowhere."""
        bench.proxy.add(faults.answer(418, "short\n", {"X-Own": "yes"}, "text/plain"))
        reply = bench.ask("/echo", "PATCH", b"x" * 300_000)
        assert (reply.status, reply.read()) == (418, b"short\n")
        assert reply.getheaders() == [("Content-Type", "text/plain"), ("Content-Length", "6"), ("X-Own", "yes")]
        assert last(bench, End.COMPLETE).status is None
        assert bench.standin.paths() == []

    def test_flood(self, bench: Bench) -> None:
        """The client gets so many bytes of a reply and loses the connection, and the request goes nowhere."""
        bench.proxy.add(faults.flood(600_000))
        reply = bench.ask("/echo")
        with pytest.raises(IncompleteRead) as cut:
            reply.read()
        assert len(cut.value.partial) == 600_000
        last(bench, End.FAULT)
        assert bench.standin.paths() == []

    def test_flood_that_stalls(self, bench: Bench) -> None:
        """The same, but the connection stays until the client gives up."""
        bench.proxy.add(faults.flood(600_000, stall=True))
        client = bench.client()
        client.request("GET", "/echo")
        reply = client.getresponse()
        assert reply.read(600_000) == b" " * 600_000
        client.sock.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            reply.read(1)
        client.close()
        last(bench, End.CLIENT_GONE)

    def test_flood_that_the_client_does_not_read(self, bench: Bench) -> None:
        """A client that has enough of it goes."""
        bench.proxy.add(faults.flood(1 << 30))
        client = bench.client()
        client.request("GET", "/echo")
        assert client.getresponse().read(1000) == b" " * 1000
        client.close()
        last(bench, End.CLIENT_GONE)

    def test_the_connection_stays_usable(self, bench: Bench) -> None:
        """After an answer of the proxy's own, the next request on the same connection goes through."""
        bench.proxy.add(faults.server_error(), nth=2)
        client = bench.client()
        statuses = []
        for _ in range(3):
            client.request("PATCH", "/echo", b"body")
            reply = client.getresponse()
            reply.read()
            statuses.append(reply.status)
        assert statuses == [200, 500, 200]
        assert {entry.connection for entry in bench.proxy.requests} == {1}
        assert len({seen.connection for seen in bench.standin.seen}) == 1

    @pytest.mark.parametrize("method", ["HEAD", "GET"])
    @pytest.mark.parametrize("status", [204, 500])
    def test_no_body_where_none_belongs(self, bench: Bench, method: str, status: int) -> None:
        """An answer to HEAD, and one that says 204, has no body, whatever the script gives it."""
        bench.proxy.add(faults.answer(status, "body"), nth=1)
        client = bench.client()
        client.request(method, "/")
        reply = client.getresponse()
        assert (reply.status, reply.read()) == (status, b"body" if (method, status) == ("GET", 500) else b"")
        client.request("GET", "/next")
        assert client.getresponse().read() == b"/next"

    def test_too_many_requests(self, bench: Bench) -> None:
        """429 comes as kube-apiserver sends it: plain text, with the seconds to wait in a header."""
        bench.proxy.add(faults.too_many_requests(retry_after=7))
        reply = bench.ask("/")
        assert (reply.status, reply.getheader("Retry-After")) == (429, "7")
        assert reply.getheader("Content-Type") == "text/plain; charset=utf-8"
        assert reply.read() == b"Too many requests, please try again later.\n"

    def test_too_many_requests_status(self, bench: Bench) -> None:
        """429 of an admission webhook comes with the seconds to wait, as a header and within a proper Status."""
        bench.proxy.add(faults.too_many_requests_status(retry_after=7))
        reply = bench.ask("/")
        assert (reply.status, reply.getheader("Retry-After")) == (429, "7")
        status = self.status_of(reply.read())
        assert (status["code"], status["reason"], status["details"]) == (
            429,
            "TooManyRequests",
            {"retryAfterSeconds": 7},
        )

    def test_server_error(self, bench: Bench) -> None:
        """500 comes as a proper Status."""
        bench.proxy.add(faults.server_error("etcd is away"))
        reply = bench.ask("/")
        status = self.status_of(reply.read())
        assert (reply.status, status["code"], status["reason"]) == (500, 500, "InternalError")
        assert "etcd is away" in str(status["message"])

    def test_gone(self, bench: Bench) -> None:
        """410 comes as a proper Status that says that a version has expired."""
        bench.proxy.add(faults.gone())
        reply = bench.ask("/")
        status = self.status_of(reply.read())
        assert (reply.status, status["code"], status["reason"]) == (410, 410, "Expired")

    def test_gone_event(self, bench: Bench) -> None:
        """410 also comes in the way of watches: 200, and one line with an ERROR event."""
        bench.proxy.add(faults.gone_event(), path=r"^/watch\?")
        reply = bench.ask("/watch?resourceVersion=1")
        event = json.loads(reply.readline())
        assert (reply.status, event["type"], reply.read()) == (200, "ERROR", b"")
        assert self.status_of(json.dumps(event["object"]).encode())["code"] == 410

    def test_html(self, bench: Bench) -> None:
        """A page of HTML comes with its type, and is no JSON."""
        bench.proxy.add(faults.html(503))
        reply = bench.ask("/")
        assert (reply.status, reply.getheader("Content-Type")) == (503, "text/html")
        assert reply.read().startswith(b"<html>")

    def test_plain_text(self, bench: Bench) -> None:
        """A line of plain text comes with its type."""
        bench.proxy.add(faults.plain_text(504))
        reply = bench.ask("/")
        assert (reply.status, reply.getheader("Content-Type")) == (504, "text/plain; charset=utf-8")
        assert reply.read() == b"504\n"

    def test_refused(self, bench: Bench) -> None:
        """A refusal comes as a proper Status, with the code of the reply."""
        bench.proxy.add(faults.refused(403, "Forbidden", "not today"))
        reply = bench.ask("/")
        status = self.status_of(reply.read())
        assert (reply.status, status["code"], status["reason"], status["message"]) == (
            403,
            403,
            "Forbidden",
            "not today",
        )

    @staticmethod
    def status_of(body: bytes) -> dict[str, object]:
        """Return a Status, having looked at what all of them have in common."""
        status: dict[str, object] = json.loads(body)
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        return status


class TestAnswerThenForward:
    """Replies that the API server never gave, to requests that it gets all the same, later."""

    @pytest.mark.parametrize(
        "own",
        [
            faults.html(408),
            faults.html(404),
            faults.html(401),
            faults.html(502),
            faults.plain_text(504),
            faults.too_many_requests(),
        ],
        ids=lambda own: str(own.status),
    )
    def test_answered_before_it_arrives(self, bench: Bench, own: faults.Answer) -> None:
        """The client has the whole reply of the script before the request arrives, unharmed and once."""
        bench.proxy.add(faults.answer_then_forward(own, SHORT))
        begin = time.monotonic()
        reply = bench.ask("/echo", "PATCH", b"late" * 100_000)
        assert (reply.status, reply.read()) == (own.status, own.body)
        assert last(bench, End.COMPLETE).status is None
        bench.proxy.wait_for(lambda entry: entry.status == 200)
        assert time.monotonic() - begin >= SHORT * 0.9  # clocks are not that exact
        assert [(seen.method, seen.body) for seen in bench.standin.seen] == [("PATCH", b"late" * 100_000)]

    def test_the_connection_stays_usable(self, bench: Bench) -> None:
        """What the client sends on the same connection meanwhile goes through, and first."""
        bench.proxy.add(faults.answer_then_forward(faults.html(408), SHORT), nth=1)
        client = bench.client()
        for body, status in ((b"late", 408), (b"soon", 200)):
            client.request("PATCH", "/echo", body)
            reply = client.getresponse()
            reply.read()
            assert reply.status == status
        bench.proxy.wait_for(lambda entry: entry.rule is not None and entry.status == 200)
        assert [seen.body for seen in bench.standin.seen] == [b"soon", b"late"]

    def test_even_if_gone(self, bench: Bench) -> None:
        """The request arrives although its client has the reply and has gone, or has lost its connection."""
        bench.proxy.add(faults.answer_then_forward(faults.html(408), SHORT))
        for lose in (False, True):
            client = bench.client()
            client.request("PATCH", "/echo", b"late")
            assert client.getresponse().status == 408
            if lose:
                bench.proxy.lose_connections()
            client.close()
        bench.proxy.wait_for(lambda entry: entry.status == 200, count=2)
        assert [seen.body for seen in bench.standin.seen] == [b"late"] * 2

    def test_stopped_before_it_is_forwarded(self, bench: Bench) -> None:
        """A proxy that is stopped forwards nothing more, and does not wait for what it would have."""
        bench.proxy.add(faults.answer_then_forward(faults.html(408), LONG))
        assert bench.ask("/echo", "PATCH", b"late").status == 408
        bench.proxy.stop()
        assert bench.standin.paths() == []


def test_forwarded_to_a_server_that_is_away() -> None:
    """A request that was answered and can no longer be forwarded is dropped; the proxy goes on."""
    with FaultProxy(f"http://127.0.0.1:{free_port()}") as proxy, Clients(proxy) as clients:
        proxy.add(faults.answer_then_forward(faults.html(408), 0), nth=1)
        assert clients.ask("/echo", "PATCH", b"late").status == 408
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            clients.ask("/echo")
        proxy.wait_for(lambda entry: entry.end is not None, count=2)
        assert [(entry.end, entry.status) for entry in proxy.requests] == [
            (End.COMPLETE, None),
            (End.UPSTREAM_LOST, None),
        ]


class TestAfterForwarding:
    """Faults of which the client alone knows: the API server has done its part."""

    def test_delay_reply(self, bench: Bench) -> None:
        """The API server has replied long before the client hears of it."""
        bench.proxy.add(faults.delay_reply(LONG))
        client = wait_in_vain(bench)
        bench.proxy.wait_for(lambda entry: entry.status == 200)
        assert bench.standin.paths() == ["PATCH /echo"]
        client.close()
        last(bench, End.CLIENT_GONE)

    def test_delay_reply_lets_it_through(self, bench: Bench) -> None:
        """A delayed reply takes at least that long, and comes unharmed."""
        bench.proxy.add(faults.delay_reply(SHORT))
        begin = time.monotonic()
        assert bench.ask("/echo", "PATCH", b"body").read() == b"body"
        assert time.monotonic() - begin >= SHORT * 0.9  # clocks are not that exact
        last(bench, End.COMPLETE)

    @pytest.mark.parametrize("reset", [False, True])
    def test_swallow(self, bench: Bench, reset: bool) -> None:
        """The request has gone through and been answered, and the client has only lost its connection."""
        bench.proxy.add(faults.swallow(reset=reset))
        assert end_of_tcp(bench.raw(PATCH)) == ("reset" if reset else "closed")
        with pytest.raises(ConnectionResetError):
            bench.ask("/echo", "PATCH", b"body")
        assert last(bench, End.FAULT).status == 200
        assert [seen.body for seen in bench.standin.seen] == [b"body"] * 2

    def test_swallow_takes_the_whole_reply(self, bench: Bench) -> None:
        """The connection is not lost before the reply has ended, however long that takes."""
        bench.proxy.add(faults.swallow())
        client = bench.raw(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        bench.standin.to_watch.put(LINES[0])
        bench.proxy.wait_for(lambda entry: entry.status == 200)
        client.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(PATIENCE)
        bench.standin.to_watch.put(None)
        assert end_of_tcp(client) == "closed"

    def test_swallow_even_if_gone(self, bench: Bench) -> None:
        """A client that does not wait for the end loses nothing of its request."""
        bench.proxy.add(faults.swallow())
        client = bench.client()
        client.request("GET", "/watch")
        bench.proxy.wait_for()
        client.close()
        bench.standin.to_watch.put(None)
        assert last(bench, End.FAULT).status == 200

    @pytest.mark.parametrize("after", [0, 20, len(WATCHED)])
    def test_stall_watch(self, bench: Bench, after: int) -> None:
        """A watch stops after that many bytes, without its end and without the end of the connection."""
        bench.proxy.add(faults.stall_watch(after), path="^/watch")
        put_lines(bench)
        client = bench.client()
        client.request("GET", "/watch")
        reply = client.getresponse()
        assert b"".join(reply.read(1) for _ in range(after)) == WATCHED[:after]
        client.sock.settimeout(SHORT)
        with pytest.raises(TimeoutError):
            reply.read(1)
        assert bench.proxy.requests[0].end is None
        client.close()
        assert last(bench, End.CLIENT_GONE).status == 200

    def test_lost_connections(self, bench: Bench) -> None:
        """All connections are lost at once: of who waits, of who watches and of who stalls; new ones are welcome."""
        bench.proxy.add(faults.stall(), path="^/stalled")
        waiting = [bench.client() for _ in range(3)]
        for client, path in zip(waiting, ("/watch", "/stalled", "/echo"), strict=True):
            client.request("GET", path)
        assert waiting[2].getresponse().read() == b"/echo"
        watching = waiting[0].getresponse()
        bench.proxy.wait_for(count=3)
        bench.proxy.lose_connections()
        with pytest.raises(IncompleteRead):
            watching.read()
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            waiting[1].getresponse()
        assert bench.ask("/echo").status == 200

    def test_lost_before_its_reset(self, bench: Bench) -> None:
        """A connection that is to be reset may have been lost before: then there is nothing left to do."""
        bench.proxy.add(faults.swallow(reset=True))
        client = bench.client()
        client.request("GET", "/watch")
        bench.proxy.wait_for()
        bench.proxy.lose_connections()
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            client.getresponse()
        bench.standin.to_watch.put(None)
        assert last(bench, End.FAULT).status == 200

    def test_lost_with_a_write_on_the_wire(self, bench: Bench) -> None:
        """What was sent before the connection was lost still arrives, late as it is."""
        bench.proxy.add(faults.delay(SHORT, even_if_gone=True))
        client = bench.client()
        client.request("PATCH", "/echo")  # without a body, which would come after what the log tells of
        bench.proxy.wait_for()
        bench.proxy.lose_connections()
        with pytest.raises((RemoteDisconnected, ConnectionResetError)):
            client.getresponse()
        bench.proxy.wait_for(lambda entry: entry.status == 200)
        assert [each.method for each in bench.standin.seen] == ["PATCH"]

    @pytest.mark.parametrize("after", [0, 20, len(WATCHED), len(WATCHED) + 1])
    def test_cut_reply(self, bench: Bench, after: int) -> None:
        """A watch is lost after exactly that many bytes, and never ends properly."""
        bench.proxy.add(faults.cut_reply(after), path="^/watch")
        put_lines(bench)
        with pytest.raises(IncompleteRead) as caught:
            bench.ask("/watch").read()
        assert caught.value.partial == WATCHED[:after]
        assert last(bench, End.FAULT).status == 200

    def test_cut_reply_with_a_reset(self, bench: Bench) -> None:
        """A watch can also be lost to a reset."""
        bench.proxy.add(faults.cut_reply(20, reset=True), path="^/watch")
        put_lines(bench)
        assert end_of_tcp(bench.raw(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")) == "reset"
        last(bench, End.FAULT)

    @pytest.mark.parametrize("whole", [0, 1, 2])
    def test_cut_reply_in_the_middle_of_a_line(self, bench: Bench, whole: int) -> None:
        """A watch is lost after that many whole lines and the first half of the next."""
        bench.proxy.add(faults.cut_reply(mid_line=True, after_lines=whole), path="^/watch")
        put_lines(bench)
        reply = bench.ask("/watch")
        with pytest.raises(IncompleteRead) as caught:
            reply.read()
        *lines, rest = caught.value.partial.splitlines(keepends=True)
        assert lines == LINES[:whole]
        assert 0 < len(rest) < len(LINES[whole]) - 1
        assert LINES[whole].startswith(rest)

    def test_cut_reply_of_known_length(self, bench: Bench) -> None:
        """A list whose length was told is cut too: the client gets less than it was told."""
        bench.proxy.add(faults.cut_reply(mid_line=True))
        with pytest.raises(IncompleteRead) as caught:
            bench.ask("/a/list/without/a/newline").read()
        assert caught.value.partial == b"/a/list/witho"

    def test_cut_reply_late(self, bench: Bench) -> None:
        """What goes before the cut arrives to the last byte, also when it is more than buffers hold."""
        body, after = bytes(range(256)) * 32_768, 7_654_321
        bench.proxy.add(faults.cut_reply(after))
        reply = bench.ask("/echo", "PATCH", body)
        with pytest.raises(IncompleteRead) as caught:
            reply.read()
        assert caught.value.partial == body[:after]


class TestBadScripts:
    """A fault that makes no sense is refused where it is written."""

    @pytest.mark.parametrize(
        "wrong",
        [
            faults.cut_reply,
            lambda: faults.cut_reply(3, mid_line=True),
            lambda: faults.cut_reply(3, after_lines=1),
            lambda: faults.cut_reply(-1),
            lambda: faults.cut_reply(mid_line=True, after_lines=-1),
            lambda: faults.stall_watch(-1),
            lambda: faults.delay(-1),
            lambda: faults.delay_reply(-1),
            lambda: faults.answer_then_forward(faults.html(408), -1),
        ],
    )
    def test_refused(self, wrong: Callable[[], faults.Fault]) -> None:
        """Contradictions and negative numbers raise ValueError."""
        with pytest.raises(ValueError, match=r"cut_reply|negative"):
            wrong()
