"""Run tests that need no exact time, as root, on several processors and the machine's clock.

    suite.py TRIAL[;ARGUMENT...] ...

Writes the result of each trial into /mnt/run; a trial that fails ends the program.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "dtm")]

import dtm_in_guest  # noqa: E402 - python -I leaves the folders out
import endurance  # noqa: E402
from claims import RUN, namespace, report, run  # noqa: E402
from dtm_raw import raw_cases  # noqa: E402
from endurance import load, unload  # noqa: E402
from fuzz import any_guest  # noqa: E402
from stress import unload_when_free  # noqa: E402

FUZZERS = 4
LOADS = 10


def cases() -> None:
    """Send all requests of dtm_raw.py; keep their results as dtm_in_guest.py does."""
    load("sch_dtm")
    for interface in "d0", "d1":
        run(f"ip link add {interface} type dummy", f"ip link set {interface} up")
    results = {}
    for name, case in raw_cases().items():
        results[name] = dtm_in_guest.attempt(dtm_in_guest.try_raw, case)
        report()
    (RUN / "results.json").write_text(json.dumps(results, indent=1))
    run("ip link del d0", "ip link del d1")
    unload("sch_dtm")


def fuzz(kind: str, requests: str) -> None:
    """Run several qdisc_fuzz at once, each in its own network namespace; keep their tables."""
    load(f"sch_{kind}")
    running = []
    for seed in range(1, FUZZERS + 1):
        host = f"fuzz{seed}"
        run(f"ip netns add {host}")
        with namespace(host):
            any_guest.add_devices()
            words = f"{kind} {seed} {requests} lone shared real"
            table = (RUN / f"fuzz-{kind}{seed}.tsv").open("w")
            running.append(subprocess.Popen(["/mnt/bin/qdisc_fuzz", *words.split()], stdout=table))
    ended = [process.wait() for process in running]
    assert not any(ended), ended
    for seed in range(1, FUZZERS + 1):
        with namespace(f"fuzz{seed}"):
            any_guest.remove_devices()
        run(f"ip netns del fuzz{seed}")
    unload_when_free(f"sch_{kind}")


def planted(*bugs: str) -> None:
    """Load the module with each bug that needs two processors."""
    for bug in bugs:
        endurance.planted(bug)


def main() -> None:
    """Run the trials."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    os.environ["PATH"] += ":/mnt/bin"
    run(f"mount -t debugfs none {endurance.DEBUG}")
    known: dict[str, Any] = {
        "cases": cases,
        "fuzz": fuzz,
        "kunit": endurance.kunit,
        "load_and_unload": endurance.load_and_unload,
        "planted": planted,
    }
    endurance.ROUNDS = LOADS
    for words in sys.argv[1:]:
        name, *arguments = words.split(";")
        report()
        known[name](*arguments)


if __name__ == "__main__":
    main()
