"""Decide which worker of pytest-xdist runs which tests.

- The tests of one file on one API server (`[kubernetes]` or `[embedded]` in a test's name) stay together and in order:
  they share module fixtures.
- A worker keeps the API server that its tests share. So it goes on with tests of the same environment (directory and
  API server) as long as there are any. Then it takes the environment with the most seconds left for each worker that
  has it.
- Tests that start what they need run on any worker.
- Groups that take long come first, so that no worker is left alone with one at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections import OrderedDict

    from xdist.workermanage import WorkerController

    Tests = dict[str, bool]
    """Whether each test is done."""

SECONDS = {
    "tests/apiserver/test_durability.py": 15,
    "tests/app/test_converting.py": 15,
    "tests/chaos/test_chaos.py": 80,
    "tests/chaos/test_history.py": 40,
    "tests/conformance/test_crds.py": 25,
    "tests/conformance/test_kubectl.py": 50,
    "tests/conformance/test_random.py": 40,
    "tests/controller/test_never_twice.py": 15,
    "tests/core/test_space_oracle.py": 25,
    "tests/page/test_adapting.py": 30,
    "tests/page/test_connection.py": 40,
    "tests/page/test_geometry.py": 45,
    "tests/page/test_keyboard.py": 40,
    "tests/page/test_live.py": 30,
    "tests/page/test_looking.py": 75,
    "tests/real/test_configs.py": 45,
    "tests/real/test_configs_crd.py": 50,
    "tests/real/test_election.py": 30,
    "tests/real/test_leading.py": 45,
    "tests/real/test_never_twice.py": 30,
    "tests/real/test_page.py": 40,
    "tests/real/test_pools.py": 30,
    "tests/real/test_reflector.py": 25,
    "tests/real/test_service_allocation.py": 35,
    "tests/real/test_service_repair.py": 70,
    "tests/real/test_startup.py": 30,
    "tests/real/test_webhook.py": 50,
    "tests/real/test_webhook_leaves.py": 45,
    "tests/real/test_webhook_small.py": 50,
    "tests/real/test_writes.py": 25,
    "tests/up/test_running.py": 40,
}
"""How long a group of these files takes, roughly. It affects the order of the tests and nothing else."""
_OTHERS = 5
"""Seconds, of all other files."""

_SERVER = re.compile(r"[\[-](kubernetes|embedded)[\]-]")


def group_of(nodeid: str) -> str:
    """The file, and the API server of the test if it has one: `tests/real/test_nodes.py[embedded]`."""
    file, _, test = nodeid.partition("::")
    found = _SERVER.search(test)
    return f"{file}[{found[1]}]" if found else file


def environment_of(group: str) -> str:
    """The API server that a group shares with others of its directory, as `tests/real[embedded]`; empty without one."""
    directory, _, name = group.rpartition("/")
    return directory + name[name.index("[") :] if "[" in name else ""


class EnvironmentScheduling(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """Gives a worker one group of tests at a time."""

    workqueue: OrderedDict[str, Tests]
    assigned_work: dict[WorkerController, dict[str, Tests]]

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(self._choose(node), last=False)
        super()._assign_work_unit(node)

    def _choose(self, node: WorkerController) -> str:
        left: Counter[str] = Counter()
        for group in self.workqueue:
            left[environment_of(group)] += _seconds(group)
        environment = self._environment(node)
        if environment not in left:
            busy = Counter(self._environment(worker) for worker in self.assigned_work if worker is not node)
            environment = max(left, key=lambda each: left[each] / (1 + busy[each]) if each else 0)
        return max((group for group in self.workqueue if environment_of(group) in {environment, ""}), key=_seconds)

    def _environment(self, node: WorkerController) -> str | None:
        """The one that a worker started last."""
        return next(filter(None, map(environment_of, reversed(self.assigned_work[node]))), None)


def _seconds(group: str) -> int:
    return SECONDS.get(group.partition("[")[0], _OTHERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> EnvironmentScheduling:
    """Use it for every run with workers."""
    return EnvironmentScheduling(config, log)
