"""Credential plugins: programs that print a token or a certificate, `client.authentication.k8s.io` v1 and v1beta1.

Theory of operation. The plugin runs, never through a shell, when there is nothing yet, when what it gave is about to
expire, and after the server refused it; whoever asks meanwhile waits for the same run. It may talk to people if there
is a terminal and its `interactiveMode` lets it: then its standard error is theirs as well. Otherwise it is ours, and
its end is shown when the plugin fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from datetime import datetime  # noqa: TC003 -- msgspec reads the annotation
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from cidrella.kube.credentials import Proof
from cidrella.kube.errors import ConfigError, quote
from cidrella.kube.tls import KeyPair
from cidrella.kube.tokens import bearer

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

    from cidrella.kube.kubeconfig_file import Exec

_GROUP: Final = "client.authentication.k8s.io/"
VERSIONS: Final = (f"{_GROUP}v1", f"{_GROUP}v1beta1")
_MODES: Final = ("Never", "IfAvailable", "Always")
_STDIN: Final = 0
TIMEOUT: Final = 60.0
TIMEOUT_WITH_PEOPLE: Final = 600.0
_MARGIN: Final = 60.0
"""Seconds before its expiry that a credential is renewed, or a quarter of its life if that is less."""
_HELD_MIN: Final = 1.0
"""Seconds for which even an expired credential is used: clocks differ, and a plugin is not to run all the time."""
_STDERR_TAIL: Final = 200


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _Status


class ExecPlugin:
    """Whoever a plugin says that we are.

    `command` is the one in `spec`, its path made absolute if it has one; `cluster` is what the plugin is told of the
    server, None for nothing; `terminal` is whether there is somebody to talk to, None to find out. Raises ConfigError
    if the plugin cannot be run here.
    """

    def __init__(
        self,
        spec: Exec,
        command: str,
        cluster: Mapping[str, object] | None,
        *,
        clock: Callable[[], float] = time.time,
        terminal: bool | None = None,
    ) -> None:
        if spec.api_version not in VERSIONS:
            raise ConfigError(
                f"exec plugin {command}: apiVersion {spec.api_version} is not one of {', '.join(VERSIONS)}"
            )
        mode = spec.interactive_mode or "IfAvailable"
        if mode not in _MODES:
            raise ConfigError(f"exec plugin {command}: interactiveMode {mode} is not one of {', '.join(_MODES)}")
        self._interactive = mode != "Never" and (os.isatty(_STDIN) if terminal is None else terminal)
        if mode == "Always" and not self._interactive:
            raise ConfigError(
                f"exec plugin {command}: wants to talk to somebody (interactiveMode), and there is no terminal"
            )
        self._spec = spec
        self._command = command
        self._cluster = cluster
        self._clock = clock
        self._timeout = TIMEOUT_WITH_PEOPLE if self._interactive else TIMEOUT
        self._running = asyncio.Lock()
        self._proof: Proof | None = None
        self._renew_at = 0.0

    async def proof(self) -> Proof:
        """What the plugin gave, or gives now. Raises ConfigError."""
        if self._proof is None or self._clock() >= self._renew_at:
            async with self._running:
                if self._proof is None or self._clock() >= self._renew_at:
                    self._proof = self._read(await self._run())
        return self._proof

    def expire(self) -> None:
        """Run it again."""
        self._renew_at = 0.0

    def _read(self, output: bytes) -> Proof:
        """What is in the output, and note until when it is good."""
        try:
            found = msgspec.json.decode(output, type=_ExecCredential)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._error(f"printed no ExecCredential: {error}") from error
        if found.kind != "ExecCredential" or found.api_version != self._spec.api_version:
            raise self._error(f"printed {found.api_version} {found.kind}, not {self._spec.api_version} ExecCredential")
        status, pair = found.status, None
        if status.client_certificate_data and status.client_key_data:
            pair = KeyPair(status.client_certificate_data.encode(), status.client_key_data.encode())
        if not status.token and pair is None:
            raise self._error("printed neither a token nor a certificate with its key")
        self._renew_at = self._renewal(status.expiration_timestamp)
        return Proof(bearer(status.token, f"exec plugin {self._command}") if status.token else "", pair)

    def _renewal(self, expires: datetime | None) -> float:
        if expires is None:
            return float("inf")
        now = self._clock()
        left = expires.timestamp() - now
        return now + max(_HELD_MIN, left - min(_MARGIN, left / 4))

    async def _run(self) -> bytes:
        """Run the plugin to its end, and return what it printed."""
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *(self._spec.args or ()),
                env=self._environment(),
                stdin=None if self._interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if self._interactive else asyncio.subprocess.PIPE,
                start_new_session=not self._interactive,
            )
        except (OSError, ValueError) as error:
            hint = f"\n{self._spec.install_hint}" if self._spec.install_hint else ""
            raise self._error(f"cannot be run: {getattr(error, 'strerror', None) or error}{hint}") from error
        try:
            async with asyncio.timeout(self._timeout):
                output, errors = await process.communicate()
        except TimeoutError as error:
            raise self._error(f"did not end within {self._timeout:g} s") from error
        finally:
            await self._end(process)
        if process.returncode:
            raise self._error(f"failed with {process.returncode}: {quote((errors or b'')[-_STDERR_TAIL:])}")
        return output

    async def _end(self, process: Process) -> None:
        """Leave nothing behind of a plugin that has not ended: what it started holds its pipes open."""
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                if self._interactive:
                    process.kill()
                else:
                    os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def _environment(self) -> dict[str, str]:
        info: dict[str, object] = {"interactive": self._interactive}
        if self._cluster is not None:
            info["cluster"] = self._cluster
        told = {"kind": "ExecCredential", "apiVersion": self._spec.api_version, "spec": info}
        added = {each.name: each.value for each in self._spec.env or ()}
        return {**os.environ, **added, "KUBERNETES_EXEC_INFO": msgspec.json.encode(told).decode()}

    def _error(self, text: str) -> ConfigError:
        return ConfigError(f"exec plugin {self._command} {text}")
