"""`python -m tests.testenv up`: an API server to try things on, until it is stopped."""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tests.testenv.cluster import Cluster


def main() -> None:
    """Start, say so, and wait for the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.testenv", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="run etcd and kube-apiserver until stopped")
    up.add_argument("--kubeconfig", type=Path, required=True, help="where to write the administrator's kubeconfig")
    up.add_argument("--port", type=int, default=0, help="the API server's port; a free one if not given")
    up.add_argument("--apply", type=Path, action="append", default=[], metavar="FILE", help="apply this when ready")
    options = parser.parse_args()
    # SIGTERM ends as Ctrl-C does, so that everything is cleaned up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run(options.kubeconfig, options.port, options.apply)
    except KeyboardInterrupt:
        sys.exit(0)


def run(kubeconfig: Path, port: int, files: list[Path]) -> None:
    """Until a signal comes."""
    with Cluster.temporary(port) as cluster:
        shutil.copy(cluster.kubeconfig, kubeconfig)
        for file in files:
            command = [str(part) for part in (cluster.kubectl_path, "--kubeconfig", kubeconfig, "apply", "-f", file)]
            if subprocess.run(command, check=False).returncode:
                sys.exit(f"{file} could not be applied")
        print(f"{cluster.server}  kubeconfig: {kubeconfig}")  # noqa: T201 - a command's output
        print("ready", flush=True)  # noqa: T201 - a command's output
        signal.pause()


if __name__ == "__main__":
    main()
