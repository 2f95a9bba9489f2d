"""Where the API server is and who we are to it, found out in the order in which kubectl does.

1. The kubeconfig file that is named, else those in $KUBECONFIG, merged. Files in that list may be missing.
2. In a Pod: the Pod's own account, unless a context is named.
3. ~/.kube/config.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cidrella.kube.credentials import Access, Credentials
from cidrella.kube.errors import ConfigError
from cidrella.kube.incluster import in_cluster_access, in_pod
from cidrella.kube.kubeconfig import kubeconfig_access
from cidrella.kube.kubeconfig_file import Kubeconfig, read_kubeconfigs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Access", "Credentials", "NoKubeconfigError", "load_access"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NoKubeconfigError(ConfigError):
    """No kubeconfig is named by path, none of the files looked for exists, and this is no Pod."""


def load_access(
    kubeconfig: str = "",
    context: str = "",
    *,
    environ: Mapping[str, str] = os.environ,
    account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The way to the API server. Raises ConfigError, which says where it was looked for."""
    if kubeconfig:
        named = Kubeconfig()
        named.add(Path(kubeconfig).absolute())
        return kubeconfig_access(named, context)
    listed = environ.get("KUBECONFIG", "")
    if not listed and not context and in_pod(environ, account):
        return in_cluster_access(environ, account)
    paths = [Path(each).absolute() for each in listed.split(os.pathsep) if each] or _default(environ)
    config = read_kubeconfigs(paths)
    if not config.files:
        looked = ", ".join(map(str, paths)) or "no home directory"
        raise NoKubeconfigError(f"no kubeconfig ({looked}), and this is not a Pod with a ServiceAccount")
    return kubeconfig_access(config, context)


def _default(environ: Mapping[str, str]) -> list[Path]:
    home = environ.get("HOME", "")
    return [Path(home, ".kube", "config").absolute()] if home else []
