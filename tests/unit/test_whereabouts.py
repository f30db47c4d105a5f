"""The lines that `make test` prints while it runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import ROOT

TESTS = """
from time import sleep
import pytest
@pytest.mark.parametrize("number", [1, 2])
def test_sleeps(number):
    sleep(2)
def test_fails():
    assert False, "as expected"
"""
CONFTEST = """
from support import whereabouts
from support.whereabouts import pytest_configure
whereabouts.EVERY_S = 0.2
"""


@pytest.mark.slow
def test_lines_say_where_tests_are(tmp_path: Path) -> None:
    """With several processes lines count the tests and name those that run, and each failure."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    before, _, after = done.stdout.partition("= FAILURES =")
    lines = before.splitlines()
    assert any(re.fullmatch(r"0:\d\d  \d of 3.*test_it.py::test_sleeps.*", line) for line in lines)
    assert "FAILED test_it.py::test_fails" in lines
    assert "FAILED test_it.py::test_fails - AssertionError: as expected" in after
    assert not re.search(r"^[.F]+(?: |$)", before, re.MULTILINE)
