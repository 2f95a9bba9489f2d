"""What all built-in kinds have in common."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cidrella.apiserver.kinds.reading import Form
from cidrella.apiserver.resource import Column, Strategy
from cidrella.apiserver.words.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    Json = dict[str, Any]

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
_OF_STATUS: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class BuiltIn(Strategy):
    """A kind with a schema of `shapes`. What is written to /status keeps the rest, and the other way round."""

    def __init__(self, definition: Json) -> None:
        self._form = Form(definition)

    def read(self, obj: Json) -> str:
        """Bring what a client sent into the form of the kind; what keeps it from being read, "" for nothing."""
        return self._form.read(obj)

    def columns(self, *columns: Column) -> tuple[Column, ...]:
        """Columns that can be read of any object, also of a bookmark, which has nothing but a version."""
        return tuple(replace(each, value=self._of_whole(each.value)) for each in columns)

    def _of_whole(self, read: Callable[[Json], Any]) -> Callable[[Json], Any]:
        def value(obj: Json) -> Any:
            if "uid" not in obj["metadata"]:
                obj = deepcopy(obj)
                self.read(obj)
            return read(obj)

        return value

    def prepare_update(self, new: Json, old: Json) -> None:
        """Keep the status, of a kind that has one."""
        if "status" in old:
            new["status"] = old["status"]

    def prepare_status(self, new: Json, old: Json) -> None:
        """Keep the rest."""
        for name in old.keys() - {"status", "metadata"}:
            new[name] = old[name]


def keep_metadata(new: Json, old: Json) -> None:
    """Keep what of metadata is the user's, for kinds whose /status takes none of it."""
    for name in _OF_STATUS:
        new["metadata"].pop(name, None)
        if name in old["metadata"]:
            new["metadata"][name] = old["metadata"][name]


def moment(text: str | None) -> datetime | str:
    """A time for a column that says how long ago it was."""
    return parse_time(text) if text else UNKNOWN


def age() -> Column:
    """The column that most kinds have."""
    return Column(
        "Age", lambda obj: moment(obj["metadata"].get("creationTimestamp")), description="Since when it is there."
    )
