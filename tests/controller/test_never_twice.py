"""No block is given to two nodes: in every state that the protocol can come to, and by the parts that follow it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from cidrella.controller.intents import (
    BATCH,
    MOST,
    MOST_REFUSED,
    TEXT_MAX,
    Intent,
    Intents,
    decode,
    encode,
    take_over,
)
from cidrella.core.cluster import Cluster
from cidrella.core.prefix import Prefix
from cidrella.kube.errors import ApiError, NoAnswerError
from tests.controller import protocol
from tests.controller.fakes import FakeClient, Office
from tests.core.build import cluster, free, node, nodes, part, spec, users

if TYPE_CHECKING:
    from collections.abc import Callable


def intent(name: str, *blocks: str, pool: str = "p") -> Intent:
    """What a node is to be given."""
    return Intent(f"uid of {name}", pool, tuple(map(Prefix.parse, blocks)))


class TestEveryState:
    """Pitfall 27, A1: two replicas, three nodes, two blocks, and whatever can happen to them, in any order."""

    def test_none_is_bad(self, record_property: Callable[[str, object], None]) -> None:
        """Pitfall 27: in no state do two nodes have one block, whoever is paused or dies, whatever is lost or late."""
        states, story = protocol.explore(records=True)
        record_property("states", states)
        assert story == []
        assert states > 10_000

    def test_without_recording(self) -> None:
        """Pitfall 27: what is sent without being recorded comes to be given twice; without that step, it is found."""
        _, story = protocol.explore(records=False)
        assert story[-1] == "a PATCH arrives"
        assert sum(step.endswith("takes the lease") for step in story) == 2

    @pytest.mark.parametrize("left_out", ["inheriting", "holding"])
    def test_without_taking_over(self, left_out: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Pitfall 27: recording is of use to who reads it, and holds what it cannot adopt: else it is given twice."""
        if left_out == "inheriting":
            monkeypatch.setattr(protocol, "decode", lambda _: [])
        else:
            monkeypatch.setattr(Cluster, "hold", lambda *_: None)
        _, story = protocol.explore(records=True)
        assert story[-1] == "a PATCH arrives"


class TestTheText:
    """What stands in the Lease."""

    def test_there_and_back(self) -> None:
        """Pitfall 27: what is written is what is read, also several entries for one node, and nothing for none."""
        entries = [intent("a", "10.0.0.0/24", "fd00::/64"), intent("a", "10.0.1.0/24", pool="ccc/x,ccc/y")]
        assert decode(encode(entries)) == entries
        assert encode([]) == ""
        assert decode("") == []

    @pytest.mark.parametrize(
        "text",
        ["{", "7", '{"a": 1}', '"x"', "[[]]", '[["u", "p"]]', '[["u", "p", 7]]', '[["u", "p", "x"]]', "[" * 9**5],
    )
    def test_rubbish(self, text: str) -> None:
        """Pitfall 27: what cannot be read is not taken for nothing, also beside what can be."""
        with pytest.raises(ValueError, match=r"."):
            decode(text)
        if text.startswith("[[") and text.endswith("]"):
            with pytest.raises(ValueError, match=r"."):
                decode(json.dumps([*json.loads(encode([intent("a", "10.0.0.0/24")])), *json.loads(text)]))


