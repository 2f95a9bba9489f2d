"""`cidrella convert`: pools of one kind, said as pools of the other."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer
import yaml
from rich.progress import MofNCompleteColumn

from cidrella.app.converting import convert as convert_pools
from cidrella.app.converting import manifest, other_kind
from cidrella.app.inventory import printable
from cidrella.cli import shared
from cidrella.model.kinds import POOL_KINDS, kind_of

if TYPE_CHECKING:
    from cidrella.model.kinds import PoolKind, PoolObject

SOME_STAY = 3
"""The exit code where not every pool could be converted."""


_WORTH_A_BAR = 500
"""Pools to convert from which on a progress bar is shown: a second or two, if no label tells them apart."""


class Form(Enum):
    """How manifests are written."""

    YAML = "yaml"
    JSON = "json"


def convert(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="KIND",
            help="The kind that is wanted: ClusterCIDR or ClusterCIDRConfig. Where the input has only one of them, the "
            "other.",
            show_default=False,
        ),
    ] = "",
    output: Annotated[Form, typer.Option("-o", "--output", help="How to write the manifests.")] = Form.YAML,
) -> None:
    """Write ClusterCIDRs as ClusterCIDRConfigs, or the other way round, so that every node gets what it would have got.

    Give it all the pools there are, for what becomes of one depends on the others. A pool that cannot be said in the
    other kind, or not without a change for some node, stays as it is, and why is said on standard error. So the result
    can always take the place of the input's pools; one that is being deleted is left out, with a warning, and other
    objects are passed over. Nothing is changed anywhere.

    Exit code 0: all were converted. 3: some stay as they are. 2: the input is wrong.

    Try: kubectl get cc,ccc -o yaml | cidrella convert --to ClusterCIDR -f - > pools.yaml
    """
    wanted = _kind(to) if to else None
    inventory = shared.read_input(filename, files, recursive=recursive).require_sound()
    target = wanted or other_kind(inventory.pools)
    if not inventory.pools:
        shared.warn("there is no pool in the input")
    if target is None:
        raise typer.BadParameter(f"the input has pools of both kinds; say which is wanted: {_choices()}")
    with shared.bar("comparing", MofNCompleteColumn(), _WORTH_A_BAR) as progress:
        result = convert_pools(inventory.pools, target, progress)
    for pool in result.left_out:
        shared.warn(printable(f"{kind_of(pool)} {pool.metadata.name} is being deleted, and is left out"))
    typer.echo(_written(result.pools, output), nl=False)
    for each in result.refused:
        message = f"{kind_of(each.pool)} {each.pool.metadata.name}: stays as it is: {each.reason}"
        typer.echo(printable(message), err=True)
    if inventory.pools:
        typer.echo(f"{result.converted} of {result.converted + len(result.refused)} converted to {target}", err=True)
    if result.refused:
        raise typer.Exit(SOME_STAY)


def _kind(text: str) -> PoolKind:
    """The kind that is called so, by any of the names that kubectl takes."""
    for each in POOL_KINDS:
        if text.lower() in (each.kind.lower(), each.plural, each.short):
            return each
    raise typer.BadParameter(f"--to: {text!r} is no kind of pools; write {_choices()}")


def _choices() -> str:
    return " or ".join(f"--to {each}" for each in POOL_KINDS)


def _written(pools: list[PoolObject], output: Form) -> str:
    """Documents of YAML, or one List of JSON: what kubectl and the other commands read."""
    manifests = [manifest(each) for each in pools]
    if output is Form.JSON:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=2, ensure_ascii=False) + "\n"
    return yaml.dump_all(
        manifests, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=1 << 16
    )
