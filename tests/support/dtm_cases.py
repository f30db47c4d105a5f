"""The cases of kernel-modules/tests/dtm, run in one boot of a guest."""

import json
import sys
from pathlib import Path

from in_guest import run_in_guest

from twoway.guest.build import Guest
from twoway.paths import ROOT

CASES = ROOT / "kernel-modules/tests"
sys.path.insert(0, str(CASES))

from dtm_in_guest import all_cases  # noqa: E402 - of another folder


def case_names() -> list[str]:
    """Every case, as results are called."""
    return list(all_cases())


def run_dtm_cases(guest: Guest, folder: Path, only: str = "") -> dict[str, dict[str, str]]:
    """Boot a guest and run all cases in it.

    Args:
        guest: what to boot; its programs include sch_dtm.ko, q_dtm.so and dtm-events.
        folder: a new folder for what the run leaves behind.
        only: how the names of the cases begin, such as "traffic"; all if empty.

    Returns: by case {} if it holds, else {"failed": why} or {"skipped": what is missing}.
    Raises: RunError if the guest itself fails.
    """
    run_in_guest(guest, folder, CASES / "dtm_in_guest.py", f"only={only}")
    results: dict[str, dict[str, str]] = json.loads((folder / "results.json").read_text())
    return results
