"""What a server replies, read from the bytes of a connection as they come in. Does no I/O.

Rules:

- However the bytes are cut, the reply is the same.
- Interim replies (1xx) are passed over. One that would have us speak another protocol is an error.
- What comes after the end of a reply belongs to nobody: the reply stands, and nothing more is read from there.

Theory of operation. A parser in C does the work and calls back; the callbacks for headers and body are the methods of
a dict and a bytearray, so that only the beginning, the head and the end of a reply come to Python at all. The C parser
keeps its callbacks, so these hold the `ReplyParser` only weakly: it is freed, with a partial body, as soon as its
connection is, and not at the next full garbage collection.
"""

from __future__ import annotations

import weakref
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_MAX: Final = 32 << 10
"""Bytes that a reply may take to begin, its headers and all interim replies included."""


class BadReplyError(Exception):
    """What came in is no reply, in words for people."""


class BodyTooLargeError(BadReplyError):
    """The reply has more bytes than the caller accepts."""


class Reply(NamedTuple):
    """A reply. The texts of headers are "" if they are absent."""

    code: int
    content_type: str
    retry_after: str
    body: bytes = b""


class ReplyParser:
    """The replies of one connection, one at a time: `expect` one, then `feed` until `ended`."""

    def __init__(self) -> None:
        self.head: Reply | None = None
        """The reply without its body, as soon as that is known."""
        self.body = bytearray()
        """The part of the body that was received and not read yet. The object stays the same: the reader clears it.

        One block of memory: a large one goes back to the system when it is freed, thousands of small ones may not.
        """
        self.size = 0
        """Bytes that came in since a reply was expected."""
        self.ended = True
        self.reusable = True
        """Whether another reply can follow."""
        self._to_the_end = False
        self.headers: dict[bytes, bytes] = {}
        """Those of the reply that is being read, until its head is known."""
        self._parser = HttpResponseParser(_Callbacks(self))

    def expect(self) -> None:
        """Forget the last reply, which has ended, and expect another."""
        self.head = None
        self.body.clear()
        self.size = 0
        self.ended = False
        self.headers.clear()

    def feed(self, data: bytes) -> bool:
        """Take in what came; whether the reply has ended. Raises BadReplyError: nothing can be expected any more."""
        self.size += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.reusable = False
            if not self.ended:
                raise BadReplyError(f"the reply is no HTTP: {error}") from error
        if self.head is None and self.size > HEAD_MAX:
            self.reusable = False
            raise BadReplyError(f"the reply is no HTTP: it does not begin within {HEAD_MAX} bytes")
        return self.ended

    def finish(self) -> None:
        """Nothing more comes in: for a reply without a length this is its end."""
        self.reusable = False
        if self.head is not None and self._to_the_end:
            self.ended = True

    def message_begun(self) -> None:
        """Raise, and so stop the C parser, where nothing was expected."""
        if self.ended:
            raise BadReplyError("nobody asked")

    def headers_completed(self) -> None:
        """Note the head of a reply, and forget that of an interim one."""
        code = self._parser.get_status_code()
        if code >= 200:
            headers = {name.lower(): value for name, value in self.headers.items()}
            content_type = headers.get(b"content-type", b"").decode("latin-1")
            self.head = Reply(code, content_type, headers.get(b"retry-after", b"").decode("latin-1"))
            self._to_the_end = b"content-length" not in headers and b"transfer-encoding" not in headers
        self.headers.clear()

    def message_completed(self) -> None:
        """Note the end of a reply; interim replies end too."""
        if self.head is not None:
            self.ended = True
            self.reusable = self._parser.should_keep_alive()


class _Callbacks:
    """What the C parser calls, by the names that it looks for. Holds the parser weakly: see above."""

    def __init__(self, parser: ReplyParser) -> None:
        self._parser = weakref.proxy(parser)
        self.on_header = parser.headers.__setitem__
        self.on_body = parser.body.extend

    def on_message_begin(self) -> None:
        self._parser.message_begun()

    def on_headers_complete(self) -> None:
        self._parser.headers_completed()

    def on_message_complete(self) -> None:
        self._parser.message_completed()
