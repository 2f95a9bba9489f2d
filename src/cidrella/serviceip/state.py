"""What the object of a range says, and the changes that may be made to it.

Who may clear a bit:

- who was given the address, by naming the write that gave it (`revert`, or `release` by one who has it still);
- the repairer whose term stands in the object (`free`). One that was replaced finds another's term there.

Anybody may set a clear one. So an address that is somebody's is never given to another: that takes a clear bit, which
takes one of these two.

Beside the bits, the object remembers its last writes and what they gave. `writes` is what makes the outcome of a write
knowable whose reply was lost (see `fate`). `recent` says who was given an address of late:

- A Service whose creation failed after it was given an address (a typo in a port) asks for the same one again, and gets
  it. Which of the two grants stands is not known then, so that the new one is marked `again`: the word that a Service
  is gone does not free it, nor does giving the new one back. The rounds of the repairer do, if nobody has it.
- Who gives back late finds that the address is given to somebody else by now, and nothing is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from msgspec.structs import replace

from cidrella.core.address import Address
from cidrella.core.bitmap import Bitmap, CorruptError
from cidrella.core.prefix import Prefix, PrefixError
from cidrella.model.serviceip import Grant, RangeAllocation, grants_text, read_grants
from cidrella.serviceip.errors import CorruptAllocationError, DeposedError, TakenError

if TYPE_CHECKING:
    from cidrella.core.bands import ServiceRange
    from cidrella.model.objects import ObjectMeta
    from cidrella.model.serviceip import SeenRangeAllocation

RECENT: Final = 256
"""How many grants are remembered: as many as one write can make. Of those marked `again` there may be as many more."""
_NAME_MAX: Final = 253
"""How much of a Service's name is remembered: more than "namespace/name" may have."""
WRITES: Final = 64
"""How many writes are remembered: what others may write while somebody finds out what became of a write."""


