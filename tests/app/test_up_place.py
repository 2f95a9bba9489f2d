"""Where `cidrella up` keeps its files."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from cidrella.app.up_place import KUBECONFIG, PlaceError, default_directory, occupied, running_kubeconfig, write_private

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_read_what_is_there(tmp_path: Path) -> None:
    """Keys and tokens are for one user alone, whatever the umask is."""
    before = os.umask(0)
    try:
        with occupied(str(tmp_path / "data")) as place:
            place.write("tls.key", b"secret")
            assert (mode(place.directory), mode(place.directory / "tls.key")) == (0o700, 0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "data" / "tls.key").read_bytes() == b"secret"


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    """Whoever reads while it is written finds the old one or the new one, and nothing else is left behind."""
    path = tmp_path / "file"
    write_private(path, b"old")
    reader = path.open("rb")
    write_private(path, b"new")
    with reader:
        assert (reader.read(), path.read_bytes()) == (b"old", b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """A file that cannot be written is one line that names it."""
    (tmp_path / "file").mkdir()
    with pytest.raises(PlaceError, match=r"file cannot be written: Is a directory"):
        write_private(tmp_path / "file", b"")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_two_in_one_directory(tmp_path: Path) -> None:
    """The second one is told who is there, and what to do."""
    with occupied(str(tmp_path)):
        expected = rf"another cidrella up runs in {tmp_path} \(process {os.getpid()}\); stop it, or choose another"
        with pytest.raises(PlaceError, match=expected), occupied(str(tmp_path)):
            pass
    with occupied(str(tmp_path)) as place:
        assert place.lasting


def test_one_that_was_killed_leaves_no_lock(tmp_path: Path) -> None:
    """The lock goes with the process, also where that had no time to say so."""
    code = (
        f"import os; from cidrella.app.up_place import occupied; occupied({str(tmp_path)!r}).__enter__(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 9
    with occupied(str(tmp_path)):
        pass


class TestWithoutADataDir:
    """The kubeconfig is at a fixed place while it runs, and nothing stays."""

    def test_the_place(self, tmp_path: Path) -> None:
        """In the user's state, which has a variable of its own; a path that is not absolute counts for nothing."""
        home = tmp_path / "home"
        assert default_directory({"HOME": str(home)}) == home / ".local/state/cidrella/up"
        assert default_directory({"HOME": str(home), "XDG_STATE_HOME": "here"}) == home / ".local/state/cidrella/up"
        assert default_directory({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "cidrella/up"
        with pytest.raises(PlaceError, match="choose a --data-dir"):
            default_directory({})

    def test_the_kubeconfig_goes_at_the_end(self, tmp_path: Path) -> None:
        """Also where it ended by an error."""
        kubeconfig = default_directory({"HOME": str(tmp_path)}) / KUBECONFIG

        def fail() -> None:
            with occupied("", {"HOME": str(tmp_path)}) as place:
                place.write(KUBECONFIG, b"here")
                assert (place.lasting, kubeconfig.read_bytes()) == (False, b"here")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert not kubeconfig.exists()

    def test_a_second_one(self, tmp_path: Path) -> None:
        """There is one such place: a second one needs a directory of its own."""
        environ = {"HOME": str(tmp_path)}
        with (
            occupied("", environ),
            pytest.raises(PlaceError, match="give this one a --data-dir"),
            occupied("", environ),
        ):
            pass

    def test_running_kubeconfig(self, tmp_path: Path) -> None:
        """It is there from when one is ready until its end; what a killed one left is removed by the next one."""
        environ = {"HOME": str(tmp_path)}
        assert running_kubeconfig(environ) is None
        assert list(tmp_path.iterdir()) == []
        directory = default_directory(environ)
        with occupied("", environ) as place:
            assert running_kubeconfig(environ) is None
            place.write(KUBECONFIG, b"here")
            assert running_kubeconfig(environ) == directory / KUBECONFIG
        (directory / KUBECONFIG).write_bytes(b"left behind")
        assert running_kubeconfig(environ) is None
        with occupied("", environ):
            assert running_kubeconfig(environ) is None
            assert not (directory / KUBECONFIG).exists()
        assert running_kubeconfig({}) is None

    def test_a_command_that_looks_does_not_keep_it_from_starting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that tries the lock holds it for a moment: it is tried again."""
        environ = {"HOME": str(tmp_path)}
        with occupied("", environ) as place:
            lock = place.directory / "up.lock"
        with lock.open() as looking:
            fcntl.flock(looking, fcntl.LOCK_SH)
            monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
            with occupied("", environ) as place:
                assert place.directory == lock.parent


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    """Where a file is in the way, that is one line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PlaceError, match="Not a directory; choose another --data-dir"), occupied(f"{tmp_path}/file/x"):
        pass


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    """A file that is missing is as one with nothing in it; one that cannot be read is not."""
    with occupied(str(tmp_path)) as place:
        assert place.read("tls.key") == b""
        (tmp_path / "tls.key").mkdir()
        with pytest.raises(PlaceError, match="cannot be read"):
            place.read("tls.key")
        place.remove("no such file")
