"""`cidrella validate`: every problem with the input."""

from __future__ import annotations

import typer

from cidrella.cli import shared
from cidrella.model.kinds import POOL_KINDS


def validate(
    files: shared.Files = None, filename: shared.FileOptions = None, recursive: shared.Recursive = False
) -> None:
    """Check pools, Nodes and ServiceCIDRs as the API server would, and say where every problem is.

    Pools are ClusterCIDRs and ClusterCIDRConfigs.

    Exit code 0: none. 2: there is one.
    """
    inventory = shared.read_input(filename, files, recursive=recursive, strict=True)
    counts = (
        *((each.kind, sum(isinstance(pool, each.struct) for pool in inventory.pools)) for each in POOL_KINDS),
        ("Node", len(inventory.nodes)),
        ("ServiceCIDR", len(inventory.services)),
    )
    if inventory.faults:
        shared.show_faults(inventory.faults)
        raise typer.Exit(shared.WRONG_INPUT)
    found = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts if count)
    ignored = ", ".join(f"{count} {kind}" for kind, count in sorted(inventory.ignored.items()))
    typer.echo(f"{found or 'nothing of ours'}: no problem" + (f" (passed over: {ignored})" if ignored else ""))
