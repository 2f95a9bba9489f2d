"""What the store holds, and what happens to it: entries and changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    Json = dict[str, Any]

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_labels_decoder = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class Entry:
    """An object as it was at one version."""

    path: str
    """`namespace/name`, or `name` of what is in no namespace. Lists are in the order of these strings."""
    version: int
    body: bytes
    """Its JSON, with metadata.resourceVersion in it."""
    _labels: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
    """None until somebody asks: of what is read at a start, most are never asked for."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its metadata.labels."""
        labels = self._labels
        if labels is None:
            labels = _labels_decoder.decode(self.body).metadata.labels or {}
            object.__setattr__(self, "_labels", labels)
        return labels

    def read(self) -> Json:
        """A fresh copy, decoded."""
        obj: Json = _decoder.decode(self.body)
        return obj

    @classmethod
    def write(cls, path: str, version: int, obj: Json) -> Entry:
        """Of an object, in which metadata.resourceVersion is set."""
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(version)
        return cls(path, version, _encoder.encode(obj), dict(metadata.get("labels") or ()))


@dataclass(slots=True, eq=False)
class Change:
    """What happened to an object. Only `lines` is written to after it is made."""

    storage: str
    before: Entry | None
    """None: it was not there."""
    after: Entry | None
    """None: it is deleted."""
    shown: Entry
    """What to tell of it: `after`, or of a deletion the last state, with the version of the deletion."""
    lines: dict[Hashable, bytes] = field(default_factory=dict)
    """For those who tell it to many: what they made of it, to be made once. It goes when the history forgets this."""

    @property
    def version(self) -> int:
        """Which change it is: they are counted."""
        return self.shown.version
