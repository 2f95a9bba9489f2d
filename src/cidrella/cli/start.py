"""`cidrella run`, from its arguments to its exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from cidrella.app.sources import HelpWanted, SettingError, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

WRONG_SETTINGS = 2


def start(arguments: Sequence[str]) -> None:
    """Run the controller until it is told to stop, and exit; return only where it is the help that is wanted."""
    try:
        given = read_settings(arguments, os.environ)
    except HelpWanted:
        return
    except SettingError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(WRONG_SETTINGS)
    from cidrella.app.running import run_controller  # noqa: PLC0415 - heavy, and of no use to wrong settings

    sys.exit(run_controller(given.settings, given.warnings))
