"""Where the objects come from: files, or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn

from cidrella.app.cluster_choice import choose_cluster
from cidrella.app.inventory import printable
from cidrella.app.live import NOT_INSTALLED, read_cluster, read_services
from cidrella.cli import shared
from cidrella.kube.campaign import ElectionSettings

if TYPE_CHECKING:
    from cidrella.app.inventory import Fault, Inventory, ServiceInventory
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
        help="How to reach the cluster; else $KUBECONFIG, else the Pod's ServiceAccount or ~/.kube/config, else the "
        "cidrella up that runs without --data-dir.",
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


def open_cluster(kubeconfig: str, context: str) -> Access:
    """The cluster that a command works on; every command calls this, once. Raises `ClusterError`.

    Its name goes to standard error, unless an option or $KUBECONFIG names it.
    """
    chosen = choose_cluster(kubeconfig, context)
    if chosen.note:
        typer.echo(printable(chosen.note), err=True)
    return chosen.access


def from_files(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> Inventory | None:
    """The objects in files, or None where none is named: then the cluster is meant."""
    if not _named_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context):
        return None
    return shared.read_sound_input(filename, files, recursive=recursive)


def look_at_cluster(access: Access, lease: ElectionSettings | None = None) -> Look:
    """The objects in a cluster. What is wrong with some is said on standard error, and stops nothing."""
    with shared.reading(MofNCompleteColumn(), _WORTH_A_BAR) as progress:
        look = read_cluster(access, progress, lease)
    if not look.installed:
        shared.warn(NOT_INSTALLED)
    _warn_of(look.inventory.faults)
    return look


def from_either(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> Inventory:
    """The objects in files where some are named, else those in the cluster."""
    found = from_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    return look_at_cluster(open_cluster(kubeconfig, context)).inventory if found is None else found


def services_from_either(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> ServiceInventory:
    """The Services in files where some are named, else those in the cluster, with what gives them addresses."""
    named = _named_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    if named:
        return shared.read_services_input(named, recursive=recursive)
    access = open_cluster(kubeconfig, context)
    with shared.reading(MofNCompleteColumn(), _WORTH_A_BAR) as progress:
        inventory = read_services(access, progress)
    _warn_of(inventory.faults)
    return inventory


def _named_files(
    filename: list[str] | None, files: list[str] | None, *, recursive: bool, kubeconfig: str, context: str
) -> list[str]:
    """The files that are named, none where the cluster is meant."""
    named = [*(filename or []), *(files or [])]
    if not named and recursive:
        raise typer.BadParameter("-R looks into directories; name one with -f")
    if named and (kubeconfig or context):
        raise typer.BadParameter("--kubeconfig and --context are for a cluster; leave them out, or the files")
    return named


def _warn_of(faults: list[Fault]) -> None:
    for fault in faults:
        shared.warn(str(fault))
