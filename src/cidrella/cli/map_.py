"""`cidrella map`: the address space as a picture."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cidrella.app.mapping import make_map
from cidrella.app.planning import Options, make_plan
from cidrella.cli import shared
from cidrella.cli.svg import svg
from cidrella.cli.terminal import ASCII, BLOCKS, picture

_PLAIN_WIDTH = 100
"""The width where there is no terminal to ask."""


def draw(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    service_cluster_ip_range: shared.ServiceRanges = "",
    wait_for_labels: shared.WaitForLabels = True,
    svg_file: Annotated[
        Path | None,
        typer.Option(
            "--svg", metavar="FILE", help="Write an SVG for a browser; - for standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Draw the address space as the plan leaves it: who holds what, what is free, what is a service range."""
    options = Options(shared.parse_service_ranges(service_cluster_ip_range), wait_for_labels=wait_for_labels)
    inventory = shared.read_sound_input(filename, files, recursive=recursive)
    result = make_map(make_plan(inventory, options))
    if svg_file is None:
        console = Console(highlight=False, soft_wrap=True)
        width = shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns if console.is_terminal else _PLAIN_WIDTH
        marks = BLOCKS if (console.encoding or "").lower().startswith("utf") else ASCII
        console.print(picture(result, width, marks), end="")
    elif str(svg_file) == "-":
        typer.echo(svg(result), nl=False)
    else:
        try:
            svg_file.write_text(svg(result), encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"--svg: {svg_file} cannot be written: {error.strerror}") from error
        typer.echo(f"wrote {svg_file}")
