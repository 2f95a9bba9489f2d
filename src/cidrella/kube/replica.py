"""What lists and watches say, made into objects and changes. No I/O: the reflector brings the bytes.

Rules:

- One object that cannot be read keeps nobody else from being served, and is not taken for gone: what was known of it
  stays as it was. If it is another object of the same name, the old one is gone.
- An object whose very name cannot be read may be anybody: a list with such a one takes nobody for gone.
- Version is what the API calls a resourceVersion: an opaque word for a state of the collection.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic

from cidrella.kube.errors import MalformedReplyError
from cidrella.kube.mirror import Change, Mirror, T
from cidrella.kube.wire import read_event, read_head, read_page, read_refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import msgspec

    from cidrella.kube.complaints import Complaints
    from cidrella.kube.wire import Head, Refusal

_NAMELESS: Final = "(no name)"


class RefusalError(Exception):
    """An ERROR event: the server ends the watch."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"the server ended the watch: {refusal.code}: {refusal.message}")
        self.code = refusal.code


class Listing(Generic[T]):
    """A list of which pages come in."""

    def __init__(self) -> None:
        self.objects: list[T] = []
        self.unreadable: dict[str, str] = {}
        """The uid of those that cannot be read, by name."""
        self.version = ""
        self.next_page = ""
        """The token for the page that comes next; "" after the last."""

    def has_unreadable(self, known: T) -> bool:
        """Whether a known object may be among those that cannot be read."""
        return _NAMELESS in self.unreadable or self.unreadable.get(known.name) in {"", known.uid}


class Replica(Generic[T]):
    """The objects of a collection, and the version that they are of. `decode` and `known_as` as for the reflector."""

    def __init__(
        self,
        decode: Callable[[bytes | msgspec.Raw], T],
        complaints: Complaints,
        known_as: Callable[[str], str] = str,
    ) -> None:
        self._decode = decode
        self._complaints = complaints
        self._known_as = known_as
        self._mirror: Mirror[T] = Mirror()
        self._version = ""
        self._newest: msgspec.Raw | None = None
        """The object of the last event, while nobody has asked for its version."""
        self.objects: Mapping[str, T] = MappingProxyType(self._mirror.objects)

    @property
    def version(self) -> str:
        """What to watch from; "" where only a list will do."""
        if self._newest is not None:
            self._version = read_head(self._newest).version or self._version
            self._newest = None
        return self._version

    @version.setter
    def version(self, version: str) -> None:
        self._version, self._newest = version, None

    def read_page(self, reply: bytes, listing: Listing[T]) -> None:
        """Add a page to a list. Raises `MalformedReplyError` for what is none. Nothing of the reply is kept."""
        page = read_page(reply)
        for raw in page.items or ():
            if (obj := self._read(raw)) is not None:
                listing.objects.append(obj)
            else:
                head = self._head(raw)
                listing.unreadable[head.name or _NAMELESS] = head.uid
        token = page.metadata.next_page or ""
        if token and token == listing.next_page:
            raise MalformedReplyError("the same page of a list again and again")
        listing.next_page = token
        listing.version = listing.version or page.metadata.resource_version

    def replace(self, listing: Listing[T]) -> list[Change[T]]:
        """All is as listed. Returns what this changes; what is gone comes first."""
        self.version = listing.version
        self._complaints.keep_only(listing.unreadable)
        return self._mirror.replace(listing.objects, listing.has_unreadable)

    def apply(self, line: bytes) -> list[Change[T]]:
        """One event of a watch has come. Returns what it changes.

        Raises `RefusalError` for an ERROR event, and `MalformedReplyError` for what is no event of a watch.
        """
        event = read_event(line)
        if event.type == "ERROR":
            raise RefusalError(read_refusal(event.object))
        changes: list[Change[T]] = []
        if event.type in {"ADDED", "MODIFIED"}:
            if (obj := self._read(event.object)) is not None:
                changes = self._mirror.put(obj)
            else:
                changes = self._drop_unreadable(self._head(event.object))
        elif event.type == "DELETED" and (head := self._head(event.object)).name:
            self._complaints.settle("an object that could not be read is gone", head.name)
            changes = self._mirror.drop(head.name, head.uid)
        elif event.type != "BOOKMARK":
            raise MalformedReplyError(f"not an event that can be followed: {event.type[:40]!r}")
        self._newest = event.object
        return changes

    def _head(self, raw: msgspec.Raw) -> Head:
        """What identifies an object, by the name that it is known as here."""
        head = read_head(raw)
        return head._replace(name=self._known_as(head.name)) if head.name else head

    def _drop_unreadable(self, head: Head) -> list[Change[T]]:
        """What is known under a name is gone if it is another object that cannot be read."""
        known = self.objects.get(head.name)
        if known is None or head.uid in {"", known.uid}:
            return []
        return self._mirror.drop(known.name, known.uid)

    def _read(self, raw: msgspec.Raw) -> T | None:
        """Decode an object; None for one that cannot be, which is noted."""
        try:
            obj = self._decode(raw)
            if not obj.name:
                raise ValueError("it has no name")  # noqa: TRY301 - it is as unreadable as the others
        except Exception as error:  # whatever an odd object does to decode, the others are to be served
            subject = self._head(raw).name or _NAMELESS
            event = "an object cannot be read; what was known of it stays"
            self._complaints.make(event, kind=type(error).__name__, error=error, subject=subject)
            return None
        self._complaints.settle("an object can be read again", obj.name)
        return obj
