"""The help of commands that run for long, and the completion of their flags, from the tables in `app`.

To run is not for this file: `start` reads the flags in Go's form, and to typer `--leader-elect=false` is a mistake.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from cidrella.app.settings import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.app.settings import CommonSettings

    Command = TypeVar("Command", bound=Callable[..., None])


class LongCommand(TyperCommand):
    """A command that reads its arguments only for the shell's completion."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave the arguments alone otherwise: help is wanted, whatever else they say."""
        return super().parse_args(ctx, args) if ctx.resilient_parsing else args


def with_flags_of(kind: type[CommonSettings]) -> Callable[[Command], Command]:
    """Give a command the flags of these settings."""

    def give(command: Command) -> Command:
        command.__signature__ = inspect.Signature(list(_parameters(kind)))  # type: ignore[attr-defined]
        return command

    return give


def _parameters(kind: type[CommonSettings]) -> Iterator[inspect.Parameter]:
    """The signature that typer reads the help from."""
    yield inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for row in table(kind).values():
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
