"""Everything as it stands, and what changed of late."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec

from cidrella.web import api
from cidrella.web.board import LAST, LINGER, Board, News
from tests.web.samples import EXAMPLE, everything, filled, node


def changes(board: Board, since: int) -> list[dict[str, Any]]:
    """What those who follow are told."""
    told = []
    for frame in board.history.after(since):
        head, _, data = frame.partition(b"data: ")
        assert head.startswith(b"event: change\nid: ")
        assert data.endswith(b"\n\n")
        assert b"\n" not in data[:-2]
        told.append(json.loads(data))
        assert int(head.split()[-1]) == told[-1]["version"]
    return told


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
    before = json.loads(board.state())
    board.post(News(pools_gone=["tiny"], ranges=EXAMPLE.ranges[:1], services_gone=["10.96.0.1"]))
    board.post(News(service_ranges=[], cluster=msgspec.structs.replace(EXAMPLE.cluster, leading=False)))
    after = json.loads(board.state())
    for change in changes(board, before["version"]):
        for key, value in change.items():
            if key in {"pools", "nodes", "services"}:
                name = "address" if key == "services" else "name"
                rows = {each[name]: each for each in before[key]} | {each[name]: each for each in value.get("set", ())}
                before[key] = [each for each in rows.values() if each[name] not in value.get("gone", ())]
            else:
                before[key] = value
    assert before == after
    assert after["families"] == ["IPv4"]
    assert (after["serviceRanges"], after["cluster"]["leading"]) == ([], False)


def test_events_and_allocations_are_the_last_ones() -> None:
    """An event told again takes the place of what it was; old ones go."""
    board = Board(EXAMPLE.cluster)
    first = EXAMPLE.events[0]
    board.post(News(events=[first, EXAMPLE.events[1]]))
    version = board.history.version
    again = msgspec.structs.replace(first, count=9)
    board.post(News(events=[again, EXAMPLE.events[1]]))
    assert [each["count"] for each in changes(board, version)[0]["events"]] == [9]
    assert [each["id"] for each in json.loads(board.state())["events"]] == [first.id, EXAMPLE.events[1].id]
    many = [msgspec.structs.replace(first, id=str(number)) for number in range(LAST + 10)]
    board.post(News(events=many, allocations=EXAMPLE.allocations * LAST))
    state = json.loads(board.state())
    assert [each["id"] for each in state["events"]] == [str(number) for number in range(10, LAST + 10)]
    assert len(state["allocations"]) == LAST


def test_versions_of_a_later_process_are_larger() -> None:
    """Who comes back after a restart with the version it had is not taken for one of this process."""
    one, two = Board(EXAMPLE.cluster, clock=lambda: 1000.0), Board(EXAMPLE.cluster, clock=lambda: 1060.0)
    for _ in range(4 * 60):
        one.post(News(allocations=EXAMPLE.allocations))
    assert one.history.version < two.history.version < 2**53


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
    assert board.state() is board.state()
    before = board.state()
    board.post(News(nodes_gone=["node-1"]))
    assert board.state() != before
