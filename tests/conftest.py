"""How hard the property tests try: chosen by the environment variable HYPOTHESIS_PROFILE.

- `default`: the same examples each time, so that a run fails because of a change and never by chance.
- `long`: five times as many, and new ones each time; a failure prints how to repeat it. `make test-long` uses it.
- `mutants`: few examples, the same each time, nothing kept on disk, and no search for a simpler example of a failure:
  each of a few thousand mutants pays for them.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["tests.plugins.scheduling"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")

# A shell starts background jobs with SIGINT ignored; the programs that tests start and interrupt would ignore it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Less garbage collection in kube-apiserver, etcd and kubectl: a sixth less CPU to start an API server.
os.environ.setdefault("GOGC", "400")

settings.register_profile("default", max_examples=60, stateful_step_count=25, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=300, stateful_step_count=50, deadline=None, print_blob=True)
settings.register_profile(
    "mutants",
    max_examples=20,
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give mutmut what it asks tests for: 3.8 wants `_nodeid`, which pytest has called `nodeid` alone since 9.2."""
    if PROFILE == "mutants":
        for item in items:
            vars(item).setdefault("_nodeid", item.nodeid)
