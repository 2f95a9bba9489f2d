"""Faults that come again and again, logged once: when they begin, and how often there were when they are over."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from collections.abc import Container

_log = structlog.get_logger()

SUBJECTS_MAX: Final = 10_000
"""How many subjects are kept apart. Beyond that, faults are counted and not logged: it is known by then."""


class Complaints:
    """What is wrong with whom. A subject is a name, or "" for the thing itself that `path` stands for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: dict[str, Counter[str]] = {}
        self.total = 0
        """How many faults there were, ever."""

    def make(self, event: str, *, kind: str, error: object, subject: str = "") -> None:
        """Count a fault, and log it if it is the first of its kind with this subject since the last `settle`."""
        self.total += 1
        if subject not in self._open and len(self._open) >= SUBJECTS_MAX:
            return
        kinds = self._open.setdefault(subject, Counter())
        kinds[kind] += 1
        if kinds[kind] == 1:
            _log.warning(event, path=self._path, kind=kind, error=str(error), **_named(subject))

    def settle(self, event: str, subject: str = "") -> None:
        """It is over: log how often what went wrong. Nothing is logged where nothing had."""
        if kinds := self._open.pop(subject, None):
            _log.info(event, path=self._path, faults=dict(kinds), **_named(subject))

    def keep_only(self, subjects: Container[str]) -> None:
        """Forget all subjects but these, and the thing itself: they are no more."""
        self._open = {each: kinds for each, kinds in self._open.items() if not each or each in subjects}


def _named(subject: str) -> dict[str, str]:
    return {"name": subject} if subject else {}
