"""What the object of a range says, and who may change what in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from cidrella.core.bands import ServiceRange
from cidrella.core.prefix import Prefix
from cidrella.model.serviceip import read_range_allocation
from cidrella.serviceip.errors import CorruptAllocationError, DeposedError, TakenError
from cidrella.serviceip.state import RECENT, WRITES, State
from tests.serviceip.store import SMALL, Store

How = Callable[[State, int, str], None]
LARGE = ServiceRange.of(Prefix.parse("10.64.0.0/20"))


def read(service_range: ServiceRange = SMALL, held: tuple[int, ...] = (), **fields: Any) -> State:
    """What an object says that was made so."""
    made = Store().make(service_range, held, **fields)
    return State.read(read_range_allocation(json.dumps(made).encode()), service_range)


def draft(service_range: ServiceRange = SMALL, held: tuple[int, ...] = (), **fields: Any) -> State:
    """A draft of it, under the id `ours.1`."""
    return read(service_range, held, **fields).draft("ours.1")


def entry(offset: int, service: str = "default/web", write: str = "theirs.1", **rest: Any) -> dict[str, Any]:
    """What `recent` says of an address."""
    return {"address": str(SMALL.address(offset)), "service": service, "write": write, **rest}


class TestGrant:
    """Giving an address."""

    def test_sets_the_bit_and_remembers(self) -> None:
        """B5: the bit of the offset is set, and the object says who was given it by which write."""
        state = draft()
        state.grant(5, "default/web")
        assert state.changed
        assert 5 in state.bitmap
        stored = state.encode()
        assert stored.data == b"\x20"
        assert (stored.recent, stored.writes) == ("10.96.0.6 default/web ours.1", "maker.1 ours.1")

    def test_draft_is_a_copy(self) -> None:
        """What is done to a draft is not done to the state it was made from."""
        state = read()
        state.draft("ours.1").grant(5, "default/web")
        assert (state.bitmap.count, state.recent, state.writes) == (0, {}, ["maker.1"])

    def test_taken(self) -> None:
        """B4: what is given to somebody else is taken, and the error says by whom, if the object remembers."""
        state = draft(held=(5, 6), recent=[entry(5)])
        with pytest.raises(TakenError, match=r"^10\.96\.0\.6 is taken by default/web$"):
            state.grant(5, "default/other")
        with pytest.raises(TakenError, match=r"^10\.96\.0\.7 is taken already$"):
            state.grant(6, "default/other")
        assert not state.changed

    def test_again(self) -> None:
        """A Service gets again what it was given of late, and that is marked."""
        state = draft(held=(5,), recent=[entry(5)])
        state.grant(5, "default/web")
        assert state.changed
        assert (state.recent[5].again, state.recent[5].write) == (True, "ours.1")
        state.check()

    def test_names_are_not_trusted(self) -> None:
        """Admission comes before anybody looks at the name: it writes no lines of its own, nor fills the object."""
        state = draft()
        state.grant(5, "default/a x.1 again\n10.96.0.9 default/b" + "b" * 9999)
        again = read(recent=state.encode().recent, held=(5,))
        assert list(again.recent) == [5]
        assert len(again.recent[5].service) < 300
        assert not again.recent[5].again

    def test_marks_are_bounded(self) -> None:
        """More grants than can be remembered are not given again: who has them would be forgotten."""
        state = draft(LARGE)
        for offset in range(RECENT + 1):
            state.grant(offset, "default/web")
            if offset < RECENT:
                state.grant(offset, "default/web")
        with pytest.raises(TakenError):
            state.grant(RECENT, "default/web")
        state.grant(0, "default/web")
        state.check()

    def test_remembers_the_last(self) -> None:
        """The oldest are forgotten first; those that are marked are not."""
        state = draft(LARGE)
        state.grant(0, "default/web")
        state.grant(0, "default/web")
        for offset in range(1, RECENT + 3):
            state.grant(offset, "default/web")
        assert list(state.recent) == [0, *range(3, RECENT + 3)]
        state.check()

    def test_writes_are_bounded(self) -> None:
        """As many writes are remembered as it takes to find out what became of one."""
        state = read(writes=[f"theirs.{number}" for number in range(WRITES)])
        assert state.draft("ours.1").writes == [*(f"theirs.{number}" for number in range(1, WRITES)), "ours.1"]


class TestRelease:
    """Giving an address back, by naming the write that gave it."""

    @pytest.mark.parametrize("how", [State.release, State.revert])
    def test_by_the_write(self, how: How) -> None:
        """What the write gave is free again, and forgotten."""
        state = draft(held=(5,), recent=[entry(5)])
        how(state, 5, "theirs.1")
        assert (5 in state.bitmap, state.recent, state.changed) == (False, {}, True)

    @pytest.mark.parametrize("how", [State.release, State.revert])
    def test_given_to_another_since(self, how: How) -> None:
        """B6: who comes late does not free what another has by now."""
        state = draft(held=(5,), recent=[entry(5, write="theirs.2")])
        how(state, 5, "theirs.1")
        assert (5 in state.bitmap, state.changed) == (True, False)

    def test_forgotten(self) -> None:
        """B6: what is forgotten is given back by one who has it; it is not taken back from whoever has it now."""
        state = draft(held=(5,))
        state.revert(5, "theirs.1")
        assert (5 in state.bitmap, state.changed) == (True, False)
        state.release(5, "theirs.1")
        assert 5 not in state.bitmap

    @pytest.mark.parametrize("how", [State.release, State.revert])
    def test_not_allocated(self, how: How) -> None:
        """B7: what is free already is no error, and nothing to write."""
        state = draft()
        how(state, 5, "theirs.1")
        assert not state.changed

    @pytest.mark.parametrize("how", [State.release, State.revert])
    def test_again_stays(self, how: How) -> None:
        """One of two grants to the same Service is given back: the other may be the one that it has."""
        state = draft(held=(5,), recent=[entry(5, again=True)])
        how(state, 5, "theirs.1")
        assert (5 in state.bitmap, state.changed) == (True, False)


class TestRepairing:
    """What the repairer does, and only the one that is in office."""

    def test_free(self) -> None:
        """The repairer frees without naming a write."""
        state = draft(held=(5,), recent=[entry(5, again=True)])
        assert state.free(5, "term-1")
        assert not state.free(5, "term-1")
        assert (state.bitmap.count, state.recent, state.changed) == (0, {}, True)
        state.check()

    def test_deposed(self) -> None:
        """One whose successor has begun frees nothing."""
        state = draft(held=(5,))
        state.appoint("term-2")
        with pytest.raises(DeposedError, match=r"'term-1'.*'term-2'"):
            state.free(5, "term-1")
        assert state.free(5, "term-2")

    def test_appoint(self) -> None:
        """A term that stands already is nothing to write."""
        state = draft()
        state.appoint("term-1")
        assert not state.changed
        state.appoint("term-2")
        assert (state.changed, state.encode().repairer) == (True, "term-2")

    def test_add_and_forget(self) -> None:
        """What somebody has is put back, once; what is known is no longer remembered."""
        state = draft(held=(5,), recent=[entry(5)])
        assert not state.add(5)
        state.forget(6)
        assert state.encode() == draft(held=(5,), recent=[entry(5)]).encode()
        state.forget(5)
        assert state.add(6)
        assert (set(state.bitmap), state.recent, state.changed) == ({5, 6}, {}, True)


class TestUnmoved:
    """Whether an address is surely still given by the grant that it was given by."""

    def test_same_version(self) -> None:
        """Nothing was written since: what was given still is; what is free is not."""
        earlier = read(held=(5,))
        assert earlier.draft("ours.1").unmoved(5, earlier)
        assert not earlier.draft("ours.1").unmoved(6, earlier)

    def test_given_anew_in_the_same_write(self) -> None:
        """One that was freed and given in the very draft is another's."""
        earlier = read(held=(5,))
        state = earlier.draft("ours.1")
        state.release(5, "theirs.1")
        assert not state.unmoved(5, earlier)
        state.grant(5, "default/other")
        assert not state.unmoved(5, earlier)

    def test_later_version(self) -> None:
        """While something is remembered that was then, a grant since would be as well."""
        earlier = read(held=(5, 7), recent=[entry(7)])
        later = earlier.draft("ours.1")
        later.grant(8, "default/other")
        later.stored("99")
        assert later.unmoved(5, earlier)
        assert later.unmoved(7, earlier)
        later = later.draft("ours.2")
        later.release(7, "theirs.1")
        assert not later.unmoved(5, earlier), "nothing is left that was remembered then"


