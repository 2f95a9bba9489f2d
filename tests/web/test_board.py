"""Everything as it stands, and what changed of late."""

from __future__ import annotations

import asyncio
import json
import random

import msgspec
import pytest

from cidrella.web import api
from cidrella.web.board import LAST, LINGER, Board, News
from cidrella.web.history import ForgottenError
from tests.web.follower import Follower, changes, timeless
from tests.web.samples import EXAMPLE, everything, filled, node


def looked_at(board: Board) -> bool:
    return board.looked_at


def test_what_is_posted_is_to_be_seen() -> None:
    """The example, field by field."""
    state = msgspec.json.decode(filled().state(), type=api.State)
    assert msgspec.structs.replace(state, version=0, taken="") == msgspec.structs.replace(EXAMPLE, version=0, taken="")


def test_what_is_known_already_is_no_change() -> None:
    """Posting the same again makes no version: nobody is woken for nothing."""
    board = filled()
    version = board.history.version
    known = everything()
    known.allocations = ()
    board.post(known)
    board.post(News())
    assert board.history.version == version


def test_a_change_says_what_changed_and_no_more() -> None:
    """Rows that are new, changed or gone; everything else is left out."""
    board = filled()
    version = board.history.version
    board.post(News(nodes=[node("node-0"), EXAMPLE.nodes[1], node("new")], nodes_gone=["node-2", "nobody"]))
    (change,) = changes(board, version)
    assert change.keys() == {"version", "taken", "nodes"}
    assert [each["name"] for each in change["nodes"]["set"]] == ["node-0", "new"]
    assert change["nodes"]["gone"] == ["node-2"]
    names = [each["name"] for each in json.loads(board.state())["nodes"]]
    assert "new" in names
    assert "node-2" not in names


def test_following_leads_to_what_is_there() -> None:
    """Applied one after the other, changes make the state that one would get by asking."""
    board = filled()
    follower = Follower(board)
    board.post(News(pools_gone=["tiny"], ranges=EXAMPLE.ranges[:1], services_gone=["10.96.0.1"]))
    board.post(News(service_ranges=[], cluster=msgspec.structs.replace(EXAMPLE.cluster, leading=False)))
    after = json.loads(board.state())
    assert timeless(follower.catch_up()) == timeless(after)
    assert follower.reloads == 0
    assert after["families"] == ["IPv4"]
    assert (after["serviceRanges"], after["cluster"]["leading"]) == ([], False)


def test_events_and_allocations_are_the_last_ones() -> None:
    """An event told again is the newest, and only then; old ones go."""
    board = Board(EXAMPLE.cluster)
    first = EXAMPLE.events[0]
    board.post(News(events=[first, EXAMPLE.events[1]]))
    version = board.history.version
    again = msgspec.structs.replace(first, count=9)
    board.post(News(events=[again, EXAMPLE.events[1]]))
    assert [each["count"] for each in changes(board, version)[0]["events"]] == [9]
    assert [each["id"] for each in json.loads(board.state())["events"]] == [EXAMPLE.events[1].id, first.id]
    many = [msgspec.structs.replace(first, id=str(number)) for number in range(LAST + 10)]
    board.post(News(events=many, allocations=EXAMPLE.allocations * LAST))
    state = json.loads(board.state())
    assert [each["id"] for each in state["events"]] == [str(number) for number in range(10, LAST + 10)]
    assert len(state["allocations"]) == LAST


def test_no_process_takes_the_versions_of_another_for_its_own() -> None:
    """Replicas begin together, and who follows may come back to another one: it has to load everything anew."""
    boards = [Board(EXAMPLE.cluster, clock=lambda: 1000.0) for _ in range(10)]
    for _ in range(500):
        for board in boards:
            board.post(News(allocations=EXAMPLE.allocations))
    versions = {board.history.version for board in boards}
    assert len(versions) == len(boards)
    assert all(0 <= version < 2**53 for version in versions)
    for board in boards:
        for version in versions - {board.history.version}:
            with pytest.raises(ForgottenError):
                board.history.after(version)


