"""Events: what happened to other objects. There are two forms of them, and one store for both, in the older form.

The older (`v1`) takes nearly anything. The newer (`events.k8s.io/v1`) is strict, and its events do not change once they
are made, but for their series. What is wrong with one is told by the names of the older form all the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.kinds.kind import BuiltIn, moment
from cidrella.apiserver.kinds.reading import Form
from cidrella.apiserver.resource import Column, Resource
from cidrella.apiserver.schemas.schema import Schema
from cidrella.apiserver.words.faults import invalid, required
from cidrella.apiserver.words.naming import key_faults, path_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]

LIFETIME: Final = 3600.0
"""Seconds that an event is kept."""
_STORAGE: Final = "events"
_WORD_MAX: Final = 128
_MESSAGE_MAX: Final = 1024
_TYPES: Final = ("Normal", "Warning")
_OLDER: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""What the fields of the newer form are called in the older, where they are called otherwise."""
_NEWER: Final = {older: newer for newer, older in _OLDER.items()}
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _reference() -> Json:
    return {
        "kind": shapes.text("Its kind."),
        "namespace": shapes.text("Its namespace."),
        "name": shapes.text("Its name."),
        "uid": shapes.text("Its uid.", "UID"),
        "apiVersion": shapes.text("Its group and version."),
        "resourceVersion": shapes.text("Its version, when that happened."),
        "fieldPath": shapes.text("The part of it that is meant."),
    }


_SUBJECT: Final = shapes.record("ObjectReference", "What it happened to.", _reference())
_RELATED: Final = shapes.optional("ObjectReference", "Another object that has to do with it.", _reference())
_SOURCE: Final = shapes.record(
    "EventSource",
    "Who tells, in the older form.",
    {"component": shapes.text("The component."), "host": shapes.text("The node that it runs on.")},
)
_COMMON: Final = {
    "eventTime": shapes.micro_time("When it happened first.", default=None),
    "action": shapes.text("What was done."),
    "reason": shapes.text("Why, in one word."),
    "type": shapes.text("Normal or Warning."),
    "related": _RELATED,
}
_LAST_OBSERVED: Final = shapes.micro_time("When it happened last.", default=None)


def _series(**more: Any) -> Json:
    count = shapes.number("How often.", **more)
    return shapes.optional(
        "EventSeries", "That it happened again and again.", {"count": count, "lastObservedTime": _LAST_OBSERVED}
    )


DEFINITION: Final = shapes.whole(
    "Event",
    "Something that happened to an object. It is forgotten after an hour.",
    {
        "involvedObject": _SUBJECT,
        "message": shapes.text("What happened, in words for people."),
        "source": _SOURCE,
        "firstTimestamp": shapes.time("When it happened first, in the older form.", default=None),
        "lastTimestamp": shapes.time("When it happened last, in the older form.", default=None),
        "count": shapes.number("How often, in the older form."),
        "series": _series(),
        "reportingComponent": shapes.text("Who tells.", default=""),
        "reportingInstance": shapes.text("Which of them.", default=""),
        **_COMMON,
    },
)
NEWER_DEFINITION: Final = shapes.whole(
    "Event",
    "Something that happened to an object. It is forgotten after an hour.",
    {
        "regarding": _SUBJECT,
        "note": shapes.text("What happened, in words for people."),
        "series": _series(default=0),
        "reportingController": shapes.text("Who tells."),
        "reportingInstance": shapes.text("Which of them."),
        "deprecatedSource": _SOURCE,
        "deprecatedFirstTimestamp": shapes.time("When it happened first, in the older form.", default=None),
        "deprecatedLastTimestamp": shapes.time("When it happened last, in the older form.", default=None),
        "deprecatedCount": shapes.number("How often, in the older form."),
        **_COMMON,
    },
)
_OLDER_FORM: Final = Form(DEFINITION)
_NEWER_FORM: Final = Form(NEWER_DEFINITION)


def to_older(event: Json) -> Json:
    """An event of the newer form in the older."""
    return _renamed(event, _OLDER, _OLDER_FORM)


