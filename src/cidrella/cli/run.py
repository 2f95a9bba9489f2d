"""The help of `cidrella run`."""

from __future__ import annotations

import typer

from cidrella.app.settings import Settings
from cidrella.cli.flags import LongCommand, with_flags_of


@with_flags_of(Settings)
def run(ctx: typer.Context, **_: object) -> None:
    """Give every node of a cluster its Pod ranges, from ClusterCIDR objects and the flags that are given here.

    Flags are written as for kube-controller-manager: --leader-elect=false, --cluster-cidr=10.0.0.0/16

    Where a flag is not given, its environment variable counts: CIDRELLA_CLUSTER_CIDR=10.0.0.0/16

    Where neither is, what the --config file says: cluster-cidr: 10.0.0.0/16

    Exit code 0: stopped by SIGTERM or SIGINT. 1: it failed. 2: the settings are wrong; nothing was touched.
    """
    typer.echo(ctx.get_help())


COMMAND_CLASS = LongCommand
