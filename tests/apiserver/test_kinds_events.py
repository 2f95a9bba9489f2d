"""Events in both forms, as a real API server converts, checks and shows them."""

from __future__ import annotations

from typing import Any

import pytest

from cidrella.apiserver.kinds.events import to_newer, to_older
from tests.apiserver.kinds import created, kind, read, refused, row, updated

Json = dict[str, Any]

OLDER = kind("events")
NEWER = kind("events", "events.k8s.io")
MICRO = "2020-01-01T00:00:00.000000Z"
WHOLE = {
    "eventTime": MICRO,
    "reportingController": "a.b/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "type": "Normal",
    "note": "n",
    "regarding": {"kind": "Node", "name": "a"},
}
EMPTY: Json = {"involvedObject": {}, "source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def newer(**fields: Any) -> list[str]:
    """What is wrong with an event of the newer form in which these are otherwise."""
    return refused(NEWER, **{**WHOLE, **fields})


class TestForms:
    """The older form, the newer, and the way between them."""

    def test_older(self) -> None:
        """The older form writes out most of what is empty."""
        found = read(OLDER)
        del found["metadata"]
        assert found == {**EMPTY, "reportingComponent": "", "reportingInstance": ""}

    def test_newer(self) -> None:
        """The newer one less."""
        found = read(NEWER, eventTime=MICRO)
        del found["metadata"]
        assert found == {
            "eventTime": MICRO,
            "regarding": {},
            "deprecatedSource": {},
            "deprecatedFirstTimestamp": None,
            "deprecatedLastTimestamp": None,
        }

    def test_there_and_back(self) -> None:
        """Nothing is lost from one form to the other, and every field is called as it is there."""
        old = read(
            OLDER,
            involvedObject={"kind": "Pod", "name": "a", "namespace": "default"},
            message="m",
            type="Odd",
            reason="R",
            count=3,
            firstTimestamp="2020-01-01T00:00:00Z",
            lastTimestamp="2020-01-02T00:00:00Z",
            source={"component": "c", "host": "h"},
            series={"count": 2, "lastObservedTime": MICRO},
            related={"kind": "Node"},
            reportingComponent="r",
            reportingInstance="i",
        )
        new = to_newer(old)
        assert new == {
            "metadata": {"name": "x", "namespace": "default"},
            "eventTime": None,
            "regarding": {"kind": "Pod", "name": "a", "namespace": "default"},
            "note": "m",
            "type": "Odd",
            "reason": "R",
            "deprecatedCount": 3,
            "deprecatedFirstTimestamp": "2020-01-01T00:00:00Z",
            "deprecatedLastTimestamp": "2020-01-02T00:00:00Z",
            "deprecatedSource": {"component": "c", "host": "h"},
            "series": {"count": 2, "lastObservedTime": MICRO},
            "related": {"kind": "Node"},
            "reportingController": "r",
            "reportingInstance": "i",
        }
        assert to_older(new) == old

    def test_what_each_writes_out(self) -> None:
        """What is empty is there or not as the form has it, and both are stored in the older one."""
        assert OLDER.store_key == NEWER.store_key == "events"
        assert OLDER.encode is OLDER.decode is None
        assert NEWER.encode is to_older
        assert NEWER.decode is to_newer
        bare = to_newer(read(OLDER, series={}))
        assert "reportingController" not in bare
        assert bare["series"] == {"count": 0, "lastObservedTime": None}
        assert to_older(bare)["series"] == {"lastObservedTime": None}


class TestOlder:
    """What is asked of the older form."""

    @pytest.mark.parametrize(
        ("namespace", "subject", "time", "well"),
        [
            ("default", "", None, True),
            ("default", "default", None, True),
            ("default", "other", None, False),
            ("other", "", None, False),
            ("other", "other", None, True),
            ("kube-system", "", None, False),
            ("kube-system", "", MICRO, True),
            ("other", "", MICRO, False),
            ("other", "default", MICRO, True),
        ],
    )
    def test_namespace(self, namespace: str, subject: str, time: str | None, well: bool) -> None:
        """An event is in the namespace of what it is about, or in the default one."""
        fields = {"reportingComponent": "c", "reportingInstance": "i", "action": "A", "reason": "R"}
        told = refused(
            OLDER,
            metadata={"name": "x", "namespace": namespace},
            involvedObject={"kind": "Node", "namespace": subject},
            eventTime=time,
            **fields,
        )
        fault = f'involvedObject.namespace: Invalid value: "{subject}": does not match event.namespace'
        assert told == ([] if well else [fault])

    def test_anything_goes(self) -> None:
        """One without a time of its own may say anything, and be changed."""
        event = created(OLDER, type="Odd", message="x" * 5000, count=-1)
        assert updated(OLDER, event, type="Other", message="y")[1] == []

    def test_new_ones_in_the_older_form(self) -> None:
        """One with a time of its own says who tells what."""
        told = refused(OLDER, eventTime=MICRO)
        assert told[0] == "reportingComponent: Required value"
        assert told[1] == 'reportingComponent: Invalid value: "": name part must be non-empty'
        assert told[3:] == ["reportingInstance: Required value", "action: Required value", "reason: Required value"]


class TestNewer:
    """What is asked of the newer form."""

    @pytest.mark.parametrize(
        ("fields", "told"),
        [
            ({}, []),
            ({"type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
            ({"eventTime": None}, ["eventTime: Required value"]),
            ({"note": "n" * 1025}, ['message: Invalid value: "": can have at most 1024 characters']),
            ({"reason": "n" * 129}, ['reason: Invalid value: "": can have at most 128 characters']),
            ({"action": ""}, ["action: Required value"]),
            ({"deprecatedCount": 1}, ['count: Invalid value: "": needs to be unset']),
            ({"deprecatedSource": {"host": "x"}}, ['source: Invalid value: "": needs to be unset']),
            (
                {"deprecatedFirstTimestamp": "2020-01-01T00:00:00Z"},
                ['firstTimestamp: Invalid value: "": needs to be unset'],
            ),
            (
                {"series": {"count": 1}},
                ['series.count: Invalid value: "": should be at least 2', "series.lastObservedTime: Required value"],
            ),
            ({"series": {"count": 2, "lastObservedTime": MICRO}}, []),
        ],
    )
    def test_faults(self, fields: Json, told: list[str]) -> None:
        """It is strict, and speaks of its fields by their older names."""
        assert newer(**fields) == told

    def test_controller(self) -> None:
        """Who tells has a qualified name, and here the field is called as it is."""
        assert newer(reportingController="bad value")[0].startswith('reportingController: Invalid value: "bad value": ')

    def test_only_the_series_changes(self) -> None:
        """Once it is made, only the series and metadata change."""
        event = created(NEWER, **WHOLE)
        series = {"count": 2, "lastObservedTime": MICRO}
        event, faults = updated(NEWER, event, series=series)
        assert faults == []
        assert updated(NEWER, event, series={"count": 1, "lastObservedTime": MICRO})[1] == [
            'series.count: Invalid value: "": should be at least 2'
        ]
        assert updated(NEWER, event, metadata={"name": "x", "namespace": "default", "labels": {"a": "b"}})[1] == []

    def test_what_may_not_change(self) -> None:
        """Everything else is told, objects by the names that a real server has for their fields inside."""
        event = created(NEWER, **WHOLE)
        inner = '"UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""'
        _, faults = updated(
            NEWER,
            event,
            regarding={"kind": "Node", "name": "b"},
            reason="Q",
            note="w",
            deprecatedSource={"component": "x"},
            deprecatedCount=3,
            type="Warning",
            related={"kind": "x"},
            reportingController="q",
        )
        stays = "field is immutable"
        assert faults == [
            f'involvedObject: Invalid value: {{"Kind":"Node","Namespace":"","Name":"b",{inner}}}: {stays}',
            f'reason: Invalid value: "Q": {stays}',
            f'message: Invalid value: "w": {stays}',
            f'source: Invalid value: {{"Component":"x","Host":""}}: {stays}',
            f"count: Invalid value: 3: {stays}",
            f'reason: Invalid value: "Q": {stays}',
            f'type: Invalid value: "Warning": {stays}',
            f'related: Invalid value: {{"Kind":"x","Namespace":"","Name":"",{inner}}}: {stays}',
            f'reportingController: Invalid value: "q": {stays}',
        ]


class TestShown:
    """What `kubectl get events` shows, and how events are selected."""

    def test_older(self) -> None:
        """Times, object, source and count are where the event was told of in the older form."""
        event = created(
            OLDER,
            involvedObject={"kind": "Node", "name": "a", "fieldPath": "f"},
            message=" m\n",
            type="Normal",
            reason="R",
            count=3,
            firstTimestamp="2020-01-01T00:00:00Z",
            lastTimestamp="2020-01-02T00:00:00Z",
            source={"component": "c", "host": "h"},
        )
        assert row(OLDER, event) == [
            "2020-01-02T00:00:00+00:00",
            "Normal",
            "R",
            "node/a",
            "f",
            "c, h",
            "m",
            "2020-01-01T00:00:00+00:00",
            3,
            "x",
        ]

    def test_newer(self) -> None:
        """One of the newer form happened once, when it says, unless it has a series."""
        event = created(NEWER, **WHOLE)
        expected = ["Normal", "R", "node/a", "", "a.b/c, i", "n", "2020-01-01T00:00:00+00:00", 1, "x"]
        assert row(NEWER, event) == ["2020-01-01T00:00:00+00:00", *expected]
        assert row(OLDER, to_older(event)) == row(NEWER, event)
        series = created(NEWER, **WHOLE, series={"count": 7, "lastObservedTime": "2020-01-03T00:00:00.000000Z"})
        cells = row(NEWER, series)
        assert (cells[0], cells[8]) == ("2020-01-03T00:00:00+00:00", 7)

    def test_nothing_known(self) -> None:
        """One that says nothing is shown all the same."""
        assert row(OLDER, created(OLDER)) == ["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "x"]

    def test_name_comes_last(self) -> None:
        """The name is a column among the others, shown with -o wide alone."""
        for resource in (OLDER, NEWER):
            assert [(each.name, each.priority) for each in resource.columns][-1] == ("Name", 1)

    def test_field_selectors(self) -> None:
        """Each form is selected by the names of its own fields; the source may be told in either."""
        event = created(NEWER, **WHOLE)
        older = to_older(event)
        assert OLDER.fields["involvedObject.name"](older) == NEWER.fields["regarding.name"](event) == "a"
        assert OLDER.fields["reportingComponent"](older) == NEWER.fields["reportingController"](event) == "a.b/c"
        assert OLDER.fields["source"](older) == "a.b/c"
        assert "source" not in NEWER.fields
        assert OLDER.fields["source"](read(OLDER, source={"component": "s"}, reportingComponent="r")) == "s"
