"""What the tests of commands that run for long have in common: a stand-in, a kubeconfig, and what was logged."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


@contextmanager
def standing_in(monkeypatch: pytest.MonkeyPatch, name: str, *members: type) -> Iterator[None]:
    """Have a module of this name with these in it, the first of which notes in `made` what is made; logs recover."""
    module = ModuleType(name)
    vars(module).update({each.__name__: each for each in members})
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(members[0], "made", [])
    with logs_recovered():
        yield


@contextmanager
def logs_recovered() -> Iterator[None]:
    """Logs go where they went before, when this is over."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level


def write_kubeconfig(directory: Path) -> str:
    """The flag for a cluster that nobody will ask."""
    file = directory / "kubeconfig"
    cluster = {"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "lab", "context": {"cluster": "here", "user": "me"}}
    user = {"name": "me", "user": {"token": "secret-token"}}
    config = {"current-context": "lab", "clusters": [cluster], "contexts": [context], "users": [user]}
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **config}))
    return f"--kubeconfig={file}"


@dataclass
class Ran:
    """How a command ended, and what it logged."""

    code: int
    lines: list[dict[str, Any]]

    @classmethod
    def of(cls, code: int, capfd: pytest.CaptureFixture[str]) -> Ran:
        """Everything that was printed is a line of the log."""
        printed = capfd.readouterr()
        assert printed.out == ""
        return cls(code, [json.loads(line) for line in printed.err.splitlines()])

    def line(self, event: str) -> dict[str, Any]:
        """The one line whose event begins so."""
        (found,) = (line for line in self.lines if line["event"].startswith(event))
        return found