class TestTakingOver:
    """What becomes of what may have been sent, in the books of whoever leads next."""

    def test_what_can_be_given_is_sent_again(self) -> None:
        """N9: an entry for a node without podCIDRs is reserved for it; those that are settled are dropped."""
        books = cluster(spec("p", "10.0.0.0/22 /24"))
        there = {each.name: each for each in (node("a"), node("b", has="10.0.1.0/24"), node("c", uid="new"))}
        books.observe_many(there.values())
        inherited = [intent(name, f"10.0.{place}.0/24") for place, name in enumerate(("a", "b", "c", "d"))]
        assert take_over(books, there, {}, inherited, adopts=True) == {"a": inherited[0]}
        assert books.reserved() == ["a"]
        assert free(books, "p") == [2]
        books.check()

    @pytest.mark.parametrize("why", ["pool gone", "pool going", "given away", "not serving", "second"])
    def test_what_cannot_be_given_is_held(self, why: str) -> None:
        """S6, A1, F8: what could not be given any more is given to nobody, as long as it may land."""
        books = cluster(spec("p", "10.0.0.0/22 /24", terminating=why == "pool going"))
        if why == "pool gone":
            books.remove_pool("p")
        if why == "given away":
            books.observe(node("other", has="10.0.0.0/24"))
        inherited = [intent("a", "10.0.0.0/24")]
        if why == "second":
            inherited.insert(0, intent("a", "10.0.1.0/24"))
        found = take_over(books, {"a": node("a")}, {}, inherited, adopts=why != "not serving")
        assert found == ({"a": inherited[0]} if why == "second" else {})
        assert [Intent(*each) for each in books.holds_kept()] == [intent("a", "10.0.0.0/24")]
        books.check()

    def test_who_gives_nothing_passes_it_on(self) -> None:
        """F8, pitfall 27: a replica that serves nobody keeps in the Lease what it found, for one that does."""

        async def record() -> bool:
            return True

        books = cluster(spec("p", "10.0.0.0/22 /24"))
        there = {each.name: each for each in nodes(3)}
        books.observe_many(there.values())
        entries = [intent("n0", "10.0.0.0/24"), intent("n2", "10.0.2.0/24"), intent("gone", "10.0.1.0/24")]
        intents = Intents(books, record)
        assert intents.begin(there, entries, adopts=False) == []
        assert decode(intents.text() or "") == entries[:2]
        assert free(books, "p") == [2]

    def test_own_memory(self) -> None:
        """N9, F5: what this process recorded when it led before it sends again; what cannot be given any more it holds.

        What was held may be given now, and then is.
        """
        books = cluster(
            spec("p", "10.0.0.0/24 /24"), spec("q", "10.1.0.0/24 /24", where="q"), spec("r", "10.2.0.0/24 /24")
        )
        there = {each.name: each for each in (node("a"), node("b", "q=1"), node("c"))}
        own = {
            name: Intent(f"uid of {name}", each.pool_name, each.blocks)
            for name, each in zip(there, books.decide_many(list(there.values())), strict=True)
            if name != "c"
        }
        books.cancel("c")
        books.hold(there["c"], "r", [Prefix.parse("10.2.0.0/24")])
        books.change_pool(spec("q", "10.1.0.0/24 /24", where="q", terminating=True))
        found = take_over(books, there, own, own.values(), adopts=True)
        assert found == {"a": own["a"], "c": intent("c", "10.2.0.0/24", pool="r")}
        assert [Intent(*each) for each in books.holds_kept()] == [own["b"]]
        assert len(users(books, "q")) == 1
        books.check()


