"""How many files a process may have open; each connection is one."""

from __future__ import annotations

import sys
from contextlib import suppress

if sys.platform != "win32":  # which has no such bound
    import resource


def open_files_max() -> int:
    """How many there may be."""
    if sys.platform == "win32":
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def allow_most() -> None:
    """Have as many as the process is allowed to allow itself, as programs in Go do."""
    if sys.platform == "win32":
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
