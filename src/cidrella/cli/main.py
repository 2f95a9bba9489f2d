"""The command `cidrella`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cidrella import __version__
from cidrella.cli import crds, explain, map_, nodes, plan, pools, release, run, validate
from cidrella.cli.shared import complain

app = typer.Typer(
    name="cidrella",
    help="IP address management for Kubernetes: every node the Pod range that fits it.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=run.RunCommand)(run.run)
app.command("plan")(plan.plan)
app.command("explain")(explain.explain)
app.command("pools")(pools.pools)
app.command("nodes")(nodes.nodes)
app.command("validate")(validate.validate)
app.command("map")(map_.draw)
app.command("release")(release.release)
app.command("crds")(crds.crds)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"cidrella {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What comes before the command's name."""


def main() -> None:
    """Run the command. What is wrong with the input ends in exit code 2 and never in a traceback."""
    plugin = Path(sys.argv[0]).stem == "kubectl-cidrella"
    with complain():
        app(prog_name="kubectl cidrella" if plugin else None)
