"""What holds of all that is installed: its Pods have nothing they do not need, and what the pages offer applies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.real.rbac import DEPLOY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import Kubectl
    from tests.testenv.client import Json


def assert_applies(kubectl: Kubectl, directory: Path) -> None:
    """The API server takes a kustomization as it is."""
    tried = kubectl("apply", "-k", directory, "--dry-run=server")
    assert (tried.returncode, tried.stderr) == (0, "")


def assert_documented_applies(kubectl: Kubectl, text: str, directory: Path) -> None:
    """So it does one from a page, which is written to an empty directory."""
    (directory / "kustomization.yaml").write_text(text.replace("PATH/TO/deploy", os.path.relpath(DEPLOY, directory)))
    assert_applies(kubectl, directory)


def assert_confined(pod: Json) -> None:
    """Not as root, on a root file system that cannot be written, with no capability."""
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not pod.get("volumes")
