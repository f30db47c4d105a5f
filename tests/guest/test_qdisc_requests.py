"""Random and malformed requests for each of our qdiscs, in the guest of every run."""

import subprocess
from pathlib import Path

import pytest
from channels import REFUSING
from support.guest.module_trials import check_fuzzed
from support.runs import kept_in_guest

from twoway.guest.cache import Guest
from twoway.paths import KERNEL_MODULES

FUZZ = KERNEL_MODULES / "tests/fuzz"
REQUESTS = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("qdisc", REFUSING)
def test_a_qdisc_answers_any_request(guest: Guest, tmp_path: Path, qdisc: str) -> None:
    """Each of 20 000 requests is accepted or refused with a sentence; each sentence occurs."""
    folder = tmp_path / "run"
    folder.mkdir()
    compile_fuzzer = f"cc -O2 -static -o {folder / 'qdisc_fuzz'} {FUZZ / 'qdisc_fuzz.c'}"
    subprocess.run(compile_fuzzer.split(), check=True)
    arguments = ["/mnt/run/qdisc_fuzz", qdisc, "2", str(REQUESTS)]
    kept_in_guest(guest, folder, FUZZ / "any_guest.py", *arguments, modules=f"sch_{qdisc}")
    check_fuzzed(folder, qdisc, REQUESTS)
