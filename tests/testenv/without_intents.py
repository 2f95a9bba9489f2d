"""`python -m tests.testenv.without_intents run FLAGS`: `cidrella run FLAGS` that records no write before it sends it.

For tests and measurements of what the record in the Lease prevents and costs: two nodes may get one block.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from cidrella.app.running import run_controller
from cidrella.app.settings import Settings
from cidrella.app.sources import read_settings

WITHOUT_INTENTS: Final = "tests.testenv.without_intents"
"""This module, where the name of a program is wanted."""


def main() -> None:
    """Run the controller until it is told to stop, and exit."""
    if sys.argv[1:2] != ["run"]:
        sys.exit(f"usage: python -m {WITHOUT_INTENTS} run FLAGS")
    given = read_settings(Settings, sys.argv[2:], os.environ)
    warning = "writes are not recorded: two nodes may get one block"
    sys.exit(run_controller(given.settings, (*given.warnings, warning), records=False))


if __name__ == "__main__":
    main()
