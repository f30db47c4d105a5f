"""Functions that the benchmarks of whole runs share."""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from twoway.description.point import find_source

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
_MEMORY_EVERY_S = 0.2


def start_twoway(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command without output."""
    argv = [sys.executable, "-m", "twoway.cli", *arguments]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def experiment_of(name: str, duration_s: float) -> dict[str, Any]:
    """Make an experiment of another length, without statements on metrics."""
    return find_source(name).document | {
        "duration_s": duration_s,
        "warm_up_s": duration_s / 10,
        "predictions": [],
        "claims": [],
        "findings": [],
    }


def many_flows(*, pairs: int, each: int, rate_mbit: int, duration_s: float) -> dict[str, Any]:
    """Make an experiment with `each` flows in both directions between pairs of hosts."""
    there = [(f"l{n}", f"r{n}") for n in range(1, pairs + 1)]
    ends = [hosts for pair in there for hosts in (pair, pair[::-1])]
    rates = [f"profile.{direction}.rate_mbit" for direction in ("forward", "reverse")]
    return {
        "schema": 1,
        "title": f"{len(ends) * each} flows",
        "summary": "For its cost.",
        "topology": {"name": "dumbbell", "parameters": {"pairs": pairs}},
        "profile": "fast-100mbit",
        "matrix": {"rate": {"set": rates, "to": [rate_mbit]}},
        "flows": [
            {"name": f"of-{start}", "from": start, "to": goal, "count": each}
            | {"congestion": "cubic"}
            for start, goal in ends
        ],
        "duration_s": duration_s,
        "warm_up_s": duration_s / 3,
    }


def run_experiment(folder: Path, document: dict[str, Any]) -> Path:
    """Run an experiment into a results folder of its own; return the run's folder.

    In a folder with a finished run of the same point `twoway run` would keep that run.
    """
    run, results = _start_run(folder, document)
    if run.wait() != 0:
        raise SystemExit(f"bench: {document['title']} failed; run it by itself to see why")
    return (results / "latest").resolve()


def _start_run(folder: Path, document: dict[str, Any]) -> tuple[subprocess.Popen[bytes], Path]:
    experiment, results = folder / "measured.yml", Path(tempfile.mkdtemp(dir=folder))
    experiment.write_text(yaml.safe_dump(document))
    return start_twoway("run", str(experiment), "--results", str(results)), results


def most_memory_mib(folder: Path, document: dict[str, Any]) -> float:
    """Run an experiment; return the most memory of all its processes together, MiB.

    Anonymous and shared pages count, each once; files that the host keeps in memory do not.
    """
    run, _ = _start_run(folder, document)
    most_kib = 0
    while run.poll() is None:
        most_kib = max(most_kib, sum(map(_memory_kib, _descendants(run.pid))))
        time.sleep(_MEMORY_EVERY_S)
    return most_kib / 1024


def _memory_kib(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0
    return sum(map(int, re.findall(r"^Pss_(?:Anon|Shmem): +(\d+)", text, re.MULTILINE)))


def _descendants(process: int) -> Iterator[int]:
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:
            continue
        for child in found:
            yield from _descendants(int(child))
