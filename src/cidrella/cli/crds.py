"""`cidrella crds`: the custom resource definitions."""

from __future__ import annotations

from typing import Annotated

import typer
import yaml

from cidrella.model.crd import crds as definitions


def crds(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Only these, as rangeallocations.cidrella.dev.", show_default=False),
    ] = None,
) -> None:
    """Write the CustomResourceDefinitions as YAML, to be applied with: cidrella crds | kubectl apply -f -."""
    known = definitions()
    for name in names or ():
        if name not in known:
            raise typer.BadParameter(f"there is no definition {name}; there are {' and '.join(known)}")
    text = yaml.dump_all(
        [known[name] for name in names or known],
        Dumper=yaml.CSafeDumper,
        sort_keys=False,
        explicit_start=True,
        allow_unicode=True,
        width=100,
    )
    typer.echo(text, nl=False)
