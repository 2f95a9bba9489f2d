"""Where the objects come from: files, or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cidrella.app.live import NOT_INSTALLED, open_access, read_cluster
from cidrella.cli import shared
from cidrella.kube.campaign import ElectionSettings

if TYPE_CHECKING:
    from cidrella.app.inventory import Inventory
    from cidrella.app.live import Look
    from cidrella.kube.access import Access

_WORTH_A_BAR = 2_000
"""Objects in a cluster from which on a progress bar is shown: a second or so."""
LEASE = ElectionSettings()
"""The controller's Lease, where it was not told otherwise."""
PANEL = "Cluster"
"""The heading of what concerns the cluster, in the help of commands."""

Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="How to reach the cluster; else $KUBECONFIG, else ~/.kube/config.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
Context = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The context of the kubeconfig; else its current one.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
LeaseName = Annotated[
    str,
    typer.Option(
        "--leader-elect-resource-name",
        metavar="NAME",
        help="The Lease of the controller, as it was told.",
        rich_help_panel=PANEL,
    ),
]
LeaseNamespace = Annotated[
    str,
    typer.Option(
        "--leader-elect-resource-namespace",
        metavar="NAME",
        help="The namespace of the Lease.",
        rich_help_panel=PANEL,
    ),
]


def from_files(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> Inventory | None:
    """The objects in files, or None where none is named: then the cluster is meant."""
    if not filename and not files:
        if recursive:
            raise typer.BadParameter("-R looks into directories; name one with -f")
        return None
    if kubeconfig or context:
        raise typer.BadParameter("--kubeconfig and --context are for a cluster; leave them out, or the files")
    return shared.read_sound_input(filename, files, recursive=recursive)


def look_at_cluster(access: Access, lease: ElectionSettings | None = None) -> Look:
    """The objects in a cluster. What is wrong with some is said on standard error, and stops nothing."""
    console = Console(stderr=True)
    columns = TextColumn("reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None, visible=False)
        look = read_cluster(
            access,
            lambda done, total: bar.update(task, completed=done, total=total, visible=total > _WORTH_A_BAR),
            lease,
        )
    if not look.installed:
        shared.warn(NOT_INSTALLED)
    for fault in look.inventory.faults:
        shared.warn(str(fault))
    return look


def from_either(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> Inventory:
    """The objects in files where some are named, else those in the cluster."""
    found = from_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    return look_at_cluster(open_access(kubeconfig, context)).inventory if found is None else found
