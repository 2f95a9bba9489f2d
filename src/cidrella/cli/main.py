"""The command `cidrella`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command and exit. What is wrong with the input ends in exit code 2 and never in a traceback.

    What runs for months and on every control plane goes its own way, without what only people at a terminal need,
    tables and colours and help.
    """
    if sys.argv[1:2] in (["run"], ["webhook"]):
        from cidrella.cli.start import STARTS  # noqa: PLC0415

        STARTS[sys.argv[1]](sys.argv[2:])
    from cidrella.cli.program import program  # noqa: PLC0415

    program()
