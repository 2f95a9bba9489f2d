"""`cidrella nodes`: every node, what it holds and how it stands."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from cidrella.app.inventory import printable
from cidrella.app.planning import Options
from cidrella.app.standing import take_stock
from cidrella.cli import shared, source
from cidrella.cli.structured import blocks, structured
from cidrella.cli.table import table
from cidrella.core.decision import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cidrella.app.standing import NodeStanding, Standing
    from cidrella.core.decision import Decision


def nodes(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only nodes that wait for a block.")] = False,
    pool: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Only nodes that use this pool: a ClusterCIDR's name, or ccc/NAME.", show_default=False
        ),
    ] = "",
    selector: Annotated[
        str,
        typer.Option(
            "-l", "--selector", metavar="KEY=VALUE[,…]", help="Only nodes with these labels.", show_default=False
        ),
    ] = "",
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    service_cluster_ip_range: shared.ServiceRanges = "",
    wait_for_labels: shared.WaitForLabels = True,
    output: shared.ListFormat = shared.Listing.TABLE,
) -> None:
    """List the nodes of the cluster, or of files: what they hold, which pools they use, who waits and why.

    A node without a block waits. What it would get right now, those before it served, is shown apart. Nothing is
    changed anywhere.
    """
    options = Options(shared.parse_service_ranges(service_cluster_ip_range), wait_for_labels=wait_for_labels)
    labels = _labels(selector)
    inventory = source.from_either(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    standing = take_stock(inventory, options)
    if pool:
        _require_pool(pool, standing)
    found = [
        each
        for each in standing.nodes
        if (not waiting or each.decision.outcome is Outcome.WAITING)
        and (not pool or pool in each.decision.pool_names)
        and labels.items() <= each.node.labels.items()
    ]
    if output in (shared.Listing.JSON, shared.Listing.YAML):
        typer.echo(structured({"nodes": [_as_object(each) for each in found]}, output), nl=False)
    else:
        typer.echo(_as_table(found, wide=output is shared.Listing.WIDE), nl=False)


def _labels(text: str) -> Mapping[str, str]:
    labels = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or not key or key.endswith("!"):
            raise typer.BadParameter(f"--selector: {pair!r} is not understood; write KEY=VALUE")
        labels[key] = value.removeprefix("=")
    return labels


def _require_pool(name: str, standing: Standing) -> None:
    names = [each.spec.name for each in standing.pools]
    if name not in names:
        close = get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise typer.BadParameter(f"--pool: there is no pool {name}{hint}")


def _as_table(found: list[NodeStanding], *, wide: bool) -> str:
    header = ["NODE", "STATE", "PODCIDRS", "POOL", *(["LABELS"] if wide else []), "REASON", "MESSAGE"]
    rows = [
        [
            each.node.name,
            each.decision.outcome.value,
            _joined(each.decision),
            each.decision.pool_name,
            *([_told_labels(each)] if wide else []),
            each.decision.reason.value,
            _message(each),
        ]
        for each in found
    ]
    states = Counter(each.decision.outcome.value for each in found)
    counted = ", ".join(f"{count} {state}" for state, count in states.most_common())
    summary = f"{len(found)} node{'' if len(found) == 1 else 's'}" + (f": {counted}" if counted else "")
    return f"{table(header, rows)}\n{summary}\n"


def _joined(decision: Decision) -> str:
    return ",".join(map(str, decision.blocks))


def _told_labels(each: NodeStanding) -> str:
    return ",".join(f"{key}={printable(value)}" for key, value in sorted(each.node.labels.items()))


def _message(each: NodeStanding) -> str:
    if each.would_get is not None:
        return f"would get {_joined(each.would_get)} from {' and '.join(each.would_get.pool_names)}"
    return each.decision.message


def _as_object(each: NodeStanding) -> dict[str, object]:
    offer = each.would_get
    return {
        "name": each.node.name,
        "state": each.decision.outcome.value,
        "podCIDRs": [str(block) for block in each.decision.blocks],
        "clusterCIDRs": list(each.decision.pool_names),
        "reason": each.decision.reason.value or None,
        "message": each.decision.message,
        "wouldGet": offer and blocks(offer),
        "labels": dict(each.node.labels),
    }
