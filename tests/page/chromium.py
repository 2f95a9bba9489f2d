"""The browser: Debian's where the tests run as root on Debian, else the one that is there, else Playwright's own.

Where it is missing it is installed, and where that fails so do the tests: the page is never left unseen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.testenv.binaries import alone, cache_directory

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_DEBIAN = Path("/etc/debian_version")
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is installed. The headless shell has the engine without the windows, and uses a third of the CPU."""
_INSTALL_SECONDS = 900


def find_chromium() -> str | None:
    """The path of a browser, which is installed if it is missing; None for Playwright's own."""
    return _found() or _installed()


def _installed() -> str | None:
    """Install one, unless another run on this machine just did."""
    with alone(cache_directory() / "chromium.lock"):
        found = _found()
        if found is None and os.geteuid() == 0 and _DEBIAN.exists():
            with suppress(subprocess.CalledProcessError):  # a Debian without the package: then Playwright's own
                _run("apt-get", "update")
                _run("apt-get", "install", "-y", "--no-install-recommends", "chromium-headless-shell")
            found = _found()
        if found is None:
            _run(sys.executable, "-m", "playwright", "install", "chromium")
        return found


def _found() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def _run(*command: str) -> None:
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(command, check=True, timeout=_INSTALL_SECONDS, env=environ)


if __name__ == "__main__":
    sys.stdout.write(f"{find_chromium() or 'the Chromium of Playwright'}\n")
