"""`cidrella release`: make way for another allocator."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cidrella.app import releasing
from cidrella.cli import source
from cidrella.cli.age import duration
from cidrella.kube.election import ElectionSettings

if TYPE_CHECKING:
    from cidrella.controller.release import Guarded, Released
    from cidrella.kube.access import Access
    from cidrella.kube.election import Holder

REFUSED = 1
"""The exit code where a controller runs, or where some finalizers could not be taken off."""
_WORTH_A_BAR = 50


def release(
    finalizers: Annotated[
        bool, typer.Option("--finalizers", help="Take the controllers' finalizers off every pool.")
    ] = False,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    lease_name: source.LeaseName = source.LEASE.name,
    lease_namespace: source.LeaseNamespace = source.LEASE.namespace,
) -> None:
    """Prepare going back to another allocator: pools can then be deleted although no controller runs.

    Pools are ClusterCIDRs and ClusterCIDRConfigs.

    Nodes keep their blocks. Refused while a controller runs, with leader election or without: it would put the
    finalizers back, and a pool that is being deleted would be gone while it is in use.

    Exit code 0: done. 1: a controller runs, or something could not be done. 2: the command line is wrong, or the
    cluster cannot be reached.
    """
    if not finalizers:
        raise typer.BadParameter("say what to release: --finalizers takes the finalizers off every pool")
    access = source.open_cluster(kubeconfig, context)
    lease = ElectionSettings(namespace=lease_namespace, name=lease_name)
    found = releasing.look(access, lease)
    if dry_run:
        _preview(found)
        return
    if found.holder is not None:
        _refuse(found.holder)
    if not found.pools:
        typer.echo(_NOTHING)
        return
    _ask(found.pools, access, yes=yes)
    _carry_out(access, lease, len(found.pools))


_NOTHING = "no pool has a controller's finalizer: there is nothing to release"


def _preview(found: releasing.Found) -> None:
    for pool in found.pools:
        typer.echo(f"{pool.name}: would lose {_listed(pool)}")
    if not found.pools:
        typer.echo(_NOTHING)
    if found.holder is not None:
        typer.echo(f"would be refused now: {_told(found.holder)}", err=True)


def _refuse(holder: Holder) -> None:
    typer.echo(
        f"refused: {_told(holder)}: a controller is running\n"
        "Stop all of its replicas, for example with `kubectl -n kube-system scale deployment cidrella --replicas=0`, "
        f"and try again. If the controller was killed, wait {holder.duration:g} s first.",
        err=True,
    )
    raise typer.Exit(REFUSED)


def _told(holder: Holder) -> str:
    renewed = "" if holder.renewed is None else f", renewed {duration(holder.renewed)} ago"
    return f"{holder.identity} holds the Lease {holder.lease}{renewed}"


def _ask(pools: list[Guarded], access: Access, *, yes: bool) -> None:
    """Go on only if that is wanted."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("there is no terminal to ask on; --yes goes ahead, --dry-run shows what would be done")
    vanishing = sum(pool.vanishes for pool in pools)
    gone = f", {vanishing} of which being deleted and gone at once" if vanishing else ""
    where = f"{access.server} ({access.context})" if access.context else access.server
    some = f"{len(pools)} pool{'' if len(pools) == 1 else 's'}"
    typer.confirm(f"take the finalizers off {some}{gone}, at {where}?", abort=True, err=True)


def _carry_out(access: Access, lease: ElectionSettings, expected: int) -> None:
    console = Console(stderr=True)
    columns = TextColumn("releasing"), BarColumn(), MofNCompleteColumn()
    shown = console.is_terminal and expected > _WORTH_A_BAR
    with Progress(*columns, console=console, transient=True, disable=not shown) as bar:
        task = bar.add_task("releasing", total=expected)
        done = releasing.release(
            access,
            lease,
            on_wait=lambda holder: typer.echo(
                f"{_told(holder)}; the Lease appears expired: "
                f"waiting {holder.duration:g} s to see whether it is renewed",
                err=True,
            ),
            on_done=lambda: bar.advance(task),
        )
    if done.holder is not None:
        _refuse(done.holder)
    for result in done.results:
        typer.echo(_line(result))
    faults = sum(bool(result.fault) for result in done.results)
    typer.echo(f"{len(done.results) - faults} of {len(done.results)} released")
    if faults:
        raise typer.Exit(REFUSED)


def _line(result: Released) -> str:
    if result.fault:
        return f"{result.pool.name}: not released: {result.fault}"
    return f"{result.pool.name}: lost {_listed(result.pool)}"


def _listed(pool: Guarded) -> str:
    kept = f", keeps {', '.join(pool.kept)}" if pool.kept else ""
    gone = ", and is gone, for it was being deleted" if pool.vanishes else ""
    return f"{', '.join(pool.finalizers) or 'nothing'}{kept}{gone}"
