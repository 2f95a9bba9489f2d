"""The progress of a test run, by file, as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ONE = """
import pytest

def test_good(record_property):
    record_property("nodes", 7)

def test_bad():
    assert 1 == 2, "one is not two"

@pytest.mark.skip(reason="not here")
def test_left_out():
    pass
"""
OTHER = """
import pytest

@pytest.fixture
def broken():
    yield
    raise RuntimeError("broken at the end")

def test_with_it(broken):
    pass
"""
FAILED = r"FAILED \S*test_one.py::test_bad \(call\): AssertionError: one is not two"
BROKEN = r"FAILED \S*test_other.py::test_with_it \(teardown\): RuntimeError: broken at the end"
LINE_ONE = r"\[\d/4\] \S*test_one.py: 1 passed, 1 failed, 1 skipped, \d+\.\d s, nodes: 7"
LINE_OTHER = r"\[\d/4\] \S*test_other.py: 1 passed, 1 failed, \d+\.\d s"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_line_for_each_file(tmp_path: Path, workers: str) -> None:
    """With and without workers: outcomes, seconds and properties of each file; failures at once; no dots."""
    (tmp_path / "test_one.py").write_text(ONE)
    (tmp_path / "test_other.py").write_text(OTHER)
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugins.file_progress", "-n", workers]
    command += ["--rootdir", str(tmp_path), "-c", os.devnull, "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    progress, _, summary = done.stdout.partition("= short test summary info =")
    for line in (FAILED, BROKEN, LINE_ONE, LINE_OTHER):
        assert len(re.findall(f"^{line}$", progress, re.MULTILINE)) == 1, f"{line} in\n{done.stdout}{done.stderr}"
    assert not re.search(r"^[.FEs]+$", progress, re.MULTILINE)
    assert re.search(r"^FAILED .*test_one.py::test_bad", summary, re.MULTILINE)
    assert "1 failed, 2 passed, 1 skipped, 1 error" in summary
    assert done.returncode == 1
