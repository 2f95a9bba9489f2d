"""Logs: one line each, for people or as JSON."""

from __future__ import annotations

import io
import json
import logging
import warnings
from typing import TYPE_CHECKING

import pytest
import structlog

from cidrella.app.logs import set_up_logs

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = structlog.get_logger()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise OSError("broken\npipe")


@pytest.mark.parametrize(
    ("stream", "form", "is_json", "coloured"),
    [
        (io.StringIO(), "auto", True, False),
        (Terminal(), "auto", False, True),
        (io.StringIO(), "text", False, False),
        (Terminal(), "json", True, False),
    ],
)
def test_the_form(stream: io.StringIO, form: str, is_json: bool, coloured: bool) -> None:
    """O4: text on a terminal, where it is coloured, and JSON otherwise, unless one of them is asked for."""
    set_up_logs("info", form, stream)
    _log.info("the watch was cut", path="/api/v1/nodes")
    assert stream.getvalue().startswith("{") is is_json
    assert ("\x1b[" in stream.getvalue()) is coloured
    assert stream.getvalue().count("\n") == 1


def test_json() -> None:
    """O4: a line says when, how bad and what, then the details, with their types."""
    set_up_logs("info", "json", stream := io.StringIO())
    _log.warning("a node waits", node="node-1", tries=3)
    (line,) = lines(stream)
    assert list(line) == ["timestamp", "level", "event", "node", "tries"]
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {"level": "warning", "event": "a node waits", "node": "node-1", "tries": 3}


def test_text() -> None:
    """O4: details that would not be seen where they end are in quotes, and nothing can begin a line or colour it."""
    set_up_logs("info", "text", stream := io.StringIO())
    _log.info("evil \x1b[31m\nname", node="a\nb", plain="a-b", spaced="a b", empty="", equal="a=b", number=3)
    line = stream.getvalue()
    assert line.isascii()
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert line.endswith(
        r'"evil \u001b[31m\nname" node="a\nb" plain=a-b spaced="a b" empty="" equal="a=b" number=3' + "\n"
    )


@pytest.mark.parametrize("form", ["json", "text"])
def test_exceptions(form: str) -> None:
    """O4: an exception is a detail of its line."""
    set_up_logs("info", form, stream := io.StringIO())
    try:
        fail()
    except OSError:
        _log.exception("failed")
    assert stream.getvalue().count("\n") == 1
    assert "OSError: broken" in stream.getvalue()
    assert "exception" in stream.getvalue()


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_levels(level: str, shown: int) -> None:
    """What is below the level is not logged."""
    set_up_logs(level, "json", stream := io.StringIO())
    for each in ("debug", "info", "warning", "error"):
        getattr(_log, each)("said")
    assert len(lines(stream)) == shown


def test_libraries() -> None:
    """O4: what libraries log comes out the same way from WARNING on, once, however often logs are set up."""
    set_up_logs("debug", "json", io.StringIO())
    set_up_logs("debug", "json", stream := io.StringIO())
    logging.getLogger("asyncio").info("not said")
    logging.getLogger("asyncio").warning("%d%% done", 50)
    try:
        fail()
    except OSError:
        logging.getLogger("aiohttp.server").exception("failed")
    first, second = lines(stream)
    assert (first["event"], first["level"], first["logger"]) == ("50% done", "warning", "asyncio")
    assert "OSError: broken" in str(second["exception"])


def test_warnings_of_python() -> None:
    """O4: Python's own warnings do not stand between the lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        set_up_logs("info", "json", stream := io.StringIO())
        warnings.warn("old", stacklevel=1)
        logging.captureWarnings(capture=False)
    assert "UserWarning: old" in str(lines(stream)[0]["event"])


def test_nowhere_to_write_to() -> None:
    """A closed standard error does not stop the one who logs."""
    set_up_logs("info", "json", stream := io.StringIO())
    stream.close()
    _log.info("said to nobody")
    set_up_logs("info", "json", again := io.StringIO())
    _log.info("said to somebody")
    assert [line["event"] for line in lines(again)] == ["said to somebody"]
