"""A process of the test environment: can be killed, paused, resumed and started again, and never outlives us."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PR_SET_PDEATHSIG = 1
_STOP_SECONDS = 30
_LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    """One program with its log file. Starts stopped."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._running: subprocess.Popen[bytes] | None = None

    def with_flags(self, *flags: str) -> Process:
        """The same program with more behind its flags, and the same log. Starts stopped."""
        return Process(self.name, [*self._command, *flags], self.log)

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._running is not None, f"{self.name} is not running"
        return self._running.pid

    @property
    def ended(self) -> int | None:
        """The exit code of a process that ended by itself; None while it runs."""
        return self._running.poll() if self._running is not None else None

    def start(self) -> None:
        """Start it. Its output is added to the log."""
        assert self._running is None, f"{self.name} is running already"
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one call into libc, no locks taken
            )

    def stop(self) -> None:
        """Ask it to end, and insist after a while. No error if it is not running."""
        if self._running is None:
            return
        self._running.send_signal(signal.SIGCONT)
        self._running.terminate()
        try:
            self._running.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()
        self._running = None

    def kill(self) -> None:
        """End it at once, as a crash or a power cut would."""
        assert self._running is not None, f"{self.name} is not running"
        self._running.kill()
        self._running.wait()
        self._running = None

    def pause(self) -> None:
        """Freeze it: connections stay open, and nothing is answered."""
        assert self._running is not None, f"{self.name} is not running"
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        assert self._running is not None, f"{self.name} is not running"
        self._running.send_signal(signal.SIGCONT)

    def tail(self, lines: int = 20) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""


def die_with_parent() -> None:
    """In the child: be killed when the parent is gone, however it went."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
