"""`cidrella map`: the address space as a picture."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cidrella.app.mapping import make_map
from cidrella.app.planning import Options, make_plan
from cidrella.app.standing import take_stock
from cidrella.cli import shared, source
from cidrella.cli.svg import svg
from cidrella.cli.terminal import marks_for, picture
from cidrella.core.decision import Outcome

if TYPE_CHECKING:
    from cidrella.app.inventory import Inventory
    from cidrella.app.mapping import Map

_PLAIN_WIDTH = 100
"""The width where there is no terminal to ask."""


def draw(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    service_cluster_ip_range: shared.ServiceRanges = "",
    wait_for_labels: shared.WaitForLabels = True,
    svg_file: Annotated[
        Path | None,
        typer.Option(
            "--svg", metavar="FILE", help="Write an SVG for a browser; - for standard output.", show_default=False
        ),
    ] = None,
) -> None:
    """Draw the address space: who holds what, what is free, what is a service range.

    Of files, it is drawn as the plan leaves it. Of the cluster, as it is: nodes that wait hold nothing.
    """
    options = Options(shared.parse_service_ranges(service_cluster_ip_range), wait_for_labels=wait_for_labels)
    inventory = source.from_files(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    if inventory is not None:
        plan = make_plan(inventory, options)
        result = make_map(plan.cluster, plan.decisions)
    else:
        result = _as_it_is(source.look_at_cluster(source.open_cluster(kubeconfig, context)).inventory, options)
    if svg_file is None:
        console = Console(highlight=False, soft_wrap=True)
        width = shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns if console.is_terminal else _PLAIN_WIDTH
        console.print(picture(result, width, marks_for(console)), end="")
    elif str(svg_file) == "-":
        typer.echo(svg(result), nl=False)
    else:
        try:
            svg_file.write_text(svg(result), encoding="utf-8")
        except OSError as error:
            raise typer.BadParameter(f"--svg: {svg_file} cannot be written: {error.strerror}") from error
        typer.echo(f"wrote {svg_file}")


def _as_it_is(inventory: Inventory, options: Options) -> Map:
    standing = take_stock(inventory, options)
    waiting = sum(each.decision.outcome is Outcome.WAITING for each in standing.nodes)
    if waiting:
        shared.warn(f"{waiting} of {len(standing.nodes)} nodes wait for a block; `cidrella nodes --waiting` lists them")
    return make_map(standing.cluster, [each.decision for each in standing.nodes])
