"""What the API serves: a resource is a kind at a path, with everything that is particular about it.

Built-in kinds and those of CRDs are the same thing here: a schema, columns, and a strategy. Whatever reads or writes
objects is written once, over this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cidrella.apiserver.schemas.schema import Schema
    from cidrella.apiserver.words.statuses import Fault

    Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    value: Callable[[Json], Any]
    """What of an object stands in it; None where it has no such thing."""
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    """Above 0: only with `-o wide`."""


class Strategy:
    """What is particular about a kind when it is written. This one is for a kind about which nothing is.

    Objects are plain JSON, and may be changed in place by `prepare_…`. When these are called, unknown fields are gone,
    defaults are in, and metadata is as it will be stored, but for `generation`, which is set here.
    """

    def read(self, obj: Json) -> str:  # noqa: ARG002 - for those that look
        """Bring what a client sent into the form of the kind, in place.

        Returns what keeps it from being read, in the words of the real server's decoder; "" for nothing.
        """
        return ""

    def prepare_create(self, new: Json) -> None:
        """Set what the server decides, and drop what it does not take from clients."""

    def prepare_update(self, new: Json, old: Json) -> None:
        """Likewise, for a write to the resource itself: status stays, generation grows where the kind has one."""

    def prepare_status(self, new: Json, old: Json) -> None:
        """Likewise, for a write to /status: all but status stays."""

    def name_faults(self, name: str, new: Json) -> list[str]:  # noqa: ARG002 - for those that look
        """What is wrong with the name of a new object beyond its form (`Resource.name_fault`), or a beginning."""
        return []

    def validate_create(self, new: Json) -> list[Fault]:  # noqa: ARG002 - for those that look
        """What is wrong beyond the schema."""
        return []

    def validate_update(self, new: Json, old: Json) -> list[Fault]:  # noqa: ARG002 - likewise
        """What is wrong beyond the schema, for a write to the resource or to its status."""
        return []

    def warnings(self, new: Json) -> list[str]:  # noqa: ARG002 - likewise
        """What to tell the client in a Warning header."""
        return []


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind at a path."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    schema: Schema
    strategy: Strategy
    columns: tuple[Column, ...] = ()
    """Those after Name. Without any: the age alone."""
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    status: bool = False
    """Whether there is /status."""
    custom: bool = False
    """Whether it comes from a CRD."""
    storage: str = ""
    """Under which its objects are stored; resources may share one (events). Empty: plural.group."""
    fields: Mapping[str, Callable[[Json], str]] = field(default_factory=dict)
    """What `fieldSelector` may name beyond metadata.name and metadata.namespace, and how it is read."""
    encode: Callable[[Json], Json] | None = None
    """From this version's form to the stored one, and `decode` back; None where they are the same."""
    decode: Callable[[Json], Json] | None = None
    name_fault: Callable[[str], list[str]] | None = None
    """What is wrong with an object's name, in words; None: the rule for subdomains."""
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    unconditional: bool = False
    """Whether a PUT need not name the version that it replaces."""
    creates: bool = False
    """Whether a PUT makes what is not there."""
    returns_deleted: bool = False
    """Whether a deletion is answered with the object, and not with a Status."""
    lifetime: float = 0.0
    """Seconds after which an object goes by itself; 0: never. Events have one."""

    @property
    def group_version(self) -> str:
        """As in apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def store_key(self) -> str:
        """The first part of its keys in the store."""
        return self.storage or (f"{self.plural}.{self.group}" if self.group else self.plural)
