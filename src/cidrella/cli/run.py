"""`cidrella run`: the controller.

Its flags are those of the table in `app.settings`, read in Go's form by `app.sources`. Typer shows the help and
completes the flags; it does not get to read them, since to it `--leader-elect=false` is a mistake.
"""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from cidrella.app.settings import table
from cidrella.app.sources import HelpWanted, SettingError, read_settings
from cidrella.cli.shared import WRONG_INPUT

if TYPE_CHECKING:
    from collections.abc import Iterator


class RunCommand(TyperCommand):
    """A command that gets its arguments as they were typed, in the context's `args`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave the arguments alone, unless it is for the shell's completion."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = args
        return args


def run(ctx: typer.Context, **_: object) -> None:
    """Give every node of a cluster its Pod ranges, from ClusterCIDR objects and the flags that are given here.

    Flags are written as for kube-controller-manager: --leader-elect=false, --cluster-cidr=10.0.0.0/16

    Where a flag is not given, its environment variable counts: CIDRELLA_CLUSTER_CIDR=10.0.0.0/16

    Where neither is, what the --config file says: cluster-cidr: 10.0.0.0/16

    Exit code 0: stopped by SIGTERM or SIGINT. 1: it failed. 2: the settings are wrong; nothing was touched.
    """
    try:
        given = read_settings(ctx.args, os.environ)
    except HelpWanted:
        typer.echo(ctx.get_help())
        return
    except SettingError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(WRONG_INPUT) from error
    from cidrella.app.running import run_controller  # noqa: PLC0415 - what only this command needs is heavy

    raise typer.Exit(run_controller(given.settings, given.warnings))


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
