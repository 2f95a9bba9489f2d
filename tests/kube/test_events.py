"""The recorder on a simulated clock: what it sends, what it survives, and that it is in nobody's way (O3)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from cidrella.kube.errors import ApiError, KubeError, NoAnswerError
from cidrella.kube.events import EventSettings, Recorder, Reference
from cidrella.model.event import NOTE_MAX, cut, event_name
from tests.kube.simulated import simulate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cidrella.kube.client import Client

PATH = "/apis/events.k8s.io/v1/namespaces/default/events"
NODE = Reference("v1", "Node", "node-1", "11111111-2222")


class Sink:
    """Looks like a `Client` to a recorder: keeps events, or fails as it is told to."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, float]] = []
        self.failure: KubeError | None = None
        self.lost = False
        self.hangs = False

    async def request(self, method: str, path: str, *, body: bytes, content_type: str, timeout: float) -> bytes:
        self.requests.append((method, asyncio.get_running_loop().time()))
        assert timeout == 5.0
        await asyncio.sleep(3600 if self.hangs else 0.005)
        if self.failure:
            raise self.failure
        self._carry_out(method, path, msgspec.json.decode(body), content_type)
        if self.lost:
            raise NoAnswerError("the connection was lost")
        return b"{}"

    def _carry_out(self, method: str, path: str, data: dict[str, Any], content_type: str) -> None:
        if method == "POST":
            assert content_type == "application/json"
            assert path == PATH.replace("default", data["regarding"].get("namespace", "default"))
            name = data["metadata"]["name"]
            if name in self.events:
                raise ApiError(409, "AlreadyExists", name)
            self.events[name] = data
            return
        assert (method, content_type) == ("PATCH", "application/merge-patch+json")
        collection, _, name = path.rpartition("/")
        if name not in self.events:
            raise ApiError(404, "NotFound", name)
        assert collection == PATH.replace("default", self.events[name]["regarding"].get("namespace", "default"))
        assert list(data) == ["series"]
        self.events[name] |= data

    @property
    def counts(self) -> list[int]:
        return [each.get("series", {}).get("count", 1) for each in self.events.values()]


@contextlib.asynccontextmanager
async def recording(sink: Sink) -> AsyncIterator[Recorder]:
    """A recorder that runs."""
    recorder = Recorder(cast("Client", sink), instance="host_1", clock=asyncio.get_running_loop().time)
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_an_event_as_the_api_wants_it() -> None:
    """O3: an event says of whom, by whom, when, why and what, in the fields of events.k8s.io/v1."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(1)
        (name, event), *others = sink.events.items()
        assert not others
        assert name.startswith("node-1.")
        when = event.pop("eventTime")
        assert when.endswith("Z")
        assert event == {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name},
            "action": "Allocate",
            "reason": "CIDRNotAvailable",
            "regarding": {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "11111111-2222"},
            "note": "no pool has room",
            "type": "Warning",
            "reportingController": "cidrella.dev/controller",
            "reportingInstance": "host_1",
        }

    simulate(scenario())


def test_events_are_where_their_object_is() -> None:
    """O3, B8: the events of a Service are in its namespace, where the API wants them and people look."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            for _ in range(2):
                recorder.record(Reference("v1", "Service", "web", "1-2", "shop"), "ClusterIPNotAllocated", "put back")
                await asyncio.sleep(31)
        (event,) = sink.events.values()
        assert event["regarding"] == {
            "apiVersion": "v1",
            "kind": "Service",
            "namespace": "shop",
            "name": "web",
            "uid": "1-2",
        }
        assert sink.counts == [2]

    simulate(scenario())


def test_a_thousand_of_the_same_cost_little() -> None:
    """O3: the same thing a thousand times within ten minutes is one event and a few requests, and all are counted."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            for _ in range(1000):
                recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
                await asyncio.sleep(0.6)
            await asyncio.sleep(60)
            assert sink.counts == [1000]
            assert len(sink.requests) <= 22
            assert recorder.dropped == 0

    simulate(scenario())


def test_pace_of_many() -> None:
    """O3: many events come as a burst and then at a steady pace; what finds no room is dropped and counted."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            for number in range(7000):
                recorder.record(NODE._replace(uid=str(number)), "CIDRNotAvailable", "no pool has room")
            begun = asyncio.get_running_loop().time()
            await asyncio.sleep(1)
            assert 25 <= len(sink.events) <= 36
            await asyncio.sleep(600)
            assert len(sink.events) == 5000
            assert recorder.dropped == 2000
            assert 495 < sink.requests[-1][1] - begun < 500

    simulate(scenario())