class State:
    """The decoded object of one range.

    What was read from the API is not to be changed. What is changed is a `draft` of it: a copy that knows the id of the
    write that it would become, and whether anything was `changed`.
    """

    __slots__ = ("_again", "bitmap", "changed", "metadata", "range", "recent", "repairer", "writes")

    def __init__(  # noqa: PLR0913, PLR0917 -- the fields of the object
        self,
        service_range: ServiceRange,
        metadata: ObjectMeta,
        bitmap: Bitmap,
        recent: dict[int, Grant],
        writes: list[str],
        repairer: str,
    ) -> None:
        self.range = service_range
        self.metadata = metadata
        self.bitmap = bitmap
        self.recent = recent
        """What was given of late, by offset, the latest at the end."""
        self.writes = writes
        """The ids of the last writes, the latest at the end: in a draft, its own."""
        self.repairer = repairer
        """The term of the one that may `free`."""
        self.changed = False
        self._again = sum(each.again for each in recent.values())

    @classmethod
    def read(cls, seen: SeenRangeAllocation, service_range: ServiceRange) -> Self:
        """What an object says of a range. Raises CorruptAllocationError."""
        found = seen.allocation
        if found is None:
            raise _corrupt(seen, seen.problem)
        try:
            cidr = Prefix.parse(found.range)
        except PrefixError as error:
            raise _corrupt(seen, f"its range {found.range!r} {error}") from error
        if cidr != service_range.cidr:
            raise _corrupt(seen, f"it is of another range, {cidr} and not {service_range.cidr}")
        try:
            bitmap = Bitmap.restore(found.data, service_range.usable)
        except CorruptError as error:
            raise _corrupt(seen, f"its data {error}") from error
        recent = {each: grant for each, grant in by_offset(found.recent, service_range).items() if each in bitmap}
        return cls(service_range, seen.metadata, bitmap, recent, found.writes.split(), found.repairer)

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.metadata.uid

    @property
    def version(self) -> str:
        """The object's version; of a draft, that of the state it was made from."""
        return self.metadata.resource_version

    @property
    def last_write(self) -> str:
        """The id of the last write; of a draft, its own. "" if there is none."""
        return self.writes[-1] if self.writes else ""

    def draft(self, write: str) -> State:
        """A copy to be changed, and to be written under that id."""
        writes = [*self.writes[1 - WRITES :], write]
        return State(self.range, self.metadata, self.bitmap.copy(), self.recent.copy(), writes, self.repairer)

    def stored(self, version: str) -> State:
        """What holds now that a draft was written."""
        self.metadata = replace(self.metadata, resource_version=version)
        self.changed = False
        return self

    def encode(self) -> RangeAllocation:
        """The object that says this, to be written if it is still of this version."""
        return RangeAllocation(
            metadata=self.metadata,
            range=str(self.range.cidr),
            data=self.bitmap.snapshot(),
            recent=grants_text(self.recent.values()),
            writes=" ".join(self.writes),
            repairer=self.repairer,
        )

    def grant(self, offset: int, service: str) -> None:
        """Give an address to a Service, as "namespace/name". Raises TakenError.

        It has yet to be shown that this is a name: admission comes before the API server looks at it.
        """
        service = "".join(service.split())[:_NAME_MAX]
        entry = self.recent.get(offset)
        again = not self.bitmap.add(offset)
        if again and (entry is None or entry.service != service or self._full_of_again(entry)):
            raise TakenError(self.range.address(offset), entry.service if entry else "")
        self._forget(offset)
        address = str(self.range.address(offset))
        self.recent[offset] = Grant(address, service, self.last_write, again)
        self._again += again
        self._bound()
        self.changed = True

    def given_to(self, service: str) -> list[int]:
        """What a Service was given of late, the oldest first."""
        return [offset for offset, entry in self.recent.items() if entry.service == service]

    def revert(self, offset: int, write: str) -> None:
        """Take back what a write gave, if the object remembers it. Else it is for the repairer: it may be another's."""
        entry = self.recent.get(offset)
        if entry is not None and entry.write == write and not entry.again:
            self._clear(offset)

    def release(self, offset: int, write: str) -> None:
        """Give an address back that one has still, by naming the write that gave it, however long ago.

        What is not allocated is no error (B7).
        """
        if offset in self.recent:
            self.revert(offset, write)
        else:
            self._clear(offset)

    def free(self, offset: int, term: str) -> bool:
        """Free an address that nobody has, as the repairer of that term; whether it was set. Raises DeposedError."""
        if term != self.repairer:
            raise DeposedError(term, self.repairer)
        return self._clear(offset)

    def add(self, offset: int) -> bool:
        """Put back an address that somebody has; whether it was missing."""
        added = self.bitmap.add(offset)
        self.changed |= added
        return added

    def forget(self, offset: int) -> None:
        """Remember no longer who was given an address: it is known by now who has it."""
        self.changed |= self._forget(offset)

    def appoint(self, term: str) -> None:
        """From now on, the repairer of this term is the one that may free."""
        self.changed |= term != self.repairer
        self.repairer = term

    def unmoved(self, offset: int, earlier: State) -> bool:
        """Whether an address is given, and surely still by the grant that it was given by in an earlier state.

        Where neither state remembers the grant, nothing may have been forgotten in between: the version is the same, or
        something that was remembered then still is, for what is oldest is forgotten first.
        """
        if offset not in self.bitmap or offset not in earlier.bitmap:
            return False
        then, now = earlier.recent.get(offset), self.recent.get(offset)
        if then is not None or now is not None:
            return then == now
        return self.version == earlier.version or any(
            self.recent.get(each) == entry for each, entry in earlier.recent.items() if not entry.again
        )

    def check(self) -> None:
        """Assert what holds of every state, and the bitmap's own invariants."""
        self.bitmap.check()
        assert self._again == sum(each.again for each in self.recent.values()) <= RECENT
        assert len(self.recent) - self._again <= RECENT
        assert len(self.writes) <= WRITES
        assert all(offset in self.bitmap for offset in self.recent), "what is remembered as given is"

    def _clear(self, offset: int) -> bool:
        cleared = self.bitmap.discard(offset)
        forgotten = self._forget(offset)
        self.changed |= cleared or forgotten
        return cleared

    def _forget(self, offset: int) -> bool:
        entry = self.recent.pop(offset, None)
        if entry is not None:
            self._again -= entry.again
        return entry is not None

    def _full_of_again(self, entry: Grant) -> bool:
        return not entry.again and self._again >= RECENT

    def _bound(self) -> None:
        """Forget the oldest grants if there are too many; those marked `again` stay."""
        while len(self.recent) - self._again > RECENT:
            del self.recent[next(offset for offset, each in self.recent.items() if not each.again)]


def by_offset(recent: str, service_range: ServiceRange) -> dict[int, Grant]:
    """The grants of an object, by their offset; without those that are of no address of the range."""
    found = {}
    for each in read_grants(recent):
        try:
            offset = service_range.offset(Address.parse(each.address))
        except PrefixError:
            continue
        if offset is not None:
            found[offset] = each
    return found


def _corrupt(seen: SeenRangeAllocation, problem: str) -> CorruptAllocationError:
    return CorruptAllocationError(f"the RangeAllocation {seen.name} is corrupt: {problem}", seen.version)
