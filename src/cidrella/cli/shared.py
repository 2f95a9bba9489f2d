"""What the commands share: their common options, reading the input with a progress bar, and how faults are shown."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from cidrella.app.intake import take_inventory, take_services
from cidrella.app.inventory import ClusterError, InputError, printable
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.model.syntax import label_key_fault, label_value_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.app.inventory import Fault, Inventory, ServiceInventory

WRONG_INPUT = 2
"""The exit code for input that is wrong."""
CANNOT_WRITE = 1
INTERRUPTED = 130

WORTH_A_BAR = 2_000_000
"""Bytes of input from which on a progress bar is shown: about a second of YAML."""

_FAULTS_SHOWN = 200


class Output(Enum):
    """How a result is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Listing(Enum):
    """How a list is written."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Files = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILES", help="More files and directories, the same as with -f.", show_default=False),
]
FileOptions = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="FILE",
        help="YAML or JSON: a file, a directory, or - for standard input. May be given several times.",
        show_default=False,
    ),
]
Recursive = Annotated[bool, typer.Option("-R", "--recursive", help="Look into the directories below a directory, too.")]
ServiceRanges = Annotated[
    str,
    typer.Option(
        "--service-cluster-ip-range",
        metavar="CIDR[,CIDR]",
        help="Ranges of Services, which are never given to nodes: one, or one of each family.",
        show_default=False,
    ),
]
WaitForLabels = Annotated[
    bool,
    typer.Option(
        "--wait-for-cloud-provider/--no-wait-for-cloud-provider",
        help="Delay allocation for a node with the taint node.cloudprovider.kubernetes.io/uninitialized, if labels "
        "that are not set yet could make another pool match it.",
    ),
]
Format = Annotated[Output, typer.Option("-o", "--output", help="How to write the result.")]
ListFormat = Annotated[
    Listing, typer.Option("-o", "--output", help="How to write the result; wide is a table with more columns.")
]


def read_input(files: list[str] | None, more: list[str] | None, *, recursive: bool, strict: bool = False) -> Inventory:
    """Everything in the named files, faults included. A bar shows where large input stands."""
    names = [*(files or []), *(more or [])]
    if not names:
        raise typer.BadParameter("say where the objects are: -f FILE, -f DIRECTORY, or -f - for standard input")
    with reading(DownloadColumn(), WORTH_A_BAR) as progress:
        return take_inventory(names, recursive=recursive, strict=strict, progress=progress)


@contextmanager
def reading(column: ProgressColumn, worth: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for a terminal, shown once there is so much to read that it is `worth` one."""
    with bar("reading", column, worth) as progress:
        yield progress


@contextmanager
def bar(doing: str, column: ProgressColumn, worth: int) -> Iterator[Callable[[int, int], None]]:
    """The same for something else that takes its time."""
    console = Console(stderr=True)
    columns = TextColumn(doing), BarColumn(), column, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(doing, total=None, visible=False)
        yield lambda done, total: shown.update(task, completed=done, total=total, visible=total > worth)


def read_services_input(files: list[str], *, recursive: bool) -> ServiceInventory:
    """The Services in the named files, and what gives them addresses. What is wrong with them ends the command."""
    with reading(DownloadColumn(), WORTH_A_BAR) as progress:
        return take_services(files, recursive=recursive, progress=progress).require_sound()


def read_sound_input(files: list[str] | None, more: list[str] | None, *, recursive: bool) -> Inventory:
    """The same, for commands that work only on input without faults. What they will miss in it is said."""
    inventory = read_input(files, more, recursive=recursive).require_sound()
    if not inventory.pools or not inventory.nodes:
        missing = " and ".join(
            kind for kind, kept in (("pool", inventory.pools), ("Node", inventory.nodes)) if not kept
        )
        ignored = ", ".join(f"{count} {kind}" for kind, count in sorted(inventory.ignored.items()))
        warn(f"there is no {missing} in the input" + (f"; passed over: {ignored}" if ignored else ""))
    return inventory


def parse_service_ranges(text: str) -> list[Prefix]:
    """The flag's ranges. One with host bits set is masked, with a warning, as the flag's other readers do."""
    ranges: list[Prefix] = []
    for part in (part.strip() for part in text.split(",")) if text.strip() else ():
        try:
            cidr = Prefix.parse_lenient(part)
        except PrefixError as error:
            raise typer.BadParameter(f"--service-cluster-ip-range: {part!r} {error}") from error
        if str(cidr) != part:
            warn(f"--service-cluster-ip-range: {part} is read as {cidr}")
        ranges.append(cidr)
    if len({cidr.family for cidr in ranges}) < len(ranges):
        raise typer.BadParameter("--service-cluster-ip-range: give one range, or one of each family")
    return ranges


def parse_labels(texts: list[str] | None, flag: str = "--labels") -> dict[str, str]:
    """Labels, several to a text with a comma between."""
    labels: dict[str, str] = {}
    for pair in [pair for text in texts or [] for pair in text.split(",") if pair]:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{flag}: {pair!r} is no label; write KEY=VALUE")
        if fault := label_key_fault(key) or label_value_fault(value):
            raise typer.BadParameter(f"{flag}: {pair!r} {fault}")
        if labels.setdefault(key, value) != value:
            raise typer.BadParameter(f"{flag}: {key} is given twice")
    return labels


def warn(message: str) -> None:
    """A remark that is no part of the result."""
    typer.echo(f"warning: {message}", err=True)


def show_faults(faults: list[Fault], then: str = "nothing was done") -> None:
    """One line each, as compilers write them, so that editors find the place; and what that means for the rest."""
    for fault in faults[:_FAULTS_SHOWN]:
        typer.echo(str(fault), err=True)
    if len(faults) > _FAULTS_SHOWN:
        typer.echo(f"and {len(faults) - _FAULTS_SHOWN} more", err=True)
    typer.echo(f"{len(faults)} problem{'' if len(faults) == 1 else 's'}; {then}", err=True)


@contextmanager
def complain() -> Iterator[None]:
    """Turn what goes wrong into lines on standard error and an exit code."""
    if sys.stdout is None:  # closed by the shell
        typer.echo("standard output is closed: there is nowhere to write to", err=True)
        sys.exit(CANNOT_WRITE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # better a question mark than nothing
    try:
        yield
    except InputError as error:
        show_faults(error.faults)
        sys.exit(WRONG_INPUT)
    except ClusterError as error:
        typer.echo(printable(str(error)), err=True)
        sys.exit(WRONG_INPUT)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as error:
        # Files that cannot be read are faults of the input. What is left is the output.
        typer.echo(f"the output cannot be written: {error.strerror}", err=True)
        sys.stdout = None  # nor can what is still to be flushed
        sys.exit(CANNOT_WRITE)
