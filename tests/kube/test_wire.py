"""What lists and watches look like on the wire."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.kube.errors import MalformedReplyError
from cidrella.kube.wire import Head, LineSplitter, Refusal, read_event, read_head, read_page, read_refusal


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@given(st.lists(st.binary(max_size=8).map(lambda text: text.replace(b"\n", b"x"))), st.data())
def test_lines_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    """A stream gives the same lines wherever its chunks end; half a line at its end is none."""
    stream = b"".join(line + b"\n" for line in lines) + b"half"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()
    found = [
        line
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for line in splitter.feed(stream[start:end])
    ]
    assert found == [line for line in lines if line.strip()]


def test_line_that_is_too_long() -> None:
    """An event beyond the limit is refused before it is kept, however small the chunks are in which it comes."""
    splitter = LineSplitter(longest=100)
    assert splitter.feed(b"x" * 100) == []
    assert splitter.feed(b"\n") == [b"x" * 100]
    assert splitter.feed(b"x" * 100) == []
    with pytest.raises(MalformedReplyError, match="100 bytes"):
        splitter.feed(b"x")


def test_large_event_in_small_chunks() -> None:
    """An event of several megabytes in chunks of a kilobyte is put together once, not once a chunk."""
    splitter = LineSplitter()
    for _ in range(8_000):
        assert splitter.feed(b"x" * 1024) == []
    assert [len(line) for line in splitter.feed(b"\n")] == [8_000 * 1024]


def test_page() -> None:
    """A page has a version, raw items and perhaps a token; null stands for no items, as Go sends it."""
    page = read_page(b'{"metadata":{"resourceVersion":"7","continue":"c"},"items":[{"a": 1}]}')
    assert (page.metadata.resource_version, page.metadata.next_page) == ("7", "c")
    assert [bytes(item) for item in page.items or ()] == [b'{"a": 1}']
    assert read_page(b'{"metadata":{"resourceVersion":"7"},"items":null}').items is None


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"{}",
        b"<html>",
        b"\xff",
        b'{"items":[]}',
        b'{"metadata":{"resourceVersion":"7"}}',
        b'{"metadata":{"resourceVersion":""},"items":[]}',
        b'{"metadata":{"resourceVersion":"7"},"items":[{"a":',
        b'{"metadata":{"resourceVersion":"7"},"items":' + b"[" * 100_000,
        b'{"kind":"Status","metadata":{},"status":"Failure"}',
    ],
)
def test_what_is_no_page(reply: bytes) -> None:
    """A reply without a version or items is never taken for an empty list, which would mean that all are gone."""
    with pytest.raises(MalformedReplyError, match="not a list"):
        read_page(reply)


@pytest.mark.parametrize(
    "line", [b"<html>", b"{}", b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b'{"type":"AD', b"\xff"]
)
def test_what_is_no_event(line: bytes) -> None:
    """A line that is no event says so, with its beginning."""
    with pytest.raises(MalformedReplyError, match="not an event"):
        read_event(line)


@pytest.mark.parametrize(
    ("value", "head"),
    [
        ({"metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "x": 1}}, Head("a", "u", "7")),
        ({"metadata": {"namespace": "n", "name": "a", "uid": "u"}}, Head("n/a", "u", "")),
        ({"metadata": {"namespace": "", "name": "a", "uid": "u"}}, Head("a", "u", "")),
        ({"metadata": {"namespace": "n", "name": "a", "uid": 5}}, Head("n/a", "", "")),
        ({"metadata": {"namespace": 5, "name": "a", "uid": "u"}}, Head("a", "u", "")),
        ({"metadata": {"namespace": "n", "uid": "u"}}, Head("", "u", "")),
        ({"metadata": {"resourceVersion": "7"}}, Head("", "", "7")),
        ({"metadata": {"name": "a", "uid": 5, "resourceVersion": "7"}}, Head("a", "", "7")),
        ({"metadata": {"name": None, "uid": "u"}}, Head("", "u", "")),
        ({"metadata": []}, Head("", "", "")),
        ([], Head("", "", "")),
        ("text", Head("", "", "")),
    ],
)
def test_head_as_far_as_it_can_be_read(value: object, head: Head) -> None:
    """Of an object that cannot be read, what identifies it is found as far as it is there."""
    assert read_head(raw(value)) == head


def test_head_of_what_is_nested_without_end() -> None:
    """Brackets without end are one more thing that cannot be read."""
    assert read_head(msgspec.Raw(b'{"metadata":' + b"[" * 100_000)) == Head("", "", "")


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        ({"code": 410, "reason": "Expired", "message": "too old"}, Refusal(410, "too old")),
        ({"code": 500, "reason": "InternalError"}, Refusal(500, "InternalError")),
        ({}, Refusal(0, "no reason given")),
        ({"code": "x"}, Refusal(0, '{"code": "x"}')),
    ],
)
def test_refusal_as_far_as_it_can_be_read(value: object, refusal: Refusal) -> None:
    """What an ERROR event holds is read as far as it can be."""
    assert read_refusal(raw(value)) == refusal
