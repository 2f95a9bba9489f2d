"""Random requests, the same to both servers: code, reason and body of each answer agree, and what a watch then tells.

What is made equal before it is compared: `lockstep/sides.py`. What is left out: `lockstep/material.py`. A difference is
shown with the fewest requests that lead to it. `make compare SEEDS=100` tries more, beginning with SEED.
"""

from __future__ import annotations

import os
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.conformance.conftest import CRD_FILES
from tests.conformance.lockstep.comparing import Lockstep, Tally
from tests.conformance.lockstep.generating import Generator
from tests.conformance.talking import Talk
from tests.real.conftest import KEPT_LOGS
from tests.testenv.cluster import Cluster
from tests.testenv.embedded import Embedded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIRST = int(os.environ.get("SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "6"))
LENGTH = 300


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Talk, Talk]]:
    """Both servers, for these tests alone."""
    with Cluster.temporary(keep_logs_in=KEPT_LOGS) as real, Embedded.temporary(keep_logs_in=KEPT_LOGS) as embedded:
        for each in (real, embedded):
            each.admin.wait("/api/v1/namespaces", lambda found: "kube-system" in found)
            each.kubectl("apply", *CRD_FILES)
            each.kubectl("wait", "--for=condition=Established", "--timeout=120s", *CRD_FILES)
        with closing(Talk(real.admin)) as one, closing(Talk(embedded.admin)) as other:
            yield one, other


@pytest.fixture(scope="module")
def tally() -> Tally:
    """What all seeds together compared."""
    return Tally()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_both_answer_alike(both: tuple[Talk, Talk], seed: int, tally: Tally) -> None:
    """The same requests, the same answers."""
    namespace = f"seed-{seed}"
    lockstep = Lockstep(*both, namespace)
    lockstep.compare(Generator(Random(seed), namespace).sequence(LENGTH))
    tally.add(lockstep.tally)


def test_what_was_compared(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """Nothing was left out by accident: every verb, and answers of every class, were among them."""
    record_property("compared", str(tally))
    assert tally.verbs.keys() == {"create", "get", "list", "replace", "patch", "delete", "deletecollection"}
    assert {200, 201, 400, 404, 406, 409, 415, 422} <= tally.codes.keys()
    assert tally.events > SEEDS
