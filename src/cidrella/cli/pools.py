"""`cidrella pools`: every pool, how full it is and how it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from cidrella.app.planning import Options
from cidrella.app.standing import take_stock
from cidrella.cli import shared, source
from cidrella.cli.age import age
from cidrella.cli.bar import drawn
from cidrella.cli.structured import structured
from cidrella.cli.table import table
from cidrella.cli.terminal import marks_for
from cidrella.core.prefix import Family
from cidrella.model.kinds import find_pool, pool_name

if TYPE_CHECKING:
    from cidrella.app.standing import PoolStanding
    from cidrella.cli.terminal import Marks

_HEADER = ("NAME", "RANGE", "PER NODE", "CAPACITY", "ALLOCATED", "FREE", "NODES", "STATE", "AGE")


def pools(
    files: shared.Files = None,
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    kubeconfig: source.Kubeconfig = "",
    context: source.Context = "",
    service_cluster_ip_range: shared.ServiceRanges = "",
    output: shared.ListFormat = shared.Listing.TABLE,
) -> None:
    """List the pools of the cluster, or of files: what they have, what is allocated and what is free right now.

    Counted from what nodes hold, whether or not a controller runs. Nothing is changed anywhere.
    """
    options = Options(shared.parse_service_ranges(service_cluster_ip_range))
    inventory = source.from_either(filename, files, recursive=recursive, kubeconfig=kubeconfig, context=context)
    found = take_stock(inventory, options).pools
    if output in (shared.Listing.JSON, shared.Listing.YAML):
        finalizers = {pool_name(each): each.metadata.finalizers for each in inventory.pools}
        listed = [_as_object(each, finalizers.get(each.spec.name, [])) for each in found]
        typer.echo(structured({"pools": listed}, output), nl=False)
    else:
        console = Console()
        marks = marks_for(console) if console.is_terminal else None
        typer.echo(_as_table(found, marks, wide=output is shared.Listing.WIDE), nl=False)


def _as_table(found: list[PoolStanding], bar: Marks | None, *, wide: bool) -> str:
    """A row for each range, so that every number stands under its header. With marks, a bar is drawn of them."""
    header = [*_HEADER, *(["USED"] if bar else []), *(["KIND", "SELECTOR", "PROBLEM"] if wide else [])]
    rows = []
    for pool in found:
        tail = [str(pool.nodes), pool.state.value, age(pool.spec.created)]
        more = [_kind(pool), str(pool.spec.selector or "every node"), pool.spec.problem] if wide else []
        for count in pool.count.families.values():
            counts = map(str, (count.capacity, count.allocated, count.free))
            used = [drawn(count.capacity - count.free, count.capacity, bar)] if bar else []
            rows.append([pool.spec.name, count.cidr, f"/{count.length}", *counts, *tail, *used, *more])
        if not pool.count.families:
            rows.append([pool.spec.name, *[""] * 5, *tail, *([""] if bar else []), *more])
    return table(header, rows)


def _as_object(pool: PoolStanding, finalizers: list[str]) -> dict[str, object]:
    return {
        "name": pool.spec.name,
        "state": pool.state.value,
        "problem": pool.spec.problem or None,
        "created": pool.spec.created or None,
        "selector": str(pool.spec.selector) if pool.spec.selector else None,
        "nodes": pool.nodes,
        "ipv4": _family(pool, Family.IPV4),
        "ipv6": _family(pool, Family.IPV6),
        "finalizers": finalizers,
        "kind": _kind(pool),
    }


def _kind(pool: PoolStanding) -> str:
    return find_pool(pool.spec.name)[0].kind


def _family(pool: PoolStanding, family: Family) -> dict[str, object] | None:
    count = pool.count.families.get(family)
    if count is None:
        return None
    return {
        "cidr": count.cidr,
        "perNode": count.length,
        "capacity": count.capacity,
        "allocated": count.allocated,
        "free": count.free,
    }