class Lease:
    """Says when something is recorded, and whether it was."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.lost = False
        self.office: Office | None = None

    async def record(self) -> bool:
        await self.open.wait()
        assert self.office is not None
        if self.lost:
            return False
        text = self.office.intents.text()
        assert text is not None
        self.writes.append(text)
        return True


def office(answer: Callable[[str], object]) -> tuple[Office, FakeClient, Lease]:
    """Nodes being served by a replica that has just begun to lead, with a pool of 4,096 blocks."""

    async def reply(path: str) -> None:
        result = answer(path)
        if isinstance(result, asyncio.Event):
            await result.wait()

    lease, fake = Lease(), FakeClient(reply)
    made = lease.office = Office(fake, lease.record)
    made.cluster.add_pool(spec("p", "10.0.0.0/12 /24"))
    return made, fake, lease


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def _sent_to(fake: FakeClient) -> list[str]:
    """The nodes to which something was sent, each as often as that was."""
    return [body["metadata"]["uid"] for _, body in fake.sent]


def _lose(_: str) -> None:
    raise NoAnswerError("lost")


def _refuse(_: str) -> None:
    raise ApiError(403, "Forbidden", "no")


def begin(made: Office, *inherited: Intent) -> asyncio.Task[None]:
    """Lead."""
    made.allocation.resume(inherited)
    made.duty.take_up()
    return asyncio.ensure_future(made.allocation.run())


def stop(made: Office) -> None:
    """Lead no more."""
    made.duty.lay_down()
    made.allocation.suspend()


class TestSending:
    """Nothing is sent that is not recorded."""

    def test_recorded_before_it_is_sent(self) -> None:
        """Pitfall 27: a node's block goes out when it stands in the Lease, and leaves it when it stands on the node."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            lease.open.clear()
            running = begin(made)
            made.see(node("n"))
            await _settle()
            assert fake.sent == []
            assert made.cluster.is_reserved("n", "uid of n")
            lease.open.set()
            await _settle()
            assert len(fake.sent) == 1
            assert lease.writes == [encode([intent("n", "10.0.0.0/24")])]
            assert made.intents.text() == ""
            running.cancel()

        asyncio.run(scenario())

    def test_many_by_one_write(self) -> None:
        """Pitfall 27: thousands of nodes take a Lease write for each hundred at most, and never too many entries."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            for each in nodes(3000):
                made.see(each)
            running = begin(made)
            while len(fake.sent) < 3000:
                await asyncio.sleep(0.01)
            assert len(lease.writes) <= 30
            assert max(len(json.loads(text)) for text in lease.writes) <= MOST
            running.cancel()

        asyncio.run(scenario())

    def test_not_more_than_there_is_room_for(self) -> None:
        """Pitfall 27: while nothing is heard of what was sent, no more is recorded than the bound; then it goes on."""

        async def scenario() -> None:
            answered = asyncio.Event()
            made, fake, _ = office(lambda _: answered)
            for each in nodes(MOST + 100):
                made.see(each)
            running = begin(made)
            await asyncio.sleep(0.8)
            assert len(made.intents) == MOST
            answered.set()
            while len(fake.sent) < MOST + 100:
                await asyncio.sleep(0.01)
            assert BATCH < MOST
            running.cancel()

        asyncio.run(scenario())

    def test_no_room_and_nothing_arrived(self) -> None:
        """N9, pitfall 27: where as much as there is room for was lost on its way, that is sent again, then the rest."""

        async def scenario() -> None:
            away = True

            def lose(_: str) -> None:
                if away:
                    raise NoAnswerError("lost")

            made, fake, _ = office(lose)
            for each in nodes(MOST + 100):
                made.see(each)
            running = begin(made)
            while len(made.intents) < MOST or len(set(_sent_to(fake))) < MOST:
                await asyncio.sleep(0.01)
            away = False
            async with asyncio.timeout(60):
                while made.intents.text() or len(set(_sent_to(fake))) < MOST + 100:
                    await asyncio.sleep(0.01)
            running.cancel()

        asyncio.run(scenario())

    def test_as_many_inherited_as_there_is_room_for(self) -> None:
        """Pitfall 27: a successor that inherits as many entries as there may be sends these, then serves the others."""

        async def scenario() -> None:
            made, fake, _ = office(lambda _: None)
            fleet = nodes(MOST + 200)
            for each in fleet:
                made.see(each)
            entries = [
                Intent(each.uid, "p", (Prefix.parse(f"10.{place // 256}.{place % 256}.0/24"),))
                for place, each in enumerate(fleet[100 : 100 + MOST])
            ]
            running = begin(made, *entries)
            assert len(made.intents) == MOST
            async with asyncio.timeout(60):
                while made.intents.text() or len(fake.sent) < len(fleet):
                    await asyncio.sleep(0.01)
            blocks = {body["metadata"]["uid"]: body["spec"]["podCIDRs"] for _, body in fake.sent}
            assert all(blocks[each.uid] == list(map(str, each.blocks)) for each in entries)
            assert len({block for (block,) in blocks.values()}) == len(fleet)
            running.cancel()

        asyncio.run(scenario())

    def test_more_held_than_there_is_room_for(self) -> None:
        """Pitfall 27: what is held keeps nobody from being served, least of all those for whom it is held."""

        async def scenario() -> None:
            made, fake, _ = office(lambda _: None)
            made.cluster.add_pool(spec("going", "10.16.0.0/12 /24", terminating=True))
            fleet = nodes(MOST)
            for each in fleet:
                made.see(each)
            entries = (
                Intent(each.uid, "going", (Prefix.parse(f"10.{16 + place // 256}.{place % 256}.0/24"),))
                for place, each in enumerate(fleet)
            )
            running = begin(made, *entries)
            assert made.cluster.holds_count == MOST
            async with asyncio.timeout(60):
                while len(fake.sent) < MOST:
                    await asyncio.sleep(0.01)
            assert len(decode(made.intents.text() or "")) == MOST  # no watch has told of any yet
            for each in fleet:
                made.see(replace(each, pod_cidrs=tuple(map(str, made.cluster.decide(each).blocks)), pool="p"))
            assert made.intents.text() == ""
            running.cancel()

        asyncio.run(scenario())

    def test_a_refusal_takes_it_back(self) -> None:
        """N9: what was definitely refused is not in the Lease any more, unless an earlier PATCH may still land."""
        for doubtful in (False, True):
            replies = iter([NoAnswerError("lost")] if doubtful else [])

            def refuse(_: str, replies: object = replies) -> None:
                raise next(replies, ApiError(403, "Forbidden", "no"))  # type: ignore[call-overload]

            async def scenario(doubtful: bool = doubtful, refuse: Callable[[str], None] = refuse) -> None:
                made, fake, _ = office(refuse)
                running = begin(made)
                made.see(node("n"))
                while len(fake.sent) < 1 + doubtful:
                    await asyncio.sleep(0.01)
                running.cancel()
                await _settle()
                assert made.cluster.is_reserved("n", "uid of n") == doubtful
                assert bool(made.intents.text()) == doubtful

            asyncio.run(scenario())

    def test_a_pool_that_goes_before_it_is_sent(self) -> None:
        """S6: between recording and sending a pool may go; what was never sent is then not given, and is free again."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            running = begin(made)
            lease.open.clear()
            made.see(node("n"))
            await _settle()
            made.cluster.change_pool(spec("p", "10.0.0.0/12 /24", terminating=True))
            lease.open.set()
            await _settle()
            assert fake.sent == []
            assert made.intents.text() == ""
            assert made.allocation.waiting.keys() == {"n"}
            running.cancel()

        asyncio.run(scenario())

    @pytest.mark.parametrize("anew", [False, True])
    def test_a_pool_that_is_torn_away_before_it_is_sent(self, anew: bool) -> None:
        """S6, P7: between recording and sending a pool may be gone, or be another one of that name."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            running = begin(made)
            lease.open.clear()
            made.see(node("n"))
            await _settle()
            made.cluster.remove_pool("p")
            if anew:
                made.cluster.add_pool(spec("p", "10.64.0.0/12 /24"))
            lease.open.set()
            while not made.allocation.waiting and not fake.sent:
                await asyncio.sleep(0.01)
            given = [body["spec"]["podCIDRs"] for _, body in fake.sent]
            assert given == ([["10.64.0.0/24"]] if anew else [])
            running.cancel()

        asyncio.run(scenario())

    @pytest.mark.parametrize("who", ["Services", "a third party"])
    @pytest.mark.parametrize("sent", [False, True])
    def test_a_block_that_others_took_meanwhile(self, who: str, sent: bool) -> None:
        """A7, N6, N9: what is seen to be taken is not sent, nor sent again; what was sent once is held.

        The node gets another block.
        """

        async def scenario() -> None:
            made, fake, lease = office(_lose if sent else _refuse)
            running = begin(made)
            if not sent:
                lease.open.clear()
            made.see(node("n"))
            await _until(lambda: bool(fake.sent) if sent else not made.allocation.queue.ready)
            if who == "Services":
                made.cluster.add_service_range(Prefix.parse("10.0.0.0/24"), "services")
            else:
                made.see(node("other", has="10.0.0.0/24"))
            before = len(fake.sent)
            lease.open.set()
            await _until(lambda: len(fake.sent) > before)
            assert all(body["spec"]["podCIDRs"] == ["10.0.1.0/24"] for _, body in fake.sent[before:])
            assert (intent("n", "10.0.0.0/24") in decode(made.intents.text() or "")) == sent
            assert made.cluster.holds_count == sent
            made.see(node("n", has="10.0.0.0/24" if sent else "10.0.1.0/24"))
            assert made.intents.text() == ""
            running.cancel()

        asyncio.run(scenario())

    def test_what_is_held_may_be_given_after_all(self) -> None:
        """N4, pitfall 27: a node that waits gets what is held for it once it could be given; nobody else does.

        Its block had another holder when the lease was taken, and was the pool's last.
        """

        async def scenario() -> None:
            made, fake, lease = office(_refuse)
            made.cluster.remove_pool("p")
            made.cluster.add_pool(spec("p", "10.0.0.0/24 /24"))
            made.see(node("other", has="10.0.0.0/25"))
            for name in ("a", "b"):
                made.see(node(name))
            running = begin(made, intent("b", "10.0.0.0/24"))
            while made.allocation.waiting.keys() != {"a", "b"}:
                await asyncio.sleep(0.01)
            made.allocation.wake()
            await _settle()
            assert fake.sent == []
            made.lose("other")
            made.allocation.wake()
            await _settle()
            assert set(_sent_to(fake)) == {"uid of b"}
            # It was refused, but an earlier one may still land.
            assert decode(made.intents.text() or "") == [intent("b", "10.0.0.0/24")]
            assert made.cluster.is_reserved("b", "uid of b")
            assert made.cluster.holds_count == 0
            assert lease.writes == []  # where it stood, it stands
            running.cancel()

        asyncio.run(scenario())

    def test_a_node_that_goes_before_it_is_sent(self) -> None:
        """N8: a node that is gone, or was made anew, while its block was being recorded is not sent that block."""
        for anew in (False, True):

            async def scenario(anew: bool = anew) -> None:
                made, fake, lease = office(lambda _: None)
                running = begin(made)
                lease.open.clear()
                made.see(node("n"))
                await _settle()
                made.lose("n")
                if anew:
                    made.see(node("n", uid="new"))
                lease.open.set()
                await _settle()
                assert [body["metadata"]["uid"] for _, body in fake.sent] == (["new"] if anew else [])
                assert made.intents.text() == ""
                assert made.allocation.queue.in_hand == 0
                running.cancel()

            asyncio.run(scenario())

    def test_a_node_that_goes_while_it_waits_to_be_sent(self) -> None:
        """N8: what is recorded and waits for a slot is not sent to a node that is gone by then."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            begun = [made.limit.began() for _ in range(made.limit.limit)]  # no slot is left
            running = begin(made)
            made.see(node("n"))
            await _settle()
            assert len(lease.writes) == 1
            made.lose("n")
            for each in begun:
                made.limit.ended(each, None)
            await _settle()
            assert fake.sent == []
            assert made.allocation.queue.in_hand == 0
            running.cancel()

        asyncio.run(scenario())


