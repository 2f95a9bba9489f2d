"""Which objects a list or a watch is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cidrella.apiserver.serving.selecting import parse_field_selector, parse_label_selector

if TYPE_CHECKING:
    from cidrella.apiserver.registry import Served
    from cidrella.apiserver.serving.options import ListOptions
    from cidrella.apiserver.store.entries import Entry


class Selection:
    """Objects of a resource by their labels and fields. Raises `StatusError` where a selector makes no sense."""

    def __init__(self, served: Served, options: ListOptions) -> None:
        self._served = served
        labels = parse_label_selector(options.labels) if options.labels else None
        fields = parse_field_selector(options.fields) if options.fields else None
        self._labels = labels if labels and labels.requirements else None
        self._fields = fields.of(served.resource) if fields and fields.terms else None
        self.name = fields.only("metadata.name") if fields else None
        """The name that objects must have, where only one may match."""
        self.everything = self._labels is None and self._fields is None

    def matches(self, entry: Entry | None) -> bool:
        """Whether an object, if it is there, is one of them."""
        if entry is None:
            return False
        if self.everything:
            return True
        if self.name is not None and entry.path.rpartition("/")[2] != self.name:
            return False
        if self._labels is not None and not self._labels.matches(entry.labels):
            return False
        return self._fields is None or self._fields(self._served.read(entry))

    def of(self, entries: list[Entry]) -> list[Entry]:
        """Those that are, of many."""
        return entries if self.everything else [each for each in entries if self.matches(each)]
