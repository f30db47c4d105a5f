"""The cases of kernel-modules/tests for sch_dtm, run in one boot of a guest."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.guest.kernel_tools import TDC, YNL, kernel_tools
from support.runs import kept_in_guest
from twoway.guest.cache import Guest
from twoway.paths import ROOT

CASES = ROOT / "kernel-modules/tests"
sys.path[:0] = [str(CASES / "dtm"), str(CASES)]


def run_dtm_cases(guest: Guest, folder: Path, only: str = "") -> dict[str, dict[str, str]]:
    """Boot a guest and run all cases in it.

    Args:
        guest: the guest to boot; its programs include sch_dtm.ko, q_dtm.so and dtm.
        folder: a new folder for the run's files.
        only: prefix of the cases' names, such as "traffic"; all if empty.

    Returns: by case {} if it holds, else {"failed": why} or {"skipped": what is missing}.
    Raises: RunError if the guest itself fails.
    """
    for tool in (TDC, YNL):
        shutil.copytree(kernel_tools() / tool, folder / tool)
    kept_in_guest(guest, folder, CASES / "dtm/dtm_in_guest.py", f"only={only}", modules="sch_*")
    results: dict[str, dict[str, str]] = json.loads((folder / "results.json").read_text())
    return results


def plugin_says(guest: Guest, *words: str) -> list[str]:
    """Return the error of the local tc on dtm's options; for valid ones, "no such device"."""
    done = subprocess.run(
        ["tc", "qdisc", "add", "dev", "no-such", "root", "dtm", *words],
        env={**os.environ, "TC_LIB_DIR": str(guest.programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()