class TestLosingTheLease:
    """What was recorded may be sent by another; what was not never was."""

    def test_not_recorded(self) -> None:
        """Pitfall 27, N9: what was not recorded when the lease was lost is free again, and was not sent."""

        async def scenario() -> None:
            made, fake, lease = office(lambda _: None)
            running = begin(made)
            lease.open.clear()
            made.see(node("n"))
            await _settle()
            stop(made)
            lease.lost = True
            lease.open.set()
            await _settle()
            assert fake.sent == []
            assert not made.cluster.holds("n")
            assert made.intents.text() is None
            lease.lost = False
            made.allocation.resume()
            made.duty.take_up()
            await asyncio.sleep(0.1)
            assert len(fake.sent) == 1
            running.cancel()

        asyncio.run(scenario())

    def test_recorded(self) -> None:
        """Pitfall 27, N9: what was recorded stays reserved, sent or not; leading again, it may have been sent."""

        async def scenario() -> None:
            made, fake, _ = office(lambda _: asyncio.Event())
            for _ in range(made.limit.limit - 1):
                made.limit.began()  # one slot is left
            for each in nodes(2):
                made.see(each)
            running = begin(made)
            await _settle()
            assert len(fake.sent) == 1
            stop(made)
            await _settle()
            assert sorted(made.cluster.reserved()) == ["n0", "n1"]
            assert made.allocation.queue.in_hand == 0
            made.allocation.resume()
            assert not await made.allocation.finish(0)
            assert len(decode(made.intents.text() or "")) == 2
            running.cancel()

        asyncio.run(scenario())

    def test_while_many_wait_for_room(self) -> None:
        """N4, pitfall 27: nodes for which there was no room when the lease was lost are served when it is had again."""

        async def scenario() -> None:
            answered = asyncio.Event()
            made, fake, _ = office(lambda _: answered)
            for each in nodes(MOST + 100):
                made.see(each)
            running = begin(made)
            while len(made.intents) < MOST or made.allocation.queue.ready:
                await asyncio.sleep(0.01)
            stop(made)
            await _settle()
            assert made.allocation.queue.in_hand == 0
            assert len(made.cluster.reserved()) == MOST
            answered.set()
            made.allocation.resume()
            made.duty.take_up()
            async with asyncio.timeout(60):
                while made.intents.text() or len(set(_sent_to(fake))) < MOST + 100:
                    await asyncio.sleep(0.01)
            running.cancel()

        asyncio.run(scenario())

    def test_inherited(self) -> None:
        """Pitfall 27: what a predecessor recorded is sent again, as it was, without being recorded again."""

        async def scenario() -> None:
            made, fake, lease = office(_lose)
            for each in nodes(2):
                made.see(each)
            running = begin(made, intent("n1", "10.0.0.0/24"))
            await _settle()
            sent = {path.split("/")[-1].split("?")[0]: body["spec"]["podCIDRs"] for path, body in fake.sent}
            assert sent == {"n0": ["10.0.1.0/24"], "n1": ["10.0.0.0/24"]}
            assert len(lease.writes) == 1
            made.see(node("n1", has="10.0.0.0/24", annotation="p"))
            assert decode(made.intents.text() or "") == [intent("n0", "10.0.1.0/24")]
            running.cancel()

        asyncio.run(scenario())

    def test_inherited_and_refused(self) -> None:
        """Pitfall 27, N9: a refusal of what was inherited frees nothing: what the predecessor sent may still land."""

        async def scenario() -> None:
            made, fake, _ = office(_refuse)
            made.see(node("n"))
            running = begin(made, intent("n", "10.0.0.0/24"))
            await _settle()
            assert fake.sent
            assert made.cluster.is_reserved("n", "uid of n")
            assert decode(made.intents.text() or "") == [intent("n", "10.0.0.0/24")]
            running.cancel()

        asyncio.run(scenario())


