"""The help of `cidrella webhook`."""

from __future__ import annotations

import typer

from cidrella.app.webhook_settings import WebhookSettings
from cidrella.cli.flags import LongCommand, with_flags_of


@with_flags_of(WebhookSettings)
def webhook(ctx: typer.Context, **_: object) -> None:
    """Give every Service its address: answer the API server's questions, and keep the books of the ranges.

    Flags are written as for Kubernetes' own programs: --leader-elect=false, --service-cluster-ip-range=10.96.0.0/16

    Where a flag is not given, its environment variable counts: CIDRELLA_SERVICE_CLUSTER_IP_RANGE=10.96.0.0/16

    Where neither is, what the --config file says: service-cluster-ip-range: 10.96.0.0/16

    Exit code 0: stopped by SIGTERM or SIGINT. 1: it failed. 2: the settings are wrong; nothing was touched.
    """
    typer.echo(ctx.get_help())


COMMAND_CLASS = LongCommand
