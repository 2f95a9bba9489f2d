"""Who is known by what they showed, while others guess."""

from __future__ import annotations

import hashlib
from typing import Final

_KNOWN_MAX: Final = 256


class Known:
    """Credentials that were right, as hashes, each with the address that it came from."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, bytes], None] = {}
        """The one that was not seen for the longest time first."""

    def has(self, whence: str, credential: str) -> bool:
        """Whether it was right, and nothing that came from there was wrong since."""
        return (whence, _hashed(credential)) in self._places

    def add(self, whence: str, credential: str) -> None:
        """It is right."""
        place = whence, _hashed(credential)
        self._places.pop(place, None)
        self._places[place] = None
        while len(self._places) > _KNOWN_MAX:
            del self._places[next(iter(self._places))]

    def forget(self, whence: str) -> None:
        """Somebody guesses there."""
        for place in [each for each in self._places if each[0] == whence]:
            del self._places[place]


def _hashed(credential: str) -> bytes:
    return hashlib.sha256(credential.encode("utf-8", "surrogatepass")).digest()
