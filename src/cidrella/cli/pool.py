"""`cidrella pool add` and `cidrella pool remove`: the pools of what `cidrella up` runs."""

from __future__ import annotations

from typing import Annotated

import typer

from cidrella.app import playing
from cidrella.cli import shared, source
from cidrella.core.prefix import Family, Prefix, PrefixError
from cidrella.model.decode import decode
from cidrella.model.objects import ClusterCIDR
from cidrella.model.validate import validate_pool

pool = typer.Typer(help="Add pools to what cidrella up runs, and remove them.", no_args_is_help=True)


@pool.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The pool's name.", show_default=False)],
    ranges: Annotated[
        list[str], typer.Argument(metavar="CIDR", help="Its range, or one of each family.", show_default=False)
    ],
    mask_size: Annotated[int, typer.Option(metavar="LENGTH", help="The length of a node's IPv4 block.")] = 24,
    mask_size_ipv6: Annotated[int, typer.Option(metavar="LENGTH", help="The length of a node's IPv6 block.")] = 64,
    selector: Annotated[
        list[str] | None,
        typer.Option(
            "-l", "--selector", metavar="KEY=VALUE[,…]", help="Only for nodes with these labels.", show_default=False
        ),
    ] = None,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
) -> None:
    """Add a pool: a ClusterCIDR, as kubectl apply would.

    Only on the API of cidrella up: in a cluster, kubectl is the way.
    """
    lengths = {Family.IPV4: mask_size, Family.IPV6: mask_size_ipv6}
    wanted = playing.PoolWanted(name, tuple(map(_range, ranges)), lengths, shared.parse_labels(selector, "--selector"))
    if len({cidr.family for cidr in wanted.ranges}) < len(wanted.ranges):
        raise typer.BadParameter("give one range, or one of each family")
    _check(wanted)
    playing.add_pool(source.open_cluster(kubeconfig, context), wanted)
    listed = ", ".join(f"{cidr} by /{lengths[cidr.family]}" for cidr in wanted.ranges)
    typer.echo(f"{name} is there: {listed}")


@pool.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A ClusterCIDR's name, or ccc/NAME.", show_default=False)],
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
) -> None:
    """Remove a pool. One that nodes use stays until the last of them is gone, and gives nothing any more.

    Only on the API of cidrella up.
    """
    standing = playing.remove_pool(source.open_cluster(kubeconfig, context), name)
    if standing is None:
        typer.echo(f"{name} is gone")
        return
    if not standing.nodes:
        typer.echo(f"{name} is {standing.state.value}, although no node uses it; does a controller run?")
        return
    using = f"{standing.nodes} node{' uses' if standing.nodes == 1 else 's use'} it"
    typer.echo(f"{name} is {standing.state.value}: {using}; it stays until the last of them is gone")


def _range(text: str) -> Prefix:
    try:
        return Prefix.parse(text)
    except PrefixError as error:
        raise typer.BadParameter(f"{text!r} {error}") from error


def _check(wanted: playing.PoolWanted) -> None:
    decoded = decode(playing.pool_object(wanted), ClusterCIDR)
    problems = decoded if isinstance(decoded, list) else validate_pool(decoded)
    if problems:
        raise typer.BadParameter("; ".join(map(str, problems)))
