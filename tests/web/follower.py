"""Who follows the stream and keeps a state by it, in the plainest way that docs/page-api.md allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cidrella.web.board import LAST
from cidrella.web.history import ForgottenError

if TYPE_CHECKING:
    from cidrella.web.board import Board

KEYS = {"pools": "name", "nodes": "name", "services": "address"}


def changes(board: Board, since: int) -> list[dict[str, Any]]:
    """What those who follow are told. Raises `ForgottenError`."""
    told = []
    for frame in board.history.after(since):
        head, _, data = frame.partition(b"data: ")
        assert head.startswith(b"event: change\nid: ")
        assert data.endswith(b"\n\n")
        assert b"\n" not in data[:-2]
        told.append(json.loads(data))
        assert int(head.split()[-1]) == told[-1]["version"]
    return told


def timeless(state: dict[str, Any]) -> dict[str, Any]:
    """All but when it was taken, which is later than the last change where nothing changed since."""
    return {key: value for key, value in state.items() if key != "taken"}


class Copy:
    """A state, kept by changes."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def apply(self, change: dict[str, Any]) -> None:
        """Take in the next one."""
        assert change["version"] == self.state["version"] + 1
        for key, value in change.items():
            if key in KEYS:
                rows = {each[KEYS[key]]: each for each in self.state[key]}
                rows |= {each[KEYS[key]]: each for each in value.get("set", ())}
                self.state[key] = [row for name, row in rows.items() if name not in value.get("gone", ())]
            elif key == "events":
                known = {each["id"]: each for each in self.state[key]}
                for event in value:
                    known.pop(event["id"], None)
                    known[event["id"]] = event
                self.state[key] = list(known.values())[-LAST:]
            elif key == "allocations":
                self.state[key] = [*self.state[key], *value][-LAST:]
            else:
                self.state[key] = value


class Follower(Copy):
    """One who loaded everything of a board once, and looks now and then."""

    def __init__(self, board: Board) -> None:
        super().__init__(json.loads(board.state()))
        self._board = board
        self.reloads = 0

    def catch_up(self) -> dict[str, Any]:
        """Take in what came since, or load everything anew where that is not known any more."""
        try:
            told = changes(self._board, self.state["version"])
        except ForgottenError:
            self.state = json.loads(self._board.state())
            self.reloads += 1
        else:
            for change in told:
                self.apply(change)
        return self.state