@pytest.mark.parametrize("seed", range(5))
def test_a_walk(seed: int) -> None:
    """Whatever is posted, and whoever looks how often: what followers have is what one gets by asking."""
    rng = random.Random(seed)
    board = filled()
    followers = [Follower(board) for _ in range(4)]
    for step in range(400):
        names = [f"node-{number}" for number in rng.sample(range(30), 6)]
        pools = rng.sample(EXAMPLE.pools, 2)
        services = rng.sample(EXAMPLE.services, 2)
        events = [msgspec.structs.replace(each, count=rng.randrange(3)) for each in rng.sample(EXAMPLE.events, 2)]
        events += [msgspec.structs.replace(EXAMPLE.events[0], id=str(rng.randrange(LAST + 20))) for _ in range(20)]
        board.post(
            News(
                nodes=[node(name, reason=rng.choice(["", "full"])) for name in names[:3]],
                nodes_gone=names[3:],
                pools=[msgspec.structs.replace(pools[0], nodes=rng.randrange(3))],
                pools_gone=[pools[1].name],
                services=services[:1],
                services_gone=[services[1].address],
                ranges=rng.choice([None, [], EXAMPLE.ranges, EXAMPLE.ranges[:1]]),
                service_ranges=rng.choice([None, [], EXAMPLE.service_ranges]),
                cluster=msgspec.structs.replace(EXAMPLE.cluster, leading=rng.random() < 0.5),
                events=events,
                allocations=EXAMPLE.allocations[: rng.randrange(3)],
            )
        )
        if step % 150 == 149:
            board.clear()
            board.post(everything())
        for follower in followers:
            if rng.random() < 0.2:
                assert timeless(follower.catch_up()) == timeless(json.loads(board.state()))
    assert all(follower.reloads >= 1 for follower in followers)


def test_it_is_kept_up_while_somebody_looks() -> None:
    """Who asked keeps it up for a while, who stays keeps it up until they go, and then for a while."""
    now = [0.0]

    async def scenario() -> None:
        board = Board(EXAMPLE.cluster, clock=lambda: now[0])
        waiting = asyncio.ensure_future(board.wait_looked_at())
        await asyncio.sleep(0)
        assert not waiting.done()
        board.look()
        await asyncio.wait_for(waiting, 60)
        now[0] = LINGER - 1
        assert looked_at(board)
        board.came()
        now[0] = 10 * LINGER
        assert looked_at(board)
        board.went()
        now[0] += LINGER - 1
        assert looked_at(board)
        now[0] += 2
        assert not looked_at(board)

    asyncio.run(scenario())


def test_clearing() -> None:
    """Nothing is left, and who followed has to load everything anew."""
    board = filled()
    version = board.history.version
    board.clear()
    assert not board.filled.is_set()
    assert json.loads(board.state())["nodes"] == []
    assert board.history.version > version
    board.post(everything())
    assert board.filled.is_set()
    assert [each.name for each in EXAMPLE.nodes] == board.node_names


def test_the_same_version_is_encoded_once() -> None:
    """A hundred viewers cost as much as one."""
    board = filled()
    for document in (board.state, board.pools, board.nodes, board.services):
        assert document() is document()
        before = document()
        board.post(News(nodes_gone=[json.loads(board.nodes())["nodes"][0]["name"]]))
        assert document() != before


def test_when_it_was_taken() -> None:
    """It is true as of the last look at it, also where that changed nothing."""
    now = [0.0]
    board = Board(EXAMPLE.cluster, clock=lambda: now[0])
    for seconds in (0.0, 60.0):
        now[0] = seconds
        board.post(News())
        assert json.loads(board.state())["taken"] == f"1970-01-01T00:{seconds // 60:02.0f}:00Z"
    now[0] = 120.0
    assert json.loads(board.state())["taken"] == "1970-01-01T00:01:00Z"


def test_who_waits_is_served_by_whatever_is_posted_next() -> None:
    """Also where what was to be shown went wrong in between, and it began anew."""

    async def scenario() -> None:
        board = Board(EXAMPLE.cluster)
        waiting = asyncio.ensure_future(board.filled.wait())
        await asyncio.sleep(0)
        board.clear()
        board.post(everything())
        await asyncio.wait_for(waiting, 60)

    asyncio.run(scenario())
