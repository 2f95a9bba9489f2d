"""The vocabulary in which the schemas of built-in kinds are written.

What comes out is an OpenAPI schema, for `kubectl explain` and for patches. It also says what `reading` has to know of
the types that a real API server keeps objects in:

- `title` is the name of the type.
- `default` marks what is written out whether anybody set it or not.
- `nullable` marks what is kept if it is 0, "" or false, since it can also be unset. Everything else is left out then.

There are no bounds and no choices here: those rules are in the strategies, in the words of a real API server.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def text(words: str, type_name: str = "", **more: Any) -> Json:
    """A string, of a type of its own where it has a name."""
    named = {"title": type_name} if type_name else {}
    return {"type": "string", "description": words, **named, **more}


def number(words: str, bits: int = 32, **more: Any) -> Json:
    """A whole number."""
    return {"type": "integer", "format": f"int{bits}", "description": words, **more}


def flag(words: str, **more: Any) -> Json:
    """True or false."""
    return {"type": "boolean", "description": words, **more}


def time(words: str, **more: Any) -> Json:
    """A time, to the second."""
    return {"type": "string", "format": "date-time", "title": "Time", "description": words, "nullable": True, **more}


def micro_time(words: str, **more: Any) -> Json:
    """A time, to the microsecond."""
    return {**time(words, **more), "title": "MicroTime"}


def port_or_name(words: str) -> Json:
    """A number or a string."""
    return {"x-kubernetes-int-or-string": True, "description": words}


def texts(words: str, type_name: str = "", **more: Any) -> Json:
    """A list of strings."""
    return listing(words, text("", type_name), **more)


def listing(words: str, items: Json, **more: Any) -> Json:
    """A list."""
    items = {name: value for name, value in items.items() if name != "description" or value}
    return {"type": "array", "items": items, "description": words, **more}


def merged(key: str = "") -> Json:
    """How strategic merge patches treat a list: as a set, or as a map by a key."""
    merge = {"x-kubernetes-patch-strategy": "merge"}
    return {**merge, "x-kubernetes-patch-merge-key": key} if key else merge


def mapping(words: str, values: Json | None = None, type_name: str = "") -> Json:
    """Strings by name, or other values."""
    named = {"title": type_name} if type_name else {}
    return {"type": "object", "additionalProperties": values or {"type": "string"}, "description": words, **named}


def quantities(words: str) -> Json:
    """Amounts of resources by their names."""
    amount = {"type": "string", "title": "Quantity", "x-kubernetes-int-or-string": True}
    return mapping(words, amount, "ResourceList")


def optional(type_name: str, words: str, properties: Json) -> Json:
    """An object with known fields that may be missing as a whole."""
    return {"type": "object", "title": type_name, "description": words, "properties": properties}


def record(type_name: str, words: str, properties: Json) -> Json:
    """An object with known fields that is always there, if need be empty."""
    return {**optional(type_name, words, properties), "default": {}}


def item(type_name: str, properties: Json) -> Json:
    """An object with known fields in a list."""
    return {"type": "object", "title": type_name, "properties": properties}


CONDITIONS = listing(
    "What was last observed, by type.",
    item(
        "Condition",
        {
            "type": text("What it is about.", default=""),
            "status": text("True, False or Unknown.", default=""),
            "observedGeneration": number("The generation that was looked at.", 64),
            "lastTransitionTime": time("When the status last changed.", default=None),
            "reason": text("Why, in one word.", default=""),
            "message": text("Why, in words for people.", default=""),
        },
    ),
    **merged("type"),
)

METADATA = record(
    "ObjectMeta",
    "What every object has, whatever its kind.",
    {
        "name": text("The name, unique among the objects of a kind (in a namespace)."),
        "generateName": text("What a name begins with that the server makes up."),
        "namespace": text("The namespace that the object is in."),
        "selfLink": text("No longer in use."),
        "uid": text("Which object this is, among all that ever had its name.", "UID"),
        "resourceVersion": text("Which state of the object this is. Sent with a change, it has to be the latest."),
        "generation": number("Grows with each change of what is wanted.", 64),
        "creationTimestamp": time("When the object was made."),
        "deletionTimestamp": time("Since when it is being deleted."),
        "deletionGracePeriodSeconds": number("How long it has to end.", 64, nullable=True),
        "labels": mapping("By which objects are selected."),
        "annotations": mapping("Whatever else is to be kept with the object."),
        "ownerReferences": listing(
            "The objects that this one goes with.",
            item(
                "OwnerReference",
                {
                    "apiVersion": text("The group and version of the owner.", default=""),
                    "kind": text("The kind of the owner.", default=""),
                    "name": text("The name of the owner.", default=""),
                    "uid": text("The uid of the owner.", "UID", default=""),
                    "controller": flag("Whether the owner manages this object.", nullable=True),
                    "blockOwnerDeletion": flag("Whether the owner waits for this object to go.", nullable=True),
                },
            ),
            **merged("uid"),
        ),
        "finalizers": texts("Who has something to do before the object may go.", **merged()),
        "managedFields": listing(
            "Who set what. This server does not keep it.",
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        ),
    },
)


def whole(kind: str, words: str, properties: Json) -> Json:
    """The schema of a kind."""
    head = {
        "apiVersion": text("The group and version of this form of the object."),
        "kind": text("What sort of object this is."),
        "metadata": METADATA,
    }
    return {"type": "object", "title": kind, "description": words, "properties": {**head, **properties}}
