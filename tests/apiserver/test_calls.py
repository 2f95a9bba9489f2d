"""Requests as they come: their forms, their options, what is wrong with JSON, and the little protobuf there is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cidrella.apiserver.forms import protobuf
from cidrella.apiserver.forms.bodies import summary
from cidrella.apiserver.forms.negotiation import METADATA, PLAIN, TABLE, Form, form_of, media_of
from cidrella.apiserver.kinds import builtins
from cidrella.apiserver.serving.calls import YAML, Call
from cidrella.apiserver.serving.options import ListOptions, WriteOptions, list_options, write_options
from cidrella.apiserver.words import gojson
from cidrella.apiserver.words.statuses import StatusError
from tests.apiserver.asking import METADATA as AS_METADATA
from tests.apiserver.asking import NAMESPACES, api
from tests.apiserver.asking import TABLE as AS_TABLE

NODES = next(each for each in builtins() if each.plural == "nodes")
PROTOBUF = "application/vnd.kubernetes.protobuf"


class TestForms:
    """Accept."""

    @pytest.mark.parametrize(
        ("accept", "form"),
        [
            ("", PLAIN),
            ("*/*", PLAIN),
            ("text/html, */*;q=0.8", PLAIN),
            (f"{PROTOBUF}, application/json", PLAIN),
            (f"{AS_TABLE},application/json", Form(kind=TABLE)),
            (f"{AS_TABLE};q=0.1,application/json", PLAIN),
            (f"application/json;q=x,{AS_TABLE}", PLAIN),
            (f"application/json;as=Table;v=v9;g=meta.k8s.io,{AS_METADATA}", Form(kind=METADATA)),
            ("application/yaml", Form(YAML)),
        ],
    )
    def test_the_first_that_can_be_given(self, accept: str, form: Form) -> None:
        """By quality, and then in the order in which they are named."""
        assert form_of(accept, NODES) == form

    @pytest.mark.parametrize(
        ("accept", "message"),
        [
            ("text/plain", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"),
            (PROTOBUF, "only the following media types are accepted: application/json"),
            ("application/json;as=Nope;v=v1;g=meta.k8s.io", "only the following media types are accepted"),
        ],
    )
    def test_what_cannot_be(self, accept: str, message: str) -> None:
        """It is said what could."""
        with pytest.raises(StatusError) as refused:
            form_of(accept, NODES)
        assert refused.value.message.startswith(message)
        assert refused.value.code == 406

    def test_refusals(self) -> None:
        """They are told in YAML to those who asked for that."""
        assert media_of("application/yaml") == YAML
        assert media_of("text/plain") == media_of("") == "application/json"


class TestOptions:
    """Queries."""

    def test_of_writes(self) -> None:
        """Whether it is a dry run, and what becomes of unknown fields."""
        assert write_options(Call("POST", "", {})) == WriteOptions()
        asked = {"dryRun": ["All", "All"], "fieldValidation": ["Strict"]}
        assert write_options(Call("POST", "", asked)) == WriteOptions(dry_run=True, validation="Strict")
        with pytest.raises(StatusError, match="PatchOptions"):
            write_options(Call("PATCH", "", {"dryRun": [""]}))

    def test_of_lists(self) -> None:
        """Whatever is not false is true; a negative limit is none."""
        asked = {"watch": [""], "allowWatchBookmarks": ["x"], "limit": ["-5"], "timeoutSeconds": ["7"]}
        assert list_options(Call("GET", "", asked)) == ListOptions(watch=True, bookmarks=True, timeout=7)
        assert list_options(Call("GET", "", {"watch": ["0"], "limit": ["5"]})) == ListOptions(limit=5)


class TestGo:
    """JSON that is none, told as Go tells it."""

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "unexpected end of JSON input"),
            (b'{"a":"b', "unexpected end of JSON input"),
            (b"{'a'}", "invalid character '\\'' looking for beginning of object key string"),
            (b'{"a" 1}', "invalid character '1' after object key"),
            (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
            (b'{"a":"}\\"{",}', "invalid character '}' looking for beginning of object key string"),
            (b"[1 2]", "invalid character '2' after array element"),
            (b"1 2", "invalid character '2' after top-level value"),
            (b"tru", "unexpected end of JSON input"),
            (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
            (b'"\\x"', "invalid character 'x' in string escape code"),
            (b"\x9e", "invalid character '\\u009e' looking for beginning of value"),
            (b"[" * 100_000, "exceeded max depth"),
            (b'{"a": [1, {}]}', ""),
        ],
    )
    def test_why(self, data: bytes, why: str) -> None:
        """What is wrong with it first, and where."""
        assert gojson.why(data) == why

    @given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
    def test_what_is_well(self, value: object) -> None:
        """Of JSON there is nothing to say, and nothing in it is there twice."""
        data = json.dumps(value).encode()
        assert gojson.why(data) == ""
        assert gojson.repeated_fields(data) == []

    def test_repeated(self) -> None:
        """Fields that are there more than once, by their paths, each once."""
        data = b'{"a": 1, "a": 2, "a": 3, "b": [{"c": {"d": 1, "d": 2}}]}'
        assert gojson.repeated_fields(data) == ["a", "b[0].c.d"]

    def test_summary(self) -> None:
        """What messages show of a body: of objects the beginning, of anything else the bytes."""
        assert summary(b"") == "<empty>"
        assert summary(b"[]") == "5b5d"
        assert summary(b"{" + b"x" * 40) == "{" + "x" * 29 + " ..."


def field(number: int, value: bytes | int) -> bytes:
    """A field of a message in protobuf."""
    if isinstance(value, int):
        return bytes([number << 3]) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    head = b""
    while number > 0x7F:
        head += bytes([number & 0x7F | 0x80])
        number >>= 7
    return head + bytes([number])


def envelope(kind: bytes, body: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind)) + field(2, body) + field(3, b"") + field(4, b"")


class TestProtobuf:
    """What kubectl sends where it makes the object itself."""

    def test_a_service(self) -> None:
        """Texts, numbers, maps, lists, times, and what is either a number or a name."""
        labels = field(1, b"app") + field(2, b"web")
        ports = [
            field(1, b"http") + field(3, 80) + field(4, field(1, 0) + field(2, 8080) + field(3, b"")),
            field(3, 443) + field(4, field(1, 1) + field(2, 0) + field(3, b"https")),
        ]
        metadata = field(1, b"web") + field(2, b"") + field(8, b"") + field(11, labels) + field(14, b"example.com/x")
        spec = b"".join(field(1, each) for each in ports) + field(2, labels) + field(13, 1) + field(99, b"new")
        body = field(1, metadata) + field(2, spec) + field(3, b"")
        assert protobuf.read(envelope(b"Service", body)) == {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["example.com/x"]},
            "spec": {
                "ports": [{"name": "http", "port": 80, "targetPort": 8080}, {"port": 443, "targetPort": "https"}],
                "selector": {"app": "web"},
                "publishNotReadyAddresses": True,
            },
        }
        timed = field(1, field(8, field(1, 1_000_000_000)))
        made = protobuf.read(envelope(b"Namespace", timed))
        assert made is not None
        assert made["metadata"] == {"creationTimestamp": "2001-09-09T01:46:40Z"}

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"{}", r"expected prefix \[107 56 115 0\]"),
            (b"k8s\0\x0a\x05a", "unexpected EOF"),
            (b"k8s\0\x80", "unexpected EOF"),
            (b"k8s\0\x0d", "illegal wireType 5"),
        ],
    )
    def test_what_is_none(self, data: bytes, message: str) -> None:
        """It is said what is wrong."""
        with pytest.raises(ValueError, match=message):
            protobuf.read(data)

    def test_as_a_body(self) -> None:
        """Two kinds are read so, and no others."""
        with api() as ask:
            namespace = envelope(b"Namespace", field(1, field(1, b"room")))
            assert ask("POST", NAMESPACES, namespace, media=PROTOBUF).granted(201)["metadata"]["name"] == "room"
            assert "protobuf message" in ask("POST", NAMESPACES, b"{}", media=PROTOBUF).refused(400, "BadRequest")
            node = envelope(b"Node", b"")
            ask("POST", "/api/v1/nodes", node, media=PROTOBUF).refused(415, "UnsupportedMediaType")
