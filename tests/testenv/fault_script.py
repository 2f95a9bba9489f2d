"""Which request meets which fault: rules, in the order in which they were added.

- A rule counts, from 1 and from when it was added, the requests whose method and path it matches. It counts them also
  where an earlier rule has decided, so that a rule means the same whatever stands beside it.
- A request meets the fault of the first rule that matches it, whose `nth` has its number, and whose draw says so.
- Each rule draws from a generator of its own, seeded by the script's seed and by how many rules were added before it,
  once for each request that it counts. Same seed, same rules, same requests in the same order: same faults.

Every method may be called from any thread. A rule that is removed meets no further request; what it has begun goes on.
"""

from __future__ import annotations

import random
import re
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.testenv.faults import Fault

EVERY: Final = range(1, sys.maxsize)
"""All requests that a rule matches."""


@dataclass(slots=True, eq=False)
class Rule:
    """A fault and the requests that meet it. `seen` and `hits` count those that it matched, and those that it hit."""

    fault: Fault
    method: re.Pattern[str]
    path: re.Pattern[str]
    nth: range
    probability: float
    draws: random.Random
    seen: int = 0
    hits: int = 0

    def counts(self, method: str, path: str) -> bool:
        """Count the request if it is of this rule, and return whether it is to meet the fault."""
        if not (self.method.fullmatch(method) and self.path.search(path)):
            return False
        self.seen += 1
        # Drawn even when nth already says no: how many draws were taken must depend on the requests alone.
        drawn = self.draws.random() < self.probability
        return drawn and self.seen in self.nth


class Script:
    """The rules of a proxy.

    >>> from tests.testenv.faults import cut, server_error
    >>> script = Script(seed=7)
    >>> second = script.add(cut(), method="PATCH", path="^/api/v1/nodes/", nth=2)
    >>> often = script.add(server_error(), probability=0.5)
    >>> [script.decide("PATCH", "/api/v1/nodes/a") is second for _ in range(3)]
    [False, True, False]
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._added = 0
        self._rules: list[Rule] = []
        self._lock = threading.Lock()

    def add(
        self, fault: Fault, *, method: str = ".*", path: str = "", nth: int | range = EVERY, probability: float = 1.0
    ) -> Rule:
        r"""Add a rule behind the others and return it.

        `method` is a regular expression for the whole method ("PATCH|PUT"), `path` one that is searched for in path and
        query ("^/api/v1/nodes\?.*watch="), `nth` a number or a range of numbers, from 1.
        """
        numbers = range(nth, nth + 1) if isinstance(nth, int) else nth
        if not numbers or min(numbers[0], numbers[-1]) < 1:
            raise ValueError(f"nth counts from 1: {nth}")
        if not 0 <= probability <= 1:
            raise ValueError(f"a probability is between 0 and 1: {probability}")
        with self._lock:
            draws = random.Random(f"{self._seed}/{self._added}")
            rule = Rule(fault, re.compile(method), re.compile(path), numbers, probability, draws)
            self._rules.append(rule)
            self._added += 1
        return rule

    def remove(self, rule: Rule) -> None:
        """Remove a rule. Raises ValueError if it is not there."""
        with self._lock:
            self._rules.remove(rule)

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules.clear()

    def decide(self, method: str, path: str) -> Rule | None:
        """Count a request and return the rule whose fault it meets, if any."""
        with self._lock:
            wanting = [rule for rule in self._rules if rule.counts(method, path)]
            if not wanting:
                return None
            wanting[0].hits += 1
            return wanting[0]
