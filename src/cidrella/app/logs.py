"""Logs: one line each on standard error, for people on a terminal and as JSON otherwise (O4).

Everything goes the same way: our own events through `structlog`, what libraries say through `logging`, from WARNING on,
and Python's warnings. Much of the text comes from the API, which others write to: nothing in it can begin another line
or colour the terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

import msgspec
import structlog

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from structlog.typing import EventDict, Processor, WrappedLogger

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_COLOURS: Final = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "31;1"}
"""Of the level on a terminal: faint, green, yellow, red, bold red."""


def set_up_logs(level: str = "info", form: str = "auto", stream: TextIO | None = None) -> None:
    """Write all logs of this level and above to the stream, standard error by default. May be called again."""
    stream = stream or sys.stderr
    terminal = stream.isatty()
    text = form == "text" or (form == "auto" and terminal)
    renderer: Processor = _TextRenderer(coloured=terminal) if text else _json
    structlog.configure(
        processors=[structlog.processors.format_exc_info, _in_order, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _Lines(stream),
        cache_logger_on_first_use=False,
    )
    _take_over_stdlib()


def _in_order(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """When, how bad and what come before the details, in JSON as in text."""
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return {"timestamp": now, "level": method, "event": event.pop("event"), **event}


def _json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """What is no JSON is written as its text, which is what its author meant to be seen."""
    return msgspec.json.encode(event, enc_hook=str).decode()


class _Lines:
    """Where lines go. Being unable to write them is no reason to stop serving nodes, and there is nowhere to say it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # closed at the other end, or at ours
            return

    debug = info = warning = error = critical = msg


class _TextRenderer:
    """A line for people: when, how bad, what, and its details."""

    def __init__(self, *, coloured: bool) -> None:
        self._coloured = coloured

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        time, level, what = (str(event.pop(key)) for key in ("timestamp", "level", "event"))
        shown_level = f"{level.upper():<7}"
        if self._coloured:
            shown_level = f"\x1b[{_COLOURS.get(level, '0')}m{shown_level}\x1b[0m"
        details = "".join(f" {key}={_shown(value)}" for key, value in event.items())
        return f"{time} {shown_level} {_printable(what)}{details}"


def _shown(value: object) -> str:
    """A detail, in quotes where it would not be seen where it ends."""
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


class _Handler(logging.Handler):
    """Hands what libraries log over to `structlog`."""

    def emit(self, record: logging.LogRecord) -> None:
        details: MutableMapping[str, Any] = {"logger": record.name}
        if record.exc_info and record.exc_info[1]:
            details["exception"] = "".join(traceback.format_exception(record.exc_info[1])).rstrip()
        level = min(record.levelno, logging.CRITICAL) // 10 * 10  # structlog knows the standard ones alone
        structlog.get_logger().log(level, record.getMessage().strip(), **details)


def _take_over_stdlib() -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(handler)
    root.addHandler(_Handler(logging.WARNING))
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
