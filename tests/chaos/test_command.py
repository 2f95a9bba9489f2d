"""The command of the chaos harness: what it refuses, and what it says of a history that was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chaos.__main__ import main
from tests.chaos.history import History, Meta

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["run", "--seeds", "0"],
        ["run", "--seeds", "many"],
        ["run", "--seconds", "5"],
        ["run", "--seconds", "long"],
        ["run", "--seed", "one"],
        ["replay"],
        ["walk"],
    ],
)
def test_bad_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """They are refused with a word about what is wrong, and exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A history is checked again: 0 where all held, 1 where not, 2 where there is none."""
    assert main(["replay", str(tmp_path)]) == 2
    assert "no history in" in capsys.readouterr().err
    meta = Meta(seed=7, seconds=60.0, controllers={}, third_party="third-party")
    History(meta, changes=(), gaps=("nobody knows",)).save(tmp_path)
    assert main(["replay", str(tmp_path)]) == 1
    assert "gap at the end: nobody knows" in capsys.readouterr().out
