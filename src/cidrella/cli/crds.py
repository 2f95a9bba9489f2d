"""`cidrella crds`: the custom resource definitions."""

from __future__ import annotations

import typer
import yaml

from cidrella.model.crd import crds as definitions


def crds() -> None:
    """Write the CustomResourceDefinitions as YAML, to be applied with: cidrella crds | kubectl apply -f -."""
    text = yaml.dump_all(
        definitions(), Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=100
    )
    typer.echo(text, nl=False)
