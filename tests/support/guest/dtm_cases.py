"""The cases of kernel-modules/tests for sch_dtm, run in one boot of a guest."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.runs import kept_in_guest
from twoway.guest.cache import Guest, build_lock
from twoway.guest.seals import content_hash
from twoway.guest.source import KernelSource, kernel_source
from twoway.paths import ROOT, cache

CASES = ROOT / "kernel-modules/tests"
sys.path[:0] = [str(CASES / "dtm"), str(CASES)]
# Parts of the kernel's source that no build unpacks: tdc, YNL and the schemas of its specs.
TDC = "tools/testing/selftests/tc-testing"
YNL = "tools/net/ynl"
SPECS = "Documentation/netlink"


def kernel_tools() -> Path:
    """Return a folder with TDC, YNL and SPECS of the guest's kernel; unpacked once, in some 20 s.

    Raises: UsageError without a source.
    """
    source = kernel_source()
    folder = cache() / "kernel-tools" / content_hash(source.identity.encode())
    with build_lock("kernel-tools"):
        if not folder.is_dir():
            scratch = folder.with_name(f".unpacking-{folder.name}")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir(parents=True)
            _unpack(source, scratch)
            scratch.rename(folder)
    return folder


def _unpack(source: KernelSource, folder: Path) -> None:
    assert source.path is not None
    if source.path.is_dir():
        for part in (TDC, YNL, SPECS):
            shutil.copytree(source.path / part, folder / part, symlinks=True)
        return
    top = source.path.name.partition(".tar")[0]
    parts = [f"{top}/{part}" for part in (TDC, YNL, SPECS)]
    options = ["--strip-components=1", "--exclude=*/tc-tests/*"]
    subprocess.run(["tar", "-xf", source.path, *options, "-C", folder, *parts], check=True)


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