@pytest.mark.parametrize("code", [403, 404, 422])
def test_refusals_are_logged_once(code: int) -> None:
    """O3: a refusal for good is logged once for its kind, and each event is tried once."""

    async def scenario() -> None:
        sink = Sink()
        sink.failure = ApiError(code, "Refused", "no")
        async with recording(sink) as recorder:
            with capture_logs() as logs:
                for number in range(20):
                    recorder.record(NODE._replace(uid=str(number)), "CIDRNotAvailable", "no pool has room")
                await asyncio.sleep(100)
            assert [each["log_level"] for each in logs] == ["warning"]
            assert (len(sink.requests), recorder.dropped) == (20, 20)

    simulate(scenario())


def test_an_outage_is_survived() -> None:
    """O3: with the API away for a moment events come later; with the API away for long they are dropped."""

    async def scenario() -> None:
        sink = Sink()
        sink.failure = NoAnswerError("connection refused")
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(5)
            sink.failure = None
            await asyncio.sleep(5)
            assert sink.counts == [1]
            sink.failure = ApiError(503, "ServiceUnavailable", "later", 7.0)
            recorder.record(NODE, "PoolGone", "the pool is gone")
            await asyncio.sleep(3600)
            assert (len(sink.requests), recorder.dropped) == (3 + 4, 1)

    simulate(scenario())


def test_an_event_whose_reply_was_lost() -> None:
    """O3: an event that arrived without our hearing so is not made twice, and its count goes on."""

    async def scenario() -> None:
        sink = Sink()
        sink.lost = True
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(1)
            sink.lost = False
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(60)
            assert sink.counts == [2]

    simulate(scenario())


def test_an_event_that_the_server_forgot() -> None:
    """O3: the API keeps events for an hour; one that goes on for longer is made anew, with its count."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(31)
            sink.events.clear()
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(1)
            assert sink.counts == [2]

    simulate(scenario())


def test_last_words() -> None:
    """O3: when the end comes, what is pending is told at once, if that takes no more than half a second."""

    async def scenario(hangs: bool) -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(1)
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            recorder.record(NODE, "PoolGone", "the pool is gone")
            sink.hangs = hangs
            begun = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - begun <= 0.51
        assert sink.counts == ([1] if hangs else [2, 1])

    simulate(scenario(hangs=False))
    simulate(scenario(hangs=True))


def test_last_words_with_a_request_under_way() -> None:
    """O3: an event that is being told when the end comes is told once more, and not lost."""

    async def scenario() -> None:
        sink = Sink()
        async with recording(sink) as recorder:
            recorder.record(NODE, "CIDRNotAvailable", "no pool has room")
            await asyncio.sleep(0.001)
            assert (len(sink.requests), len(sink.events)) == (1, 0)
        assert sink.counts == [1]

    simulate(scenario())


def test_recording_needs_no_running() -> None:
    """O3: whatever is recorded, and whether or not anybody runs, recording takes it in good grace."""
    recorder = Recorder(cast("Client", None), instance="x" * 500, settings=EventSettings())
    for note in ("", "\x00", "\ud800", "ü" * 5000, "\U0001f600" * 300):
        recorder.record(Reference("", "", "", ""), note, note, action=note)
    assert recorder.dropped == 0


@pytest.mark.parametrize("letter", ["x", "ü", "漢", "\U0001f600", "\ud800"])
def test_notes_are_cut_by_bytes(letter: str) -> None:
    """O3: a note has at most 1,024 bytes of valid UTF-8, as many characters as fit, and shows that it was cut."""
    for length in (255, 256, 257, 341, 342, 512, 513, 1023, 1024, 1025, 5000):
        note = cut(letter * length, NOTE_MAX)
        size = len(note.encode())
        if len((letter * length).encode("utf-8", "replace")) <= NOTE_MAX:
            assert len(note) == length
        else:
            assert 1024 - 3 <= size <= 1024
            assert note.endswith("…")


@pytest.mark.parametrize("name", ["", "-", "UPPER_case", "a..b", "x" * 300, f"{'a' * 234}.{'b' * 20}", "ü.é", "a-.-b"])
def test_names_of_events_are_valid(name: str) -> None:
    """O3: whatever the object is called, the event's name is one that Kubernetes takes."""
    made = event_name(name, "0123456789abcdef")
    assert len(made) <= 253
    for label in made.split("."):
        assert label
        assert label == label.strip("-").lower()
        assert label.replace("-", "").isascii()
        assert label.replace("-", "").isalnum()
