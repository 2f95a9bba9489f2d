"""Which cluster a command works on: one rule for every command that a person types.

1. The kubeconfig or context that is named: --kubeconfig, --context, $KUBECONFIG.
2. Else that of `kube.access`: in a Pod, the cluster of its ServiceAccount; else the current one of ~/.kube/config.
3. Else, where there is no ~/.kube/config, the `cidrella up` that runs without --data-dir.

In 2 and 3 no option names the cluster; `note` does. A running `cidrella up` does not come before ~/.kube/config:
commands and kubectl would then work on different clusters (docs/decisions/which-cluster.md). Servers, `run` and
`webhook`, never fall back on 3, and log the cluster when they start.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from cidrella.app.inventory import ClusterError
from cidrella.app.up_place import running_kubeconfig
from cidrella.kube.access import SERVICE_ACCOUNT, NoKubeconfigError, load_access
from cidrella.kube.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cidrella.kube.access import Access


class ChosenCluster(NamedTuple):
    """A cluster, and the line that names it."""

    access: Access
    note: str
    """Empty where options or $KUBECONFIG name the cluster."""


def choose_cluster(
    kubeconfig: str, context: str, *, environ: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT
) -> ChosenCluster:
    """Choose the cluster for these options. Raises `ClusterError`."""
    named = bool(kubeconfig or context or any(environ.get("KUBECONFIG", "").split(os.pathsep)))
    running = running_kubeconfig(environ)
    try:
        access = load_access(kubeconfig, context, environ=environ, account=account)
    except NoKubeconfigError as error:
        if running is None:
            raise ClusterError(f"{error}, and no cidrella up runs here without --data-dir") from error
        if named:
            raise ClusterError(f"{error}; {_export(running)}") from error
        return _playground(running)
    except ConfigError as error:
        raise ClusterError(str(error) if named or running is None else f"{error}; {_export(running)}") from error
    if named:
        return ChosenCluster(access, "")
    return ChosenCluster(access, _name(access) if running is None else f"{_name(access)}; {_export(running)}")


def _playground(running: Path) -> ChosenCluster:
    try:
        access = load_access(str(running))
    except ConfigError as error:  # it has just ended
        raise ClusterError(str(error)) from error
    return ChosenCluster(access, f"{_name(access)} (cidrella up)")


def _name(access: Access) -> str:
    return f"cluster: {access.context} ({access.server}), from {access.origin}"


def _export(running: Path) -> str:
    """Say how to choose the `cidrella up` that runs."""
    return f"for the running cidrella up: export KUBECONFIG={shlex.quote(str(running))}"