def to_newer(event: Json) -> Json:
    """An event of the older form in the newer."""
    return _renamed(event, _NEWER, _NEWER_FORM)


def _renamed(event: Json, names: dict[str, str], form: Form) -> Json:
    found = {names.get(name, name): value for name, value in event.items()}
    trouble = form.read(found)
    assert not trouble, trouble  # it was in a form of this kind before
    return found


class OlderEvents(BuiltIn):
    """What is particular about events of v1."""

    def validate_create(self, new: Json) -> list[Fault]:
        """Where it is, and who tells of it."""
        return list(_faults(new, "reportingComponent"))

    def validate_update(self, new: Json, old: Json) -> list[Fault]:  # noqa: ARG002 - anything may change
        """Likewise."""
        return self.validate_create(new)


class NewerEvents(BuiltIn):
    """What is particular about events of events.k8s.io/v1."""

    def validate_create(self, new: Json) -> list[Fault]:
        """All of it."""
        event = to_older(new)
        return [*_faults(event, "reportingController"), *_series_faults(event), *_newness_faults(event)]

    def validate_update(self, new: Json, old: Json) -> list[Fault]:
        """Nothing but the series may change."""
        event, before = to_older(new), to_older(old)
        found = list(_faults(event, "reportingController"))
        if event.get("series") != before.get("series"):
            found += _series_faults(event)
        return [*found, *_change_faults(event, before)]


def _faults(event: Json, reporter: str) -> Iterator[Fault]:
    """What is asked of both forms; `reporter` is what the field with the one who tells is called."""
    namespace, subject = event["metadata"].get("namespace", ""), event["involvedObject"].get("namespace", "")
    at_home = ("default", "kube-system") if event["eventTime"] else ("default",)
    elsewhere = subject and subject != namespace and not event["eventTime"]
    if elsewhere or (not subject and namespace not in at_home):
        yield invalid("involvedObject.namespace", subject, "does not match event.namespace")
    if not event["eventTime"]:
        return
    controller = event["reportingComponent"]
    if not controller:
        yield required(reporter)
    yield from (invalid(reporter, controller, why) for why in key_faults(controller))
    for name in ("reportingInstance", "action", "reason"):
        if not event.get(name):
            yield required(name)
        elif len(event[name].encode()) > _WORD_MAX:
            yield invalid(name, "", f"can have at most {_WORD_MAX} characters")
    if len(event.get("message", "").encode()) > _MESSAGE_MAX:
        yield invalid("message", "", f"can have at most {_MESSAGE_MAX} characters")


def _series_faults(event: Json) -> Iterator[Fault]:
    if (series := event.get("series")) is None:
        return
    if series.get("count", 0) < 2:
        yield invalid("series.count", "", "should be at least 2")
    if not series["lastObservedTime"]:
        yield required("series.lastObservedTime")


