"""Faults that come again and again."""

from __future__ import annotations

from structlog.testing import capture_logs

from cidrella.kube import complaints
from cidrella.kube.complaints import Complaints


def test_each_kind_once_until_it_is_over() -> None:
    """A fault is logged when it begins and counted until it is over; then it may begin again."""
    with capture_logs() as logs:
        made = Complaints("/things")
        for _ in range(3):
            made.make("wrong", kind="A", error="e", subject="x")
        made.make("wrong", kind="B", error="e", subject="x")
        made.settle("over", "x")
        made.settle("over", "x")
        made.make("wrong", kind="A", error="e", subject="x")
    assert [(log["event"], log.get("kind"), log.get("faults")) for log in logs] == [
        ("wrong", "A", None),
        ("wrong", "B", None),
        ("over", None, {"A": 3, "B": 1}),
        ("wrong", "A", None),
    ]
    assert made.total == 5


def test_subjects_that_are_no_more_are_forgotten() -> None:
    """Nothing is kept about objects that are gone; the thing itself is not among them."""
    with capture_logs() as logs:
        made = Complaints("/things")
        for subject in ("", "x", "y"):
            made.make("wrong", kind="A", error="e", subject=subject)
        made.keep_only({"y"})
        for subject in ("", "x", "y"):
            made.make("wrong", kind="A", error="e", subject=subject)
    assert [log.get("name", "") for log in logs] == ["", "x", "y", "x"]


def test_subjects_beyond_number() -> None:
    """There is an end to how many subjects are kept, and faults beyond it are still counted."""
    with capture_logs() as logs:
        made = Complaints("/things")
        for number in range(complaints.SUBJECTS_MAX + 5):
            made.make("wrong", kind="A", error="e", subject=str(number))
    assert len(logs) == complaints.SUBJECTS_MAX
    assert made.total == complaints.SUBJECTS_MAX + 5
