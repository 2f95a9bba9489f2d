"""The scheduler: what stays together, and which worker runs it."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.plugins.scheduling import SECONDS, EnvironmentScheduling, environment_of, group_of

ROOT = Path(__file__).parents[2]
REAL = "tests/real/test_nodes.py"


@pytest.mark.parametrize(
    ("test", "group", "environment"),
    [
        (f"{REAL}::test_a[kubernetes]", f"{REAL}[kubernetes]", "tests/real[kubernetes]"),
        (f"{REAL}::TestX::test_a[IPv4-embedded-1]", f"{REAL}[embedded]", "tests/real[embedded]"),
        (f"{REAL}::test_a[embedded_twice]", REAL, ""),
        (f"{REAL}::test_kubernetes", REAL, ""),
        ("src/cidrella/core/bits.py::cidrella.core.bits.SparseBits", "src/cidrella/core/bits.py", ""),
    ],
)
def test_groups(test: str, group: str, environment: str) -> None:
    """The tests of a file on one API server are a group; they share the API server of their directory."""
    assert (group_of(test), environment_of(group_of(test))) == (group, environment)


class Worker:
    """A worker that only remembers what it was given."""

    shutting_down = False

    def __init__(self) -> None:
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices


def scheduler(*groups: str, workers: int = 1) -> tuple[Any, list[Worker]]:
    """A scheduler with a test in each group, and its workers."""
    made = EnvironmentScheduling(SimpleNamespace(getvalue=lambda _: ["popen"] * workers), None)
    made.workqueue = OrderedDict((group, {group: False}) for group in groups)
    nodes = [Worker() for _ in range(workers)]
    for node in nodes:
        made.assigned_work[node] = {}
        made.registered_collections[node] = list(groups)
    return made, nodes


def test_a_worker_stays_with_its_environment() -> None:
    """It runs all tests on the API server that it has before it starts another one."""
    groups = [f"tests/real/test_{name}.py[{server}]" for name in "abc" for server in ("kubernetes", "embedded")]
    made, (worker,) = scheduler(*groups)
    for _ in groups:
        made._assign_work_unit(worker)
    environments = [environment_of(groups[index]) for index in worker.given]
    assert sorted(worker.given) == [*range(6)]
    assert environments in (sorted(environments), sorted(environments, reverse=True))


def test_workers_take_different_environments() -> None:
    """Two workers begin with an API server each, not both with the same."""
    groups = [f"tests/real/test_{name}.py[{server}]" for name in "abc" for server in ("kubernetes", "embedded")]
    made, workers = scheduler(*groups, workers=2)
    for worker in workers:
        made._assign_work_unit(worker)
    assert {environment_of(groups[worker.given[0]]) for worker in workers} == {
        "tests/real[kubernetes]",
        "tests/real[embedded]",
    }


def test_long_groups_come_first() -> None:
    """A long file of the worker's environment, or of none, runs before short ones."""
    groups = ["tests/real/test_a.py[embedded]", "tests/chaos/test_lease.py", "tests/chaos/test_chaos.py"]
    made, (worker,) = scheduler(*groups)
    made._assign_work_unit(worker)
    assert worker.given == [2]


@pytest.mark.parametrize("file", SECONDS)
def test_files_that_take_long_exist(file: str) -> None:
    """A file that is renamed is renamed in the list too."""
    assert (ROOT / file).exists()
