"""`cidrella node add` and `cidrella node remove`: playing a kubelet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import MofNCompleteColumn

from cidrella.app import playing
from cidrella.app.inventory import ClusterError
from cidrella.app.live import read_cluster
from cidrella.cli import shared, source
from cidrella.core.decision import Outcome
from cidrella.model.syntax import name_fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cidrella.app.standing import NodeStanding

NODES_MAX = 10_000
_WORTH_A_BAR = 50
"""Nodes from which on a progress bar is shown."""
_BASE = "node"
"""What nodes are called that are only counted."""

node = typer.Typer(
    help="Add nodes to what cidrella up runs, and remove them, as a kubelet would.", no_args_is_help=True
)


@node.command()
def add(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The nodes' names.", show_default=False)
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            min=0,
            max=NODES_MAX,
            metavar="N",
            help="Add so many, called NAME-1, NAME-2 and so on, or node-1, node-2; the numbers go on where they ended.",
            show_default=False,
        ),
    ] = 0,
    labels: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE[,…]", help="Their labels.", show_default=False)
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until each has its block, however long it takes.")] = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
) -> None:
    """Add nodes, as kubelets register them, and show the block that each gets, or why it waits.

    Only on the API of cidrella up: in a cluster, nodes are not for play.
    """
    wanted = _names(names or [], count)
    given = shared.parse_labels(labels)
    access = source.open_cluster(kubeconfig, context)
    with shared.bar("adding nodes", MofNCompleteColumn(), _WORTH_A_BAR) as progress:
        added = playing.add_nodes(access, wanted, given, count=count, progress=progress)
    found: list[NodeStanding] = []
    told = False
    for found in playing.follow_nodes(access, added, patiently=wait):
        if wait and not told and (waiting := [each for each in found if _waits(each) and each.would_get is None]):
            typer.echo("\n".join(map(_line, waiting)), err=True)
            told = True
    typer.echo("\n".join(map(_line, found)))


@node.command()
def remove(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="The nodes' names.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Remove every node.")] = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
) -> None:
    """Remove nodes. Their blocks are free again.

    Only on the API of cidrella up.
    """
    if bool(names) is every:
        raise typer.BadParameter("name the nodes to remove, or say --all")
    access = source.open_cluster(kubeconfig, context)
    playing.require_embedded_api(access)
    had = {each.metadata.name: ", ".join(each.spec.pod_cidrs) for each in read_cluster(access).inventory.nodes}
    with shared.bar("removing nodes", MofNCompleteColumn(), _WORTH_A_BAR) as progress:
        gone = playing.remove_nodes(access, names or [], every=every, progress=progress)
    for name in gone:
        typer.echo(f"{name} is gone" + (f", and {had[name]} with it" if had.get(name) else ""))
    if missing := [name for name in names or [] if name not in gone]:
        raise ClusterError(f"there is no node {', '.join(missing)}")


def _names(names: list[str], count: int) -> list[str]:
    if count:
        if len(names) > 1:
            raise typer.BadParameter("--count is for one NAME, or for none")
        names = names or [_BASE]
    elif not names:
        raise typer.BadParameter("name the nodes to add, or say how many with --count")
    for name in names:
        if fault := name_fault(name):
            raise typer.BadParameter(f"{name!r} {fault}")
    if len(set(names)) < len(names):
        raise typer.BadParameter("the same name is given twice")
    return names


def _waits(each: NodeStanding) -> bool:
    return each.decision.outcome is Outcome.WAITING


def _line(each: NodeStanding) -> str:
    decision = each.decision
    if decision.blocks:
        pools = f" from {' and '.join(decision.pool_names)}" if decision.pool_names else ""
        return f"{decision.node} has {_listed(decision.blocks)}{pools}"
    if each.would_get is not None:
        offered = each.would_get
        return f"{decision.node} waits: it would get {_listed(offered.blocks)}; does a controller run?"
    return f"{decision.node} waits: {decision.message}"


def _listed(blocks: Iterable[object]) -> str:
    return ", ".join(map(str, blocks))
