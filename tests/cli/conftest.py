"""What the tests of commands share."""

from __future__ import annotations

import pytest

from tests.cli.run import Cidrella


@pytest.fixture
def cidrella(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cidrella:
    """The command."""
    return Cidrella(monkeypatch, capsys)