def _newness_faults(event: Json) -> Iterator[Fault]:
    if not event["eventTime"]:
        yield required("eventTime")
    if (kind := event.get("type", "")) not in _TYPES:
        yield invalid("type", "", f"has invalid value: {kind}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(name):
            yield invalid(name, "", "needs to be unset")


def _change_faults(new: Json, old: Json) -> Iterator[Fault]:
    """In the order in which a real server looks, which looks at the reason twice."""
    order = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason")
    for name in (*order, "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance"):
        if new.get(name) != old.get(name):
            told = "reportingController" if name == "reportingComponent" else name
            yield invalid(told, _as_told(name, new.get(name)), "field is immutable")


def _as_told(name: str, value: Any) -> Any:
    """A value as messages show it: what is empty as well, and objects by the names that their fields have inside."""
    if name in {"involvedObject", "related"}:
        inside = {"uid": "UID", "apiVersion": "APIVersion"}
        return value and {inside.get(each, each[0].upper() + each[1:]): value.get(each, "") for each in _REFERENCE}
    if name == "source":
        return {"Component": value.get("component", ""), "Host": value.get("host", "")}
    if value is None:
        return {"count": 0, "reason": "", "message": "", "type": "", "action": ""}.get(name)
    return value


# Columns and field selectors, of the older form.


def _first_seen(event: Json) -> Any:
    return moment(event["firstTimestamp"] or event["eventTime"])


def _last_seen(event: Json) -> Any:
    if "series" in event:
        return moment(event["series"]["lastObservedTime"])
    return moment(event["lastTimestamp"]) if event["lastTimestamp"] else _first_seen(event)


def _count(event: Json) -> int:
    if "series" in event:
        return int(event["series"].get("count", 0))
    return int(event.get("count", 0) or 1)


def _subject(event: Json) -> str:
    subject = event["involvedObject"]
    return "/".join(filter(None, (subject.get("kind", "").lower(), subject.get("name", ""))))


def _source(event: Json) -> str:
    source = event["source"]
    component = source.get("component") or event["reportingComponent"]
    instance = source.get("host") or event["reportingInstance"]
    return f"{component}, {instance}" if instance else component


_COLUMNS: Final = (
    Column("Last Seen", _last_seen, description="When it happened last."),
    Column("Type", lambda event: event.get("type", ""), description="Normal or Warning."),
    Column("Reason", lambda event: event.get("reason", ""), description="Why, in one word."),
    Column("Object", _subject, description="What it happened to."),
    Column(
        "Subobject",
        lambda event: event["involvedObject"].get("fieldPath", ""),
        description="The part of it that is meant.",
        priority=1,
    ),
    Column("Source", _source, description="Who tells.", priority=1),
    Column("Message", lambda event: event.get("message", "").strip(), description="What happened."),
    Column("First Seen", _first_seen, description="When it happened first.", priority=1),
    Column("Count", _count, description="How often it happened.", priority=1),
    Column(
        "Name",
        lambda event: event["metadata"].get("name", ""),
        format="name",
        description="What it is called.",
        priority=1,
    ),
)


def _of_subject(name: str) -> Callable[[Json], str]:
    return lambda event: str(event["involvedObject"].get(name, ""))


_FIELDS: Final[dict[str, Callable[[Json], str]]] = {
    **{f"involvedObject.{name}": _of_subject(name) for name in _REFERENCE},
    "reason": lambda event: str(event.get("reason", "")),
    "reportingComponent": lambda event: str(event["reportingComponent"]),
    "source": lambda event: str(event["source"].get("component") or event["reportingComponent"]),
    "type": lambda event: str(event.get("type", "")),
}


def _newer_fields() -> dict[str, Callable[[Json], str]]:
    named = {
        name.replace("involvedObject", "regarding").replace("Component", "Controller"): read
        for name, read in _FIELDS.items()
        if name != "source"
    }
    return {name: _after_older(read) for name, read in named.items()}


def _after_older(read: Callable[[Json], Any]) -> Callable[[Json], Any]:
    return lambda event: read(to_older(event))


def _newer_column(column: Column) -> Column:
    return replace(column, value=_after_older(column.value))


def older_resource() -> Resource:
    """The kind in its older form."""
    strategy = OlderEvents(DEFINITION)
    return Resource(
        group="",
        version="v1",
        plural="events",
        kind="Event",
        namespaced=True,
        schema=Schema(DEFINITION),
        strategy=strategy,
        singular="event",
        short_names=("ev",),
        storage=_STORAGE,
        fields=_FIELDS,
        name_fault=path_faults,
        lifetime=LIFETIME,
        creates=True,
        unconditional=True,
        columns=strategy.columns(*_COLUMNS),
    )


def newer_resource() -> Resource:
    """The kind in its newer form."""
    strategy = NewerEvents(NEWER_DEFINITION)
    return Resource(
        group="events.k8s.io",
        version="v1",
        plural="events",
        kind="Event",
        namespaced=True,
        schema=Schema(NEWER_DEFINITION),
        strategy=strategy,
        singular="event",
        short_names=("ev",),
        storage=_STORAGE,
        fields=_newer_fields(),
        encode=to_older,
        decode=to_newer,
        lifetime=LIFETIME,
        creates=True,
        unconditional=True,
        columns=strategy.columns(*map(_newer_column, _COLUMNS)),
    )
