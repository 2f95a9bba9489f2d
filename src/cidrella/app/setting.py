"""One setting of a command that runs for long: its name, what it can be, its default, and what it is for."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from cidrella.app.values import Kind

T = TypeVar("T")

TABLE: Final = "setting"
"""Where a field of settings keeps what the table says of it."""


class Group(Enum):
    """A subject in the help, in its order."""

    NODES = "Ranges and blocks"
    SERVICES = "Ranges of Services"
    WEBHOOK = "The webhook"
    CLUSTER = "The API server"
    ELECTION = "Leader election"
    PAGE = "The page, and metrics"
    OPERATION = "Operation"


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    """The flag's, without the dashes before it."""
    kind: Kind[Any]
    default: str
    group: Group
    help: str

    @property
    def flag(self) -> str:
        """As on the command line."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """As in the environment."""
        return f"CIDRELLA_{self.field.upper()}"

    @property
    def field(self) -> str:
        """As in the settings."""
        return self.name.replace("-", "_")


def setting(kind: Kind[T], default: str, group: Group, text: str) -> T:
    """A field of settings: its default as one would write it, and what it is for."""
    value: T = field(default=kind.parse(default), metadata={TABLE: (kind, default, group, text)})
    return value
