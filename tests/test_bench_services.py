"""The parts of `make bench-services` that compute something: a wrong figure would look like any other."""

from __future__ import annotations

import base64
import json
import random

import msgspec
import pytest
from bench.report import Report
from bench.services import read_options
from bench.services_admission import Round, given_address, note_rounds, question
from bench.services_bitmap import Fill, fill_ours, note_fills, parts_of

from cidrella.core.bands import ServiceRange
from cidrella.model.admission import AdmissionReview
from tests.core.build import prefix


def test_options() -> None:
    """All parts three times, unless told otherwise."""
    options = read_options([])
    assert (options.rounds, options.writes, options.decisions) == (3, 200, 500)
    assert options.only == ("bitmap", "commit", "admission")
    assert read_options(["--quick", "--only", "bitmap"]).rounds == 1
    assert read_options(["--quick", "--rounds", "2"]).rounds == 2


@pytest.mark.parametrize(("cidr", "early", "late"), [("10.96.0.0/16", 6553, 66), ("10.96.0.0/12", 104857, 1049)])
def test_what_counts_as_empty_and_as_nearly_full(cidr: str, early: int, late: int) -> None:
    """The first tenth, and all beyond 99.9 %."""
    assert parts_of(ServiceRange.of(prefix(cidr))) == (early, late)


def test_ours_is_filled_to_the_last_address() -> None:
    """Ours does the whole work that theirs does; it fails if an address is given twice, or left."""
    fill = fill_ours(ServiceRange.of(prefix("10.96.0.0/22")), random.Random(1).randrange)
    assert fill.empty > 0
    assert fill.full > 0


def test_the_bitmaps_are_compared_by_their_medians() -> None:
    """How many times as fast ours is: theirs over ours, in microseconds what came in nanoseconds."""
    report = Report({})
    theirs = [Fill(50, 300_000), Fill(60, 200_000), Fill(900, 9_000_000)]
    note_fills(report, "a /16", theirs, [Fill(1_000, 4_000), Fill(1_200, 3_000), Fill(9_000, 9_000)])
    assert report.figures == {
        "a /16, empty: Go's bitmap, µs": 0.06,
        "a /16, empty: ours, µs": 1.2,
        "a /16, beyond 99.9 % full: Go's bitmap, µs": 300.0,
        "a /16, beyond 99.9 % full: ours, µs": 4.0,
    }
    assert report.ratios["a /16, beyond 99.9 %: times as fast as Go's bitmap"] == {
        "value": 75.0,
        "at_most": 0,
        "at_least": 50,
    }


def test_a_decision_is_compared_by_the_medians_of_the_rounds() -> None:
    """One bad round changes neither the median nor the p99."""
    report = Report({})
    bad = Round([500.0] * 3, [600.0] * 3, [900.0] * 3)
    good = Round([1.0, 2.0, 7.0], [2.0, 1.0, 9.0], [5.0, 4.0, 20.0])
    note_rounds(report, [good, bad, Round([1.0, 2.0, 8.0], [3.0, 2.0, 8.0], [6.0, 5.0, 30.0])])
    assert report.figures == {
        "a PATCH of a ConfigMap: median, ms": 2.0,
        "a PATCH of a ConfigMap: p99, ms": 8.0,
        "a bare PATCH, of a node: median, ms": 3.0,
        "a bare PATCH, of a node: p99, ms": 9.0,
        "a decision of the webhook: median, ms": 6.0,
        "a decision of the webhook: p99, ms": 30.0,
    }
    assert [each["value"] for each in report.ratios.values()] == [2.0, 3.0]


def test_the_question_is_one_that_the_webhook_understands() -> None:
    """It is read as an AdmissionReview, about a Service without an address."""
    review = msgspec.json.decode(question("bench-1"), type=AdmissionReview)
    assert review.request is not None
    assert (review.request.name, review.request.operation, review.request.dry_run) == ("bench-1", "CREATE", False)


def test_the_address_in_an_answer() -> None:
    """It is read from the patch."""
    patch = [
        {"op": "add", "path": "/spec/clusterIP", "value": "10.96.3.4"},
        {"op": "add", "path": "/spec/clusterIPs", "value": ["10.96.3.4"]},
    ]
    response = {"uid": "1", "allowed": True, "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    assert given_address(json.dumps({"response": response}).encode()) == "10.96.3.4"
    with pytest.raises(AssertionError):
        given_address(json.dumps({"response": {"allowed": False}}).encode())
