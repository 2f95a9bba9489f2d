"""`cidrella up`: the whole thing on this machine, with no cluster."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import webbrowser
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import DownloadColumn, MofNCompleteColumn
from rich.text import Text

from cidrella.app.intake import take_inventory
from cidrella.app.inventory import InputError
from cidrella.app.settings import check_pair
from cidrella.app.up_settings import (
    CHURN_NODES,
    DEFAULT_ADDRESS,
    DEFAULT_SERVICE_RANGE,
    NODES_MAX,
    UpSettings,
)
from cidrella.app.values import ADDRESS, Address, BadValueError
from cidrella.cli import shared
from cidrella.model.flags import FlagError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cidrella.app.intake import Manifest
    from cidrella.app.up import Ready
    from cidrella.core.prefix import Prefix

_API = "The API"
_WORTH_A_BAR = 50
"""Objects from which on a progress bar is shown."""
_NEXT = (
    ("cidrella node add node-1", "a node comes, and gets its block"),
    ("cidrella pools", "how full each pool is"),
    ("cidrella explain node-1", "why it got what it got, or waits"),
    ("cidrella map", "the address space as it is"),
    ("kubectl get nodes", "the real one works, too"),
)


def up(
    data_dir: Annotated[
        str,
        typer.Option(
            metavar="DIRECTORY",
            help="Keep everything there, from one run to the next; else it is in memory, and gone at the end.",
            show_default=False,
        ),
    ] = "",
    filename: shared.FileOptions = None,
    recursive: shared.Recursive = False,
    nodes: Annotated[
        int,
        typer.Option(
            min=0, max=NODES_MAX, metavar="N", help="Have so many nodes, and pools for them if there are none."
        ),
    ] = 0,
    churn: Annotated[
        bool, typer.Option("--churn", help=f"Let nodes come and go, about --nodes of them, else {CHURN_NODES}.")
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page in a browser.")] = False,
    controller: Annotated[
        bool,
        typer.Option(
            "--controller/--no-controller",
            help="Give nodes their blocks, and show the page; else that, and the kinds of pools, is yours.",
        ),
    ] = True,
    bind_address: Annotated[
        str,
        typer.Option(
            metavar=ADDRESS.placeholder,
            help=f"Where the API is; else {DEFAULT_ADDRESS}, or another port where that is taken. Whoever can reach it "
            "from elsewhere needs a token, which is made.",
            show_default=False,
            rich_help_panel=_API,
        ),
    ] = "",
    service_cluster_ip_range: Annotated[
        str,
        typer.Option(
            metavar="CIDR[,CIDR]",
            help="What Services get their addresses from: one range, or one of each family.",
            rich_help_panel=_API,
        ),
    ] = DEFAULT_SERVICE_RANGE,
    token_auth_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Ask for a token: one of those in the file, as lines of token,user,uid. One is made if there is no "
            "such file.",
            show_default=False,
            rich_help_panel=_API,
        ),
    ] = "",
    tls_cert_file: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="The certificate to show, in PEM; else one is made.",
            show_default=False,
            rich_help_panel=_API,
        ),
    ] = "",
    tls_private_key_file: Annotated[
        str,
        typer.Option(metavar="FILE", help="The key of --tls-cert-file.", show_default=False, rich_help_panel=_API),
    ] = "",
    audit_log: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Write a line of JSON for every request, as kube-apiserver does.",
            show_default=False,
            rich_help_panel=_API,
        ),
    ] = "",
    log_level: Annotated[
        str, typer.Option(metavar="debug|info|warning|error", help="The least that is logged.")
    ] = "warning",
) -> None:
    """Run everything on this machine: a Kubernetes API for the kinds in use, the controller, Services' addresses.

    For trying, developing and testing. It ends with Ctrl-C.

    In production, the API is Kubernetes itself, and the command is cidrella run.

    Exit code 0: stopped by SIGTERM or SIGINT. 1: it failed. 2: what it was told is wrong.
    """
    if log_level not in _LEVELS:
        raise typer.BadParameter(f"--log-level: {log_level!r} is not known; choose {' or '.join(_LEVELS)}")
    try:
        check_pair(tls_cert_file, tls_private_key_file)
    except FlagError as error:
        raise typer.BadParameter(str(error)) from error
    if recursive and not filename:
        raise typer.BadParameter("-R looks into directories; name one with -f")
    settings = UpSettings(
        data_dir=data_dir,
        manifests=_read(filename or [], recursive=recursive),
        nodes=nodes,
        churn=churn,
        controller=controller,
        service_ranges=_service_ranges(service_cluster_ip_range),
        bind_address=_address(bind_address),
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        token_auth_file=token_auth_file,
        audit_log=audit_log,
        log_level=log_level,
    )
    sys.exit(_run(settings, browser=not no_browser))


_LEVELS = ("debug", "info", "warning", "error")


def _run(settings: UpSettings, *, browser: bool) -> int:
    from cidrella.app.up import UpError, run_up  # noqa: PLC0415 - heavy, and of no use to wrong settings

    try:
        return run_up(settings, _Teller(browser=browser))
    except UpError as error:
        typer.echo(f"error: {error}", err=True)
    except InputError as error:
        shared.show_faults(error.faults, "the API stays down")
    return shared.WRONG_INPUT


def _read(files: list[str], *, recursive: bool) -> tuple[Manifest, ...]:
    found: list[Manifest] = []
    if files:
        with shared.reading(DownloadColumn(), shared.WORTH_A_BAR) as progress:
            take_inventory(
                files, recursive=recursive, strict=True, progress=progress, each_object=found.append
            ).require_sound()
    return tuple(found)


def _service_ranges(text: str) -> tuple[Prefix, ...]:
    ranges = tuple(shared.parse_service_ranges(text))
    if not ranges:
        raise typer.BadParameter("--service-cluster-ip-range: give one range, or one of each family")
    return ranges


def _address(text: str) -> Address | None:
    try:
        return ADDRESS.parse(text) if text else None
    except BadValueError as error:
        raise typer.BadParameter(f"--bind-address: {text!r} {error}") from error


class _Teller:
    """Tells people how it goes: progress on standard error, what to do next on standard output."""

    def __init__(self, *, browser: bool) -> None:
        self._browser = browser

    def progress(self, doing: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """A bar, where it is worth one."""
        return shared.bar(doing, MofNCompleteColumn(), _WORTH_A_BAR)

    def ready(self, ready: Ready) -> None:
        """What to type next: in colours on a terminal."""
        console = Console(highlight=False, soft_wrap=True)
        console.print(Text.assemble(("Cidrella is up", "bold green"), f" at {ready.url}"))
        if ready.asks_for_token:
            console.print("It asks for a token: the one in the kubeconfig, which only you can read.")
        if ready.page:
            console.print(Text.assemble("The page: ", (ready.page, "cyan underline")))
        console.print("\nIn another terminal:\n")
        for variable, value in _exports(ready):
            console.print(Text(f"  export {variable}={value}", "cyan"))
        width = max(len(command) for command, _ in _NEXT)
        for command, what in _NEXT:
            console.print(Text.assemble("  ", (f"{command:<{width}}", "cyan"), (f"  # {what}", "dim")))
        console.print("\nCtrl-C ends it.")
        console.file.flush()
        if ready.page and self._browser and sys.stdout.isatty() and _has_display():
            # In a thread, for it may take its time, which is not to be waited for at the end either.
            Thread(target=webbrowser.open, args=(ready.page,), daemon=True).start()


def _has_display() -> bool:
    """Whether a browser would have a window: without one, some take the terminal."""
    return sys.platform in {"darwin", "win32"} or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))


def _exports(ready: Ready) -> Iterator[tuple[str, str]]:
    """What a shell needs so that the commands below do what they say."""
    yield "KUBECONFIG", shlex.quote(str(ready.kubeconfig))
    own = Path(sys.executable).with_name("cidrella")
    if own.exists() and shutil.which(own.name) != str(own):
        yield "PATH", f"{shlex.quote(str(own.parent))}:$PATH"
