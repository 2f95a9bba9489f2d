"""`cidrella plan`: what every node gets, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cidrella.app.planning import Options, make_plan
from cidrella.cli import shared, source
from cidrella.cli.structured import blocks, structured
from cidrella.cli.table import table
from cidrella.core.prefix import Family
from cidrella.model.kinds import find_pool

if TYPE_CHECKING:
    from cidrella.app.inventory import Inventory
    from cidrella.app.planning import Plan, PoolCount

_ADD_MAX = 1_000_000
"""Ten times what Cidrella is built for, and still planned within a minute."""
SOME_WAIT = 3
"""The exit code of a plan in which not every node has its blocks."""


def plan(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    from_cluster: Annotated[
        bool,
        typer.Option(
            "--from-cluster",
            help="Plan for the cluster. Files say what if: their objects are added, or replace those of the same name.",
            rich_help_panel=source.PANEL,
        ),
    ] = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    service_cluster_ip_range: shared.ServiceRanges = "",
    add_nodes: Annotated[
        int,
        typer.Option(min=0, max=_ADD_MAX, metavar="N", help="What if: so many more nodes, after those of the input."),
    ] = 0,
    labels: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE[,…]", help="The labels of the added nodes.", show_default=False),
    ] = None,
    wait_for_labels: shared.WaitForLabels = True,
    output: shared.Format = shared.Output.TABLE,
) -> None:
    """Show what every node gets, and what is left of each pool.

    Nodes that have podCIDRs keep them; the others are served in the order of the input. Nothing is changed anywhere.

    Exit code 0: every node has its blocks. 3: some wait, or have podCIDRs that cannot be read. 2: the input is wrong.

    Try: cidrella plan --from-cluster --add-nodes 10, or with -f new-pool.yaml to see what applying it would do.
    """
    options = Options(
        shared.parse_service_ranges(service_cluster_ip_range), add_nodes, _labels(labels, add_nodes), wait_for_labels
    )
    inventory = _read(filename, files, recursive, from_cluster, kubeconfig, context)
    result = make_plan(inventory, options)
    text = _as_table(result) if output is shared.Output.TABLE else structured(_as_object(result), output)
    typer.echo(text, nl=False)
    if not result.complete:
        raise typer.Exit(SOME_WAIT)


def _read(
    filename: list[str] | None,
    files: list[str] | None,
    recursive: bool,
    from_cluster: bool,
    kubeconfig: str,
    context: str,
) -> Inventory:
    if not from_cluster:
        if not filename and not files:
            raise typer.BadParameter("say where the objects are: -f FILE, -f - for standard input, or --from-cluster")
        if kubeconfig or context:
            raise typer.BadParameter("--kubeconfig and --context go with --from-cluster")
        return shared.read_sound_input(filename, files, recursive=recursive)
    added = None
    if filename or files:
        added = shared.read_input(filename, files, recursive=recursive).require_sound()
    held = source.look_at_cluster(source.open_cluster(kubeconfig, context)).inventory
    return held if added is None else held.overlaid(added)


def _labels(texts: list[str] | None, add_nodes: int) -> dict[str, str]:
    if any(texts or []) and not add_nodes:
        raise typer.BadParameter("--labels are those of added nodes; say how many with --add-nodes")
    return shared.parse_labels(texts)


def _as_object(plan: Plan) -> dict[str, object]:
    result: dict[str, object] = {
        "nodes": [
            {
                "name": each.node,
                **blocks(each),
                "outcome": each.outcome.value,
                "message": each.message,
            }
            for each in plan.decisions
        ],
        "pools": [
            {
                "name": pool.name,
                "ipv4": _family(pool, Family.IPV4),
                "ipv6": _family(pool, Family.IPV6),
                "kind": find_pool(pool.name)[0].kind,
            }
            for pool in plan.pools
        ],
    }
    if plan.what_if:
        result["whatIf"] = {
            "addNodes": plan.what_if.asked,
            "fit": plan.what_if.fit,
            "stoppedBy": plan.what_if.stopped_by or None,
        }
    return result


def _family(pool: PoolCount, family: Family) -> dict[str, object] | None:
    count = pool.families.get(family)
    if count is None:
        return None
    return {"cidr": count.cidr, "capacity": count.capacity, "allocated": count.allocated, "free": count.free}


def _as_table(plan: Plan) -> str:
    nodes = table(
        ("NODE", "OUTCOME", "PODCIDRS", "POOL", "MESSAGE"),
        [
            (each.node, each.outcome.value, ",".join(map(str, each.blocks)), each.pool_name, each.message)
            for each in plan.decisions
        ],
    )
    pools = table(
        ("POOL", "RANGE", "PER NODE", "CAPACITY", "ALLOCATED", "FREE"),
        [
            (pool.name, count.cidr, f"/{count.length}", *map(str, (count.capacity, count.allocated, count.free)))
            for pool in plan.pools
            for count in pool.families.values()
        ],
    )
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in plan.outcomes.most_common())
    plural = "" if len(plan.decisions) == 1 else "s"
    lines = [f"{len(plan.decisions)} node{plural}" + (f": {outcomes}" if outcomes else "")]
    if plan.what_if:
        lines += [f"{plan.what_if.fit} of {plan.what_if.asked} more nodes fit", _next(plan)]
    return f"{nodes}\n{pools}\n" + "".join(f"{line}\n" for line in lines)


def _next(plan: Plan) -> str:
    assert plan.what_if is not None
    if not plan.what_if.stopped_by:
        return "the next one would fit, too"
    return f"the next one would wait: {plan.what_if.stopped_by}"
