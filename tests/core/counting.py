"""Containers that count how often they are looked into, for tests that hold the code to an amount of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, SupportsIndex, TypeVar, overload

from cidrella.core.bits import SparseBits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Meter:
    """How much was done."""

    def __init__(self) -> None:
        self.looks = 0

    def during(self) -> int:
        """Return what was done since this was last asked."""
        looks, self.looks = self.looks, 0
        return looks


class CountingList(list[T], Generic[T]):
    """A list in which each element that is read, copied or passed by counts."""

    def __init__(self, items: Iterable[T], meter: Meter) -> None:
        super().__init__(items)
        self.meter = meter

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> T | list[T]:
        if isinstance(at, slice):
            found = super().__getitem__(at)
            self.meter.looks += len(found)
            return found
        self.meter.looks += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[T]:
        for item in super().__iter__():
            self.meter.looks += 1
            yield item

    def __add__(self, other: list[T]) -> list[T]:  # type: ignore[override]
        self.meter.looks += len(self) + len(other)
        return super().__add__(other)

    def __radd__(self, other: list[T]) -> list[T]:
        self.meter.looks += len(self) + len(other)
        return other + list(super().__iter__())


class CountingDict(dict[K, V], Generic[K, V]):
    """A dict in which each look-up, and each element that is passed by, counts."""

    def __init__(self, items: dict[K, V], meter: Meter) -> None:
        super().__init__(items)
        self.meter = meter

    def __getitem__(self, key: K) -> V:
        self.meter.looks += 1
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.meter.looks += 1
        return super().__contains__(key)

    def get(self, key: K, default: V | None = None) -> V | None:  # type: ignore[override]
        self.meter.looks += 1
        return super().get(key, default)

    def __iter__(self) -> Iterator[K]:
        for key in super().__iter__():
            self.meter.looks += 1
            yield key


class CountedBits(SparseBits):
    """A sparse set whose words count how often they are looked at; all that are made share one meter."""

    __slots__ = ()
    meter = Meter()
    made: list[CountedBits] = []  # noqa: RUF012 (told by the tests that use it to forget)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.levels = [CountingDict(words, self.meter) for words in self.levels]
        self.made.append(self)

    def words(self) -> int:
        """Return how many words are stored, on all levels."""
        return sum(map(len, self.levels))
