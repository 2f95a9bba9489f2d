"""How long to wait before asking a server again that did not answer, or not well."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


class Backoff:
    """Decorrelated delays, in seconds: each is drawn between `base` and three times the one before, `cap` at most.

    Many who lose the same server at the same time thus soon ask at different times.
    """

    def __init__(self, base: float, cap: float, rng: random.Random) -> None:
        if not 0 < base <= cap:
            raise ValueError(f"a backoff needs 0 < base <= cap, not {base} and {cap}")
        self._base = base
        self._cap = cap
        self._rng = rng
        self._last = base

    def next(self, cap: float = 0.0) -> float:
        """The delay to wait now, in seconds; a `cap` above the usual one stretches it for this kind of trouble."""
        self._last = min(max(cap, self._cap), self._rng.uniform(self._base, 3 * self._last))
        return self._last

    def reset(self) -> None:
        """Start over from `base`: things have gone well for long enough."""
        self._last = self._base
