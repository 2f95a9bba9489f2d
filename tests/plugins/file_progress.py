"""Print one line for each test file when its last test is done, in place of a dot for each test.

A line shows the number of tests done, the file, the outcomes of its tests, the seconds that they took together, and
what they recorded with `record_property`. A failure is also printed when it happens. With pytest-xdist the tests of
several files run at the same time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from _pytest.terminal import TerminalReporter

    Status = tuple[str, object, object]


OUTCOMES = ("passed", "failed", "skipped")


@dataclass
class _File:
    tests: int = 0
    done: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    properties: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        outcomes = [f"{count} {outcome}" for outcome in OUTCOMES if (count := self.outcomes[outcome])]
        return ", ".join([*outcomes, f"{self.seconds:.1f} s", *self.properties])


class FileProgress:
    """The terminal's progress, by file."""

    def __init__(self, terminal: TerminalReporter) -> None:
        self._terminal = terminal
        self._files: defaultdict[str, _File] = defaultdict(_File)
        self._done = 0
        self._tests = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Iterable[str]) -> None:
        """Each worker of xdist collects the same tests."""
        self._collected(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without xdist."""
        if session.items:
            self._collected(item.nodeid for item in session.items)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """Keep the category and the word, which the summary shows, and print no letter."""
        category, _, word = yield
        return category, "", word

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count setup, call and teardown of a test towards its file."""
        name = _file_of(report.nodeid)
        file = self._files[name]
        file.seconds += report.duration
        if report.failed:
            self._print(f"FAILED {report.nodeid} ({report.when}): {_reason(report)}")
        if report.failed or report.skipped or report.when == "call":
            file.outcomes[report.outcome] += 1
        if report.when == "teardown":
            file.properties += [f"{key}: {value}" for key, value in report.user_properties]
            file.done += 1
            self._done += 1
            if file.done == file.tests:
                self._print(f"[{self._done:>{len(str(self._tests))}}/{self._tests}] {name}: {file}")

    def _print(self, line: str) -> None:
        self._terminal.write_line(line)
        self._terminal.flush()

    def _collected(self, ids: Iterable[str]) -> None:
        counts = Counter(map(_file_of, ids))
        self._tests = counts.total()
        for name, count in counts.items():
            self._files[name].tests = count


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).partition("\n")[0]


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Take over from the dots. Workers of xdist report to the process that started them, and print nothing."""
    terminal: TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        terminal.showfspath = False
        config.pluginmanager.register(FileProgress(terminal), "file-progress")
