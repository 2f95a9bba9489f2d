"""The commands for people at a terminal.

Each command's module is loaded when that command is asked for, and all of them only for the list of commands: `plan`
does not wait for what talks to clusters.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from cidrella import __version__
from cidrella.cli.shared import complain

_COMMANDS = {
    "up": "up.up",
    "node": "node.node",
    "pool": "pool.pool",
    "run": "run.run",
    "webhook": "webhook.webhook",
    "plan": "plan.plan",
    "explain": "explain.explain",
    "pools": "pools.pools",
    "nodes": "nodes.nodes",
    "services": "services.services",
    "validate": "validate.validate",
    "convert": "convert.convert",
    "map": "map_.draw",
    "release": "release.release",
    "crds": "crds.crds",
}
"""By name, in the order of the help: the module in this package, and in it the function, or the group of commands."""


def _app(asked: str) -> typer.Typer:
    """The program, with the command that was asked for, or with all where it was none of them."""
    app = typer.Typer(
        name="cidrella",
        help="IP address management for Kubernetes: every node the Pod range that fits it.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for name in (asked,) if asked in _COMMANDS else _COMMANDS:
        module_name, function = _COMMANDS[name].split(".")
        module = import_module(f"cidrella.cli.{module_name}")
        command = getattr(module, function)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name, cls=getattr(module, "COMMAND_CLASS", None))(command)
    return app


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"cidrella {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What comes before the command's name."""


def program() -> None:
    """Run the command that the arguments name, and exit."""
    plugin = Path(sys.argv[0]).stem == "kubectl-cidrella"
    with complain():
        _app(sys.argv[1] if len(sys.argv) > 1 else "")(prog_name="kubectl cidrella" if plugin else "cidrella")
