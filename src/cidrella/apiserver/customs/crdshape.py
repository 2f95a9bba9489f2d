"""What a CustomResourceDefinition looks like."""

from __future__ import annotations

from typing import Any, Final

from cidrella.apiserver.customs import crdschemas
from cidrella.apiserver.kinds import shapes
from cidrella.apiserver.schemas.schema import Schema

Json = dict[str, Any]

_SCHEMA: Final = {
    "type": "object",
    "title": "JSONSchemaProps",
    "description": "A structural schema (OpenAPI v3), with rules in CEL.",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {},  # there even if it is empty
}


def _names(**always: Any) -> Json:
    return {
        "plural": shapes.text("The name in paths.", **always),
        "singular": shapes.text("The name of one, on the command line."),
        "shortNames": shapes.texts("Shorter names, for the command line."),
        "kind": shapes.text("The kind.", **always),
        "listKind": shapes.text("The kind of lists of it."),
        "categories": shapes.texts("Groups of resources that it is listed with, such as all."),
    }


_COLUMN: Final = shapes.item(
    "CustomResourceColumnDefinition",
    {
        "name": shapes.text("The column's heading.", default=""),
        "type": shapes.text("What is in it: boolean, date, integer, number or string.", default=""),
        "format": shapes.text("How it is written."),
        "description": shapes.text("What it says."),
        "priority": shapes.number("Above 0: only with -o wide."),
        "jsonPath": shapes.text("Where it is found.", default=""),
    },
)
_SUBRESOURCES: Final = shapes.optional(
    "CustomResourceSubresources",
    "What there is under each object.",
    {
        "status": shapes.optional("CustomResourceSubresourceStatus", "Whether there is /status.", {}),
        "scale": shapes.optional(
            "CustomResourceSubresourceScale",
            "Where /scale finds its numbers.",
            {
                "specReplicasPath": shapes.text("How many are wanted.", default=""),
                "statusReplicasPath": shapes.text("How many there are.", default=""),
                "labelSelectorPath": shapes.text("Which.", nullable=True),
            },
        ),
    },
)
_VERSION: Final = shapes.item(
    "CustomResourceDefinitionVersion",
    {
        "name": shapes.text("The version.", default=""),
        "served": shapes.flag("Whether it can be asked for.", default=False),
        "storage": shapes.flag("Whether objects are stored in it.", default=False),
        "deprecated": shapes.flag("Whether clients are warned."),
        "deprecationWarning": shapes.text("With which words.", nullable=True),
        "schema": shapes.optional(
            "CustomResourceValidation", "What objects have to be like.", {"openAPIV3Schema": _SCHEMA}
        ),
        "subresources": _SUBRESOURCES,
        "additionalPrinterColumns": shapes.listing("The columns of kubectl get.", _COLUMN),
        "selectableFields": shapes.listing(
            "What field selectors may name.",
            shapes.item("SelectableField", {"jsonPath": shapes.text("Where it is found.", default="")}),
        ),
    },
)
DEFINITION: Final = shapes.whole(
    "CustomResourceDefinition",
    "A kind of objects that this server serves beside its own.",
    {
        "spec": shapes.record(
            "CustomResourceDefinitionSpec",
            "What is served.",
            {
                "group": shapes.text("The group of the kind.", default=""),
                "names": shapes.record("CustomResourceDefinitionNames", "What it is called.", _names(default="")),
                "scope": shapes.text("Cluster or Namespaced.", "ResourceScope", default=""),
                "versions": shapes.listing("Its versions.", _VERSION, default=None),
                "conversion": shapes.optional(
                    "CustomResourceConversion",
                    "How versions become each other.",
                    {"strategy": shapes.text("None: only the version changes.", "ConversionStrategyType", default="")},
                ),
                "preserveUnknownFields": shapes.flag("No longer in use."),
            },
        ),
        "status": shapes.record(
            "CustomResourceDefinitionStatus",
            "What became of it.",
            {
                "conditions": {**shapes.CONDITIONS, "default": None},
                "acceptedNames": shapes.record(
                    "CustomResourceDefinitionNames", "The names under which it is served.", _names(default="")
                ),
                "storedVersions": shapes.texts("The versions that objects may be stored in.", default=None),
            },
        ),
    },
)


class DefinitionSchema(Schema):
    """The schema of definitions, which looks into the schemas in them, too."""

    def __init__(self) -> None:
        super().__init__(DEFINITION)

    def prune(self, obj: Json) -> list[str]:
        """Remove unknown fields, and in schemas unknown keywords, and tell their paths."""
        unknown = super().prune(obj)
        for path, schema in schemas_in(obj):
            unknown += crdschemas.unknown(schema, path)
        return sorted(unknown)


def schemas_in(obj: Json) -> list[tuple[str, Any]]:
    """The schemas of a definition, whatever else is wrong with it, with their paths."""
    spec = obj.get("spec")
    versions = spec.get("versions") if isinstance(spec, dict) else None
    found = []
    for at, version in enumerate(versions if isinstance(versions, list) else ()):
        holder = version.get("schema") if isinstance(version, dict) else None
        if isinstance(holder, dict) and holder.get("openAPIV3Schema") is not None:
            found.append((f"spec.versions[{at}].schema.openAPIV3Schema", holder["openAPIV3Schema"]))
    return found
