"""A process in surroundings like those of a container, without a container engine.

A mount namespace of its own with a root made of tmpfs, in which there are the system's programs and libraries, the
Python that runs the tests, the wheel of this work tree as installed, and the files that the kubelet gives a Pod; all of
it read-only. The process runs under another user id, with no capability and no way to gain one, and on the machine's
own network, as a Pod with `hostNetwork` does.

As root, the user id is really another one. Otherwise a user namespace makes it look so, which Linux allows anybody
unless it was switched off; then this fails and says so.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).parents[2]
SERVICE_ACCOUNT_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# What any Linux program may need. Some of them are links into /usr, where distributions have merged them.
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc", "/proc", "/dev")

# $1: an empty directory, for the new root. Then triples: kind, path outside, path inside. After "--", the command.
_ENTER = """
set -eu
PATH=$PATH:/usr/sbin:/sbin
umask 022
root=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$root"
while [ "$1" != -- ]; do
    mkdir -p "$root$(dirname "$3")"
    if [ "$1" = link ]; then
        cp -d "$2" "$root$3"
    else
        mkdir -p "$root$3"
        mount --rbind "$2" "$root$3"
        if [ "$1" = read-only ]; then mount -o remount,bind,ro "$root$3"; fi
    fi
    shift 3
done
shift
mount -o remount,ro "$root"
exec chroot "$root" "$@"
"""


def install_wheel(directory: Path) -> Path:
    """Build the wheel and install it in a fresh virtual environment; what it depends on is read from the tests' own.

    Returns the directory with its programs. Works without a network; `make package` installs the dependencies, too.
    """
    wheels, home = directory / "wheel", directory / "venv"
    python = [sys.executable, "-m"]
    _run([*python, "hatchling", "build", "-t", "wheel", "-d", str(wheels)])
    (wheel,) = wheels.glob("*.whl")
    _run([*python, "venv", "--without-pip", str(home)])
    pip = [*python, "pip", "--python", str(home / "bin" / "python"), "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)])
    # This brings the packages there, and not the editable installation of the work tree, which is a .pth file itself.
    (found,) = home.glob("lib/*/site-packages")
    (found / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return home / "bin"


def contained(
    command: Sequence[str],
    *,
    root: Path,
    paths: Sequence[Path],
    account: Path,
    user: int,
    environment: Mapping[str, str],
) -> list[str]:
    """The command that runs another one in such surroundings.

    `root` is an empty directory. `paths` are there beside the system, under the same names. `account` has the files of
    the ServiceAccount. The environment is exactly the one given.
    """
    mounts = [word for path in _SYSTEM if Path(path).exists() for word in _mount(Path(path))]
    for path in (Path(sys.base_prefix), Path(sysconfig.get_path("purelib")), *paths):
        if not path.is_relative_to("/usr"):
            mounts += ["read-only", str(path), str(path)]
    mounts += ["read-only", str(account), str(SERVICE_ACCOUNT_FILES)]
    variables = [f"{name}={value}" for name, value in environment.items()]
    return [
        *_namespaces(user),
        *("sh", "-c", _ENTER, "sh", str(root), *mounts, "--"),
        *("setpriv", *_other_user(user), "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"),
        *("--no-new-privs", "--pdeathsig=KILL"),
        *("env", "-i", *variables, *command),
    ]


def _mount(path: Path) -> list[str]:
    if path.is_symlink():
        return ["link", str(path), str(path)]
    # The kernel's own file systems; what is in there is not on the root file system, in a container either.
    kind = "as-it-is" if path.name in {"proc", "dev"} else "read-only"
    return [kind, str(path), str(path)]


def _namespaces(user: int) -> list[str]:
    if os.getuid() == 0:
        return ["unshare", "--mount"]
    return ["unshare", "--user", f"--map-user={user}", f"--map-group={user}", "--mount", "--keep-caps"]


def _other_user(user: int) -> list[str]:
    """In a user namespace it is that user already, and may not change its groups."""
    return [f"--reuid={user}", f"--regid={user}", "--clear-groups"] if os.getuid() == 0 else []


def _run(command: Sequence[str]) -> None:
    # The files have to be readable for the other user, whatever the habit of this one.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, umask=0o022)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
