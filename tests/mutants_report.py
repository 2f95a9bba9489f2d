"""Add up what `mutmut results --all true` prints, module by module, and fail where too few mutants were caught.

    mutmut results --all true | python tests/mutants_report.py

A mutant is caught when a test fails. All else counts as missed: a mutant that survives, that no test reaches, or whose
tests did not end in time, which may be a loop that never ends or only a machine with much else to do.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

WANTED: Final = 90.0
"""Per cent of all mutants that have to be caught. Those that cannot be are explained in docs/mutants.md."""

CAUGHT: Final = "killed"


def statuses(lines: Iterable[str]) -> dict[str, Counter[str]]:
    """Count, for each module, how its mutants fared. A line is `module.function__mutmut_number: status`."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        mutant, colon, status = line.strip().rpartition(": ")
        if colon:
            counts[mutant.rpartition(".")[0]][status] += 1
    return dict(counts)


def share(counts: Counter[str]) -> float:
    """Return how many of a hundred mutants were caught."""
    return 100.0 * counts[CAUGHT] / max(1, counts.total())


def row(name: str, counts: Counter[str]) -> str:
    """Write one line of the report."""
    others = counts.total() - sum(counts[status] for status in (CAUGHT, "timeout", "survived"))
    figures = (counts.total(), counts[CAUGHT], counts["timeout"], counts["survived"], others)
    return f"{name:<28}" + "".join(f"{figure:>10}" for figure in figures) + f"{share(counts):>9.1f}%\n"


def main() -> int:
    """Print the report; 0 if enough was caught."""
    modules = statuses(sys.stdin)
    total = sum(modules.values(), Counter[str]())
    columns = ("mutants", "killed", "timeout", "survived", "other", "caught")
    sys.stdout.write(f"{'module':<28}" + "".join(f"{column:>10}" for column in columns) + "\n")
    sys.stdout.writelines(row(name, counts) for name, counts in sorted(modules.items()))
    sys.stdout.write(row("all", total))
    return 0 if total and share(total) >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
