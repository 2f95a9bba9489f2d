"""What the tests of commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.run import Cidrella, Result

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.service_objects import OfFiles


@pytest.fixture
def cidrella(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cidrella:
    """The command."""
    return Cidrella(monkeypatch, capsys)


@pytest.fixture
def of(cidrella: Cidrella, tmp_path: Path) -> OfFiles:
    """`cidrella services` on a file with the objects given."""
    path = tmp_path / "objects.yaml"

    def run(objects: list[dict[str, Any]], *arguments: str) -> Result:
        path.write_text(yaml.safe_dump_all(objects))
        return cidrella("services", "-f", path, *arguments)

    return run
