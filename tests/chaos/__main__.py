"""`python -m tests.chaos`: runs of chaos from seeds, and recorded ones checked again."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.checker import check
from tests.chaos.history import History
from tests.chaos.running import Outcome, Progress, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.checker import Broken

KEPT = Path(__file__).parents[2] / "build" / "chaos"
SHORTEST = 40.0
"""Seconds: less has no room for faults."""
_TOLD = 20
"""How many findings are told; all of them are in the file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0 where all held, 1 where something did not, 2 for what cannot be done."""
    options = _parser().parse_args(arguments)
    if options.command == "replay":
        return _replay(options.directory)
    # SIGTERM ends as Ctrl-C does, so that everything is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    outcomes = []
    try:
        for seed in range(options.seed, options.seed + options.seeds):
            outcomes.append(_run(options, seed))
            if outcomes[-1].broken and options.first:
                break
    except KeyboardInterrupt:
        say("", "stopped")
    _tell_all(outcomes)
    return int(any(outcome.broken for outcome in outcomes) or not outcomes)


def say(*lines: str) -> None:
    """At once, also to whoever reads it from a file."""
    for line in lines:
        print(line, flush=True)  # noqa: T201 - a command's output


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    running = commands.add_parser("run", help="act schedules out on real clusters, and check what happened")
    running.add_argument("--seeds", type=_count, default=1, metavar="N", help="how many seeds, one after the other (1)")
    running.add_argument("--seed", type=int, default=1, metavar="N", help="the first of them (1)")
    running.add_argument("--seconds", type=_length, default=240.0, metavar="N", help="how long each run is (240)")
    running.add_argument("--without-intents", action="store_true", help="replicas record nothing: must find an overlap")
    running.add_argument("--first", action="store_true", help="end with the first seed that finds something")
    running.add_argument("--keep", type=Path, metavar="DIR", help="keep every history, good ones too, in DIR/seed-N")
    replaying = commands.add_parser("replay", help="check a history that was kept")
    replaying.add_argument("directory", type=Path, metavar="DIR")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a number of seeds: {text}")
    return int(text)


def _length(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text}") from None
    if not SHORTEST <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"a run takes {SHORTEST:.0f} to 3600 seconds, not {text}")
    return seconds


def _run(options: argparse.Namespace, seed: int) -> Outcome:
    began = time.monotonic()
    say(f"seed {seed}: {options.seconds:.0f} s")
    outcome = run(
        seed,
        options.seconds,
        (options.keep or KEPT) / f"seed-{seed}",
        intents=not options.without_intents,
        keep_good=options.keep is not None,
        tell=_tell,
    )
    say(_line(outcome, time.monotonic() - began))
    _tell_broken(outcome.broken)
    if outcome.broken and outcome.kept:
        again = f"--seed {seed} --seconds {options.seconds:.0f}" + " --without-intents" * options.without_intents
        say(f"  kept in {outcome.kept}")
        say(f"  the same schedule again: python -m tests.chaos run {again}")
        say(f"  the same history again:  python -m tests.chaos replay {shlex.quote(str(outcome.kept))}")
    return outcome


def _replay(directory: Path) -> int:
    try:
        history = History.load(directory)
    except (OSError, ValueError, TypeError, KeyError) as error:
        sys.stderr.write(f"no history in {directory}: {error}\n")
        return 2
    broken = check(history)
    meta = history.meta
    say(f"seed {meta.seed}, {meta.seconds:.0f} s, {len(history.changes)} changes, {len(history.writes)} writes")
    _tell_broken(broken)
    say("all invariants hold" if not broken else f"{len(broken)} broken")
    return int(bool(broken))


def _tell(progress: Progress) -> None:
    say(
        f"  {progress.left:4.0f} s left: {progress.given} nodes given blocks, {progress.living} there,"
        f" {progress.unserved} without; {progress.faults} faults, {progress.pauses} pauses of a leader",
    )


def _tell_broken(broken: Sequence[Broken]) -> None:
    for each in broken[:_TOLD]:
        say(f"  BROKEN {each}")
    if len(broken) > _TOLD:
        say(f"  ... and {len(broken) - _TOLD} more")


def _line(outcome: Outcome, took: float) -> str:
    names = Counter(each.invariant for each in outcome.broken)
    found = ", ".join(f"{name} {count}" for name, count in names.items()) or "all invariants hold"
    return (
        f"seed {outcome.seed}: {outcome.allocations} allocations, {outcome.faults.total()} faults,"
        f" {outcome.pauses} pauses of a leader, {outcome.held_writes} writes on the wire then,"
        f" {outcome.takeovers} takeovers, {outcome.skipped.total()} steps skipped, {took:.0f} s: {found}"
    )


def _tell_all(outcomes: Sequence[Outcome]) -> None:
    """A table: a seed a line, and all of them together."""
    if not outcomes:
        return
    columns = ("seed", "allocations", "faults", "pauses", "on the wire", "takeovers", "skipped", "broken")
    rows = [
        (
            str(each.seed),
            each.allocations,
            each.faults.total(),
            each.pauses,
            each.held_writes,
            each.takeovers,
            each.skipped.total(),
            len(each.broken),
        )
        for each in outcomes
    ]
    sums = [sum(int(row[column]) for row in rows) for column in range(1, len(columns))]
    say("")
    for row in (columns, *rows, ("all", *sums)):
        say("  ".join(f"{cell:>{len(name)}}" for cell, name in zip(row, columns, strict=True)))
    faults = sum((each.faults for each in outcomes), Counter[str]())
    say("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())))
    skipped = sum((each.skipped for each in outcomes), Counter[str]())
    say("skipped: " + (", ".join(f"{name} {count}" for name, count in sorted(skipped.items())) or "nothing"))
    done = sum((each.done for each in outcomes), Counter[str]())
    say("done: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))


if __name__ == "__main__":
    sys.exit(main())
