"""`cidrella explain`: why a node gets what it gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cidrella.app.inventory import printable
from cidrella.app.planning import NoSuchNodeError, Options, explain_node
from cidrella.app.standing import explain_standing
from cidrella.cli import shared, source
from cidrella.cli.structured import blocks, structured
from cidrella.cli.waiting import remarks
from cidrella.core.explain import remedy
from cidrella.kube.election import ElectionSettings
from cidrella.model.kinds import find_pool

if TYPE_CHECKING:
    from cidrella.app.live import LeaseLook
    from cidrella.app.planning import Explanation
    from cidrella.core.decision import Decision
    from cidrella.core.explain import Verdict


def explain(
    node: Annotated[str, typer.Argument(metavar="NODE", help="The node's name.", show_default=False)],
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    lease_name: source.LeaseName = source.LEASE.name,
    lease_namespace: source.LeaseNamespace = source.LEASE.namespace,
    service_cluster_ip_range: shared.ServiceRanges = "",
    wait_for_labels: shared.WaitForLabels = True,
    output: shared.Format = shared.Output.TABLE,
) -> None:
    """Show every pool, whether it applies to a node and why, the order in which they are tried, and what the node gets.

    Of files, the room in each pool is what there is when the node's turn comes, those before it in the input served. Of
    the cluster, all is as it stands: a node without a block waits, and why it does is said. The rules named are those
    of docs/rules.md.
    """
    options = Options(shared.parse_service_ranges(service_cluster_ip_range), wait_for_labels=wait_for_labels)
    inventory = source.from_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    leases: tuple[LeaseLook, ...] = ()
    try:
        if inventory is not None:
            result = explain_node(inventory, options, node)
        else:
            settings = ElectionSettings(namespace=lease_namespace, name=lease_name)
            look = source.look_at_cluster(source.open_cluster(kubeconfig, context), settings)
            result, leases = explain_standing(look.inventory, options, node), look.leases
    except NoSuchNodeError as error:
        raise typer.BadParameter(str(error)) from error
    if output is shared.Output.TABLE:
        lines = [*_head(result), _outcome(result.decision), *_help(result.decision), *_remarks(result, leases)]
        text = "\n".join(lines) + "\n"
    else:
        text = structured(_as_object(result, leases), output)
    typer.echo(text, nl=False)


def _head(result: Explanation) -> list[str]:
    """The node, and what there is to say of each pool."""
    labels = ", ".join(f"{key}={printable(value)}" for key, value in result.node.labels.items()) or "none"
    lines = [f"node {result.node.name}", f"  labels: {labels}", ""]
    applying = [verdict for verdict in result.verdicts if verdict.applies]
    lines.append("tried in this order:" if applying else "no pool applies")
    for number, verdict in enumerate(applying, 1):
        lines.append(f"  {number}. {verdict.pool.name}  {_ranges(verdict)}  {'FULL' if verdict.full else ''}".rstrip())
        lines.append(f"     {verdict.why}")
        if verdict.full:
            lines.append(f"     no room: {_full(verdict)}")
        if verdict.before_next:
            lines.append(f"     {verdict.before_next}")
    others = [verdict for verdict in result.verdicts if not verdict.applies]
    if others:
        lines += ["", "not applying:"]
        for verdict in others:
            lines += [f"  - {verdict.pool.name}  {_ranges(verdict)}".rstrip(), f"     {verdict.why}"]
    return [*lines, ""]


def _outcome(decision: Decision) -> str:
    blocks = ", ".join(map(str, decision.blocks)) or "no block"
    pool = f" from {' and '.join(decision.pool_names)}" if decision.pool_names else ""
    message = f": {decision.message}" if decision.message else ""
    return f"{decision.outcome.value}: {blocks}{pool}{message}"


def _help(decision: Decision) -> list[str]:
    help_ = remedy(decision)
    return [f"what would help: {help_}"] if help_ else []


def _remarks(result: Explanation, leases: tuple[LeaseLook, ...]) -> list[str]:
    return list(remarks(result, leases)) if leases else []


def _ranges(verdict: Verdict) -> str:
    return ", ".join(f"{cidr} by /{length}" for cidr, length in verdict.pool.spec.ranges)


def _full(verdict: Verdict) -> str:
    return ", ".join(f"{cidr} has no /{length} left" for cidr, length in verdict.full)


def _as_object(result: Explanation, leases: tuple[LeaseLook, ...]) -> dict[str, object]:
    decision = result.decision
    found: dict[str, object] = {
        "node": {"name": result.node.name, "labels": dict(result.node.labels)},
        "pools": [
            {
                "name": verdict.pool.name,
                "applies": verdict.applies,
                "matched": verdict.matched,
                "why": verdict.why,
                "room": not verdict.full,
                "beforeNext": verdict.before_next or None,
                "kind": find_pool(verdict.pool.name)[0].kind,
            }
            for verdict in result.verdicts
        ],
        "decision": {
            "outcome": decision.outcome.value,
            **blocks(decision),
            "message": decision.message,
            "help": remedy(decision),
        },
    }
    if leases:
        found["wouldGet"] = result.would_get and blocks(result.would_get)
        found["remarks"] = _remarks(result, leases)
    return found