class TestRoom:
    """For how many nodes more something can be recorded."""

    def test_room_where_entries_are_large(self) -> None:
        """Pitfall 27: the text fills up to its limit and not beyond, whatever the names of the pools."""
        names = [f"ccc/{family}{'x' * 251}" for family in "46"]
        books = cluster(part(names[0], "10.0.0.0/12 /24"), part(names[1], "fd00::/48 /64"))
        intents = Intents(books, _recorded)
        intents.begin({}, [], adopts=True)
        assert intents.fitting(MOST, MOST) == (BATCH, 0)
        assert intents.fitting(0, MOST) == (0, MOST_REFUSED)
        for each in nodes(1000):
            if not intents.fitting(1, 0)[0]:
                break
            intents.add(each, books.decide(each), again=False)
        assert intents.full
        assert TEXT_MAX - 700 < len(intents.text() or "") <= TEXT_MAX

    def test_both_shares_together_fit(self) -> None:
        """Pitfall 27: where the text is nearly full, both shares together take no more than what is left."""
        names = [f"ccc/{family}{'x' * 251}" for family in "46"]
        books = cluster(part(names[0], "10.0.0.0/12 /24"), part(names[1], "fd00::/48 /64"))
        intents = Intents(books, _recorded)
        intents.begin({}, [], adopts=True)
        for each in nodes(300):
            intents.add(each, books.decide(each), again=False)
            intents.mark_unknown(each.name)
        first, again = intents.fitting(40, MOST)
        assert first == 40
        assert 0 < again < MOST_REFUSED
        assert intents.size + 700 * (first + again) <= TEXT_MAX

    def test_sizes_are_exact(self) -> None:
        """Pitfall 27: the size that is counted is that of the text, with entries that come, go and are held."""
        books = cluster(part("ccc/4", "10.0.0.0/12 /24"), part("ccc/6", "fd00::/48 /64"), spec("p", "10.64.0.0/16 /24"))
        intents = Intents(books, _recorded)
        held = intent("n0", "10.64.7.0/24", pool="gone")
        intents.begin({each.name: each for each in nodes(1)}, [held], adopts=True)
        assert intents.size == len(intents.text() or "") > 0
        for each in nodes(50):
            intents.add(each, books.decide(each), again=False)
            assert intents.size == len(intents.text() or "")
        for each in nodes(50):
            intents.drop(each.name)
            assert intents.size == len(intents.text() or "")

    def test_unknown_entries_take_no_room(self) -> None:
        """N4: entries whose outcome is unknown stay recorded, and do not count towards the limit for new ones."""
        books = cluster(spec("p", "10.0.0.0/8 /24"))
        intents = Intents(books, _recorded)
        intents.begin({}, [], adopts=True)
        for each in nodes(MOST):
            intents.add(each, books.decide(each), again=False)
        assert intents.fitting(MOST, 0) == (0, 0)
        for each in nodes(MOST):
            intents.mark_unknown(each.name)
        assert intents.fitting(MOST, 0) == (BATCH, 0)
        assert len(decode(intents.text() or "")) == MOST

    def test_refused_nodes_have_a_share_of_their_own(self) -> None:
        """N4: nodes that were refused and are tried again take no room from others, nor do others from them."""
        books = cluster(spec("p", "10.0.0.0/8 /24"))
        intents = Intents(books, _recorded)
        intents.begin({}, [], adopts=True)
        for each in nodes(MOST_REFUSED):
            intents.add(each, books.decide(each), again=True)
        assert intents.fitting(BATCH - 9, MOST) == (BATCH - 9, 0)
        intents.drop("n0")
        intents.mark_unknown("n1")
        assert intents.fitting(BATCH - 9, MOST) == (BATCH - 9, 2)


async def _recorded() -> bool:
    return True
