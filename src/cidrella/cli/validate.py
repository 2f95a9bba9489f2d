"""`cidrella validate`: every problem with the input."""

from __future__ import annotations

import typer

from cidrella.cli import shared


def validate(
    files: shared.Files = None, filename: shared.FileOptions = None, recursive: shared.Recursive = False
) -> None:
    """Check ClusterCIDRs, Nodes and ServiceCIDRs as the API server would, and say where every problem is.

    Exit code 0: none. 2: there is one.
    """
    inventory = shared.read_input(filename, files, recursive=recursive, strict=True)
    counts = (
        ("ClusterCIDR", len(inventory.pools)),
        ("Node", len(inventory.nodes)),
        ("ServiceCIDR", len(inventory.services)),
    )
    if inventory.faults:
        shared.show_faults(inventory.faults)
        raise typer.Exit(shared.WRONG_INPUT)
    found = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts if count)
    ignored = ", ".join(f"{count} {kind}" for kind, count in sorted(inventory.ignored.items()))
    typer.echo(f"{found or 'nothing of ours'}: no problem" + (f" (passed over: {ignored})" if ignored else ""))