class TestReading:
    """What is in the API may make no sense."""

    @pytest.mark.parametrize(
        ("fields", "words"),
        [
            ({"range": "10.97.0.0/26"}, "it is of another range, 10.97.0.0/26 and not 10.96.0.0/26"),
            ({"range": "10.96.0.0/25"}, "it is of another range"),
            ({"range": "ten"}, "its range 'ten' has no length"),
            ({"data": base64.b64encode(bytes(9)).decode()}, "its data has 9 bytes; 62 addresses have 8 at most"),
            ({"data": base64.b64encode(b"\x40" + bytes(7)).decode()}, "its data has the bit of offset 62 set"),
            ({"data": "no base64!"}, "Invalid base64"),
            ({"data": None}, "data"),
            ({"recent": 7}, "recent"),
        ],
    )
    def test_corrupt(self, fields: dict[str, Any], words: str) -> None:
        """B5: bits beyond the range, another range, what cannot be read: said in words, with the version found."""
        with pytest.raises(CorruptAllocationError, match=r"10\.96\.0\.0-26 is corrupt: ") as caught:
            read(**fields)
        assert words in str(caught.value)
        assert caught.value.version == "1"

    def test_grants_of_nothing(self) -> None:
        """What `recent` says of addresses that are free, or none of the range, is not believed."""
        grants = [entry(5), entry(6), {**entry(7), "address": "10.99.0.1"}, {**entry(8), "address": "ten"}]
        assert list(read(held=(5, 7, 8), recent=grants).recent) == [5]

    def test_metadata_stays(self) -> None:
        """What others keep in the object stays in it."""
        assert draft().encode().metadata.labels == {"kept": "yes"}
