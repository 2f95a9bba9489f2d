"""The help of `cidrella run`, and the completion of its flags, from the table in `app.settings`.

To run is not for this file: `start` reads the flags in Go's form, and to typer `--leader-elect=false` is a mistake.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cidrella.app.settings import table

if TYPE_CHECKING:
    from collections.abc import Iterator


class RunCommand(TyperCommand):
    """A command that reads its arguments only for the shell's completion."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave the arguments alone otherwise: help is wanted, whatever else they say."""
        return super().parse_args(ctx, args) if ctx.resilient_parsing else args


def run(ctx: typer.Context, **_: object) -> None:
    """Give every node of a cluster its Pod ranges, from ClusterCIDR objects and the flags that are given here.

    Flags are written as for kube-controller-manager: --leader-elect=false, --cluster-cidr=10.0.0.0/16

    Where a flag is not given, its environment variable counts: CIDRELLA_CLUSTER_CIDR=10.0.0.0/16

    Where neither is, what the --config file says: cluster-cidr: 10.0.0.0/16

    Exit code 0: stopped by SIGTERM or SIGINT. 1: it failed. 2: the settings are wrong; nothing was touched.
    """
    typer.echo(ctx.get_help())


def _parameters() -> Iterator[inspect.Parameter]:
    """The signature that typer reads the help from."""
    yield inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for row in table().values():
        option = typer.Option(
            row.flag,
            metavar=row.kind.placeholder,
            help=row.help,
            rich_help_panel=row.group.value,
            show_default=row.default not in ("", "0"),
        )
        yield inspect.Parameter(
            row.field, inspect.Parameter.KEYWORD_ONLY, default=row.default, annotation=Annotated[str, option]
        )


run.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]
COMMAND_CLASS = RunCommand
