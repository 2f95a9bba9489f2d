"""A copy of a collection, and what each piece of news changes in it. No I/O.

Rules:

- An object is the same as long as name and uid are. Another uid under a known name is another object: the old one is
  gone, then the new one is added.
- News that leave an object equal to what is known change nothing, and what is known stays.
- What is gone is told before what is new, so that a name or an address can change hands within one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Named(Protocol):
    """What every object has. Objects are compared by `==`, and are not changed."""

    @property
    def name(self) -> str:
        """Its name, by which it is known."""

    @property
    def uid(self) -> str:
        """Which object of that name it is."""


T = TypeVar("T", bound=Named)


class Change(NamedTuple, Generic[T]):
    """What became of an object: (None, x) added, (x, y) modified, (x, None) gone."""

    old: T | None
    new: T | None


class Mirror(Generic[T]):
    """The objects of a collection by name."""

    def __init__(self) -> None:
        self.objects: dict[str, T] = {}

    def put(self, obj: T) -> list[Change[T]]:
        """An object as it is now. Returns the changes, of which there may be none. O(1)."""
        known = self.objects.get(obj.name)
        if known == obj:
            return []
        self.objects[obj.name] = obj
        if known is None or known.uid == obj.uid:
            return [Change(known, obj)]
        return [Change(known, None), Change(None, obj)]

    def drop(self, name: str, uid: str) -> list[Change[T]]:
        """An object that is no more. Nothing happens to another of the same name; no uid stands for any. O(1)."""
        known = self.objects.get(name)
        if known is None or uid not in {"", known.uid}:
            return []
        del self.objects[name]
        return [Change(known, None)]

    def replace(self, listed: Iterable[T], is_there: Callable[[T], bool] = lambda _: False) -> list[Change[T]]:
        """All objects that there are. What is known and not listed is gone, unless it `is_there` all the same. O(n)."""
        now = {obj.name: obj for obj in listed}
        gone = [
            change
            for known in list(self.objects.values())
            if self._is_gone(known, now) and not is_there(known)
            for change in self.drop(known.name, known.uid)
        ]
        return gone + [change for obj in now.values() for change in self.put(obj)]

    @staticmethod
    def _is_gone(known: T, now: Mapping[str, T]) -> bool:
        other = now.get(known.name)
        return other is None or other.uid != known.uid
