"""Replies from bytes: however they are cut, whatever comes before and after them, and what is none."""

from __future__ import annotations

import pytest

from cidrella.kube.replies import HEAD_MAX, BadReplyError, Reply, ReplyParser

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
JSON = "application/json"
PLAIN = OK + b"Content-Length: 2\r\n\r\n{}"
REPLIES = [
    (PLAIN, Reply(200, JSON, "", b"{}"), True),
    (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n", Reply(200, JSON, "", b"{}"), True),
    (
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nContent-Type: x\r\n\r\n",
        Reply(200, JSON, "", b"{}"),
        True,
    ),
    (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", Reply(200, JSON, "", b"{}"), False),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nContent-Type: x\r\n\r\n" + PLAIN,
        Reply(200, JSON, "", b"{}"),
        True,
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", Reply(200, "", "", b"{}"), False),
    (b"HTTP/1.1 429 No\r\ncOnTent-type: a\r\nRETRY-AFTER: 7\r\ncontent-length: 0\r\n\r\n", Reply(429, "a", "7"), True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", Reply(204, "", ""), True),
    (b"HTTP/1.1 304\r\n\r\n", Reply(304, "", ""), True),
]


def whole(parser: ReplyParser) -> Reply:
    assert parser.head is not None
    return parser.head._replace(body=bytes(parser.body))


def feed_for_ever(parser: ReplyParser, text: bytes) -> None:
    while parser.size < 10 * HEAD_MAX:
        assert not parser.feed(text)


@pytest.mark.parametrize(("text", "reply", "reusable"), REPLIES)
def test_cut_anywhere(text: bytes, reply: Reply, reusable: bool) -> None:
    """A reply is the same wherever its bytes are cut, and ends with the last of them."""
    for cut in range(len(text)):
        parser = ReplyParser()
        parser.expect()
        assert not parser.feed(text[:cut])
        assert parser.feed(text[cut:])
        assert (whole(parser), parser.reusable) == (reply, reusable)


def test_one_after_another_byte_by_byte() -> None:
    """Replies follow each other on a connection, and nothing of one is in the next."""
    parser = ReplyParser()
    for text, reply, reusable in REPLIES:
        if reusable:
            parser.expect()
            assert [parser.feed(bytes([byte])) for byte in text].index(True) == len(text) - 1
            assert whole(parser) == reply


@pytest.mark.parametrize(
    "surplus", [b"H", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 409 No\r\nContent-Length: 1\r\n\r\nx", b"{}", b"\0"]
)
@pytest.mark.parametrize("text", [PLAIN, OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"])
def test_surplus(text: bytes, surplus: bytes) -> None:
    """What follows a reply leaves it as it is, and nothing can be expected from there any more."""
    parser = ReplyParser()
    parser.expect()
    assert parser.feed(text + surplus)
    assert whole(parser) == Reply(200, JSON, "", b"{}")
    assert not parser.reusable


def test_without_a_length() -> None:
    """A reply without a length goes on until nothing more comes in."""
    parser = ReplyParser()
    parser.expect()
    assert not parser.feed(OK + b"\r\n{")
    assert not parser.feed(b"}")
    parser.finish()
    assert parser.ended
    assert whole(parser) == Reply(200, JSON, "", b"{}")
    assert not parser.reusable


@pytest.mark.parametrize("text", [each[0] for each in REPLIES])
def test_half_of_one(text: bytes) -> None:
    """A reply that stops before its end has none."""
    for cut in range(len(text)):
        parser = ReplyParser()
        parser.expect()
        parser.feed(text[:cut])
        parser.finish()
        assert not parser.ended
        assert not parser.reusable


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA\x00: b\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: spdy\r\n\r\nx",
    ],
)
def test_no_reply(text: bytes) -> None:
    """What is no HTTP, means two things at once, or wants to speak something else, is an error."""
    parser = ReplyParser()
    parser.expect()
    with pytest.raises(BadReplyError, match="the reply is no HTTP: "):
        parser.feed(text)
    assert not parser.reusable


@pytest.mark.parametrize("text", [b"X: y\r\n", b"x"])
def test_a_head_has_a_limit(text: bytes) -> None:
    """Headers that go on for ever, or one that does, are given up on before they fill the memory."""
    parser = ReplyParser()
    parser.expect()
    parser.feed(b"HTTP/1.1 200 OK\r\n")
    with pytest.raises(BadReplyError, match=f"does not begin within {HEAD_MAX} bytes"):
        feed_for_ever(parser, text)


def test_interim_replies_have_a_limit() -> None:
    """A server that says `100 Continue` for ever does not keep us for ever."""
    parser = ReplyParser()
    parser.expect()
    with pytest.raises(BadReplyError, match="does not begin"):
        feed_for_ever(parser, b"HTTP/1.1 100 Continue\r\n\r\n")
