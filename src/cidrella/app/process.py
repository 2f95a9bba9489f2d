"""What commands that run for long have in common: logs, the way to a cluster, signals, and who answers HTTP.

What is heavy is imported here, when it is wanted: the other commands start without it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import structlog

from cidrella.app.lifetime import FAILED, Lifetime, ToldError
from cidrella.app.logs import set_up_logs
from cidrella.kube.descriptors import allow_most

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from cidrella.app.settings import CommonSettings
    from cidrella.app.values import Address
    from cidrella.kube.access import Access
    from cidrella.kube.election import ElectionSettings
    from cidrella.kube.listening import Listener

    Main: TypeAlias = Callable[[Access, Lifetime], Coroutine[object, object, int]]
    L = TypeVar("L", bound=Listener)

WRONG_INPUT: Final = 2
_M_MMAP_THRESHOLD: Final = -3
"""The parameter of glibc's mallopt(3)."""
_CLOSED: Final = "the handler is closed"
"""What uvloop says of a connection that it has closed itself."""

_log = structlog.get_logger()


def run_process(settings: CommonSettings, warnings: Sequence[str], main: Main, what: str) -> int:
    """Run `main` until a signal says to stop, and return the exit code. `what` it is goes into the log.

    0: stopped as told. 1: failed, or cannot listen. 2: there is no usable way to a cluster; nothing was touched.
    """
    from cidrella.kube.access import load_access  # noqa: PLC0415
    from cidrella.kube.errors import ConfigError  # noqa: PLC0415

    set_up_logs(settings.log_level, settings.log_format)
    for warning in warnings:
        _log.warning(warning)
    try:
        access = load_access(settings.kubeconfig, settings.context)
    except ConfigError as error:
        _log.error("there is no way to a cluster", error=str(error))
        return WRONG_INPUT
    return run_loop(lambda lifetime: main(access, lifetime), what)


def run_loop(main: Callable[[Lifetime], Coroutine[object, object, int]], what: str) -> int:
    """Run `main` on an event loop of its own, and return the exit code: 0 or 1, as it says itself."""
    # A request makes hundreds of short-lived objects, and few cycles among them: Python looks for those far too often.
    gc.set_threshold(5_000, 20, 50)
    return_large_buffers()
    allow_most()
    with Lifetime(what=what) as lifetime, asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.get_loop().set_exception_handler(_tell)
        try:
            return runner.run(main(lifetime))
        except ToldError:
            return FAILED


def return_large_buffers() -> None:
    """Have the C library return each freed buffer of 128 KB or more to the operating system.

    By default glibc raises that limit to the size of the largest buffer that was freed, 32 MB at most: after one large
    reply it keeps memory for buffers of connections that are long closed. Other C libraries have no such call.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 << 10)


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what the event loop has nobody else to tell.

    Where a TLS connection is given up early, as when a process ends that has just begun, uvloop at times closes it and
    then goes on to send, which it calls a fatal error. Nobody misses what it would have sent.
    """
    error = context.get("exception")
    if isinstance(error, RuntimeError) and _CLOSED in str(error) and "transport" in context:
        _log.debug("a connection was closed early", error=str(error))
    else:
        loop.default_exception_handler(context)


@asynccontextmanager
async def listening(listener: L, flag: str, address: Address) -> AsyncIterator[L]:
    """A listener that listens, at the address that a flag says. Raises ToldError where it cannot."""
    from cidrella.kube.listening import CannotListenError  # noqa: PLC0415

    try:
        async with listener:
            yield listener
    except CannotListenError as error:
        _log.error(f"cannot listen; choose another {flag}", address=str(address), error=str(error))
        raise ToldError from error


@asynccontextmanager
async def beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """While this lasts, that is done, too. Should it die, that is raised at the end."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def told_election(election: ElectionSettings | None) -> str:
    """The Lease, as the log has it."""
    return f"{election.namespace}/{election.name}" if election else "off"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The fast event loop where there is one."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return None
    return uvloop.new_event_loop
