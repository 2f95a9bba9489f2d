"""The commands that run for long, from their arguments to their exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from cidrella.app.sources import HelpWanted, SettingError, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cidrella.app.sources import Given, S

WRONG_SETTINGS = 2


def start_run(arguments: Sequence[str]) -> None:
    """Run the controller until it is told to stop, and exit; return only where it is the help that is wanted."""
    from cidrella.app.settings import Settings  # noqa: PLC0415

    def run(given: Given[Settings]) -> int:
        from cidrella.app.running import run_controller  # noqa: PLC0415 - heavy, and of no use to wrong settings

        return run_controller(given.settings, given.warnings)

    _start(Settings, arguments, run)


def start_webhook(arguments: Sequence[str]) -> None:
    """Run the webhook until it is told to stop, and exit; return only where it is the help that is wanted."""
    from cidrella.app.webhook_settings import WebhookSettings  # noqa: PLC0415

    def run(given: Given[WebhookSettings]) -> int:
        from cidrella.app.webhooking import run_webhook  # noqa: PLC0415 - heavy, and of no use to wrong settings

        return run_webhook(given.settings, given.warnings)

    _start(WebhookSettings, arguments, run)


STARTS = {"run": start_run, "webhook": start_webhook}
"""By the command's name."""


def _start(kind: type[S], arguments: Sequence[str], run: Callable[[Given[S]], int]) -> None:
    try:
        given = read_settings(kind, arguments, os.environ)
    except HelpWanted:
        return
    except SettingError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(WRONG_SETTINGS)
    sys.exit(run(given))
