"""Functions that the benchmarks of whole runs share."""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from twoway.spec.point import find_experiment

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5


def machine() -> str:
    """Name the machine for which figures hold."""
    with Path("/proc/cpuinfo").open() as lines:
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "?")
    return f"{platform.node()}: {model}, {os.cpu_count()} processors, Linux {platform.release()}"


def start_twoway(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command without output."""
    argv = [sys.executable, "-m", "twoway.cli", *arguments]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def experiment_of(name: str, duration_s: float) -> dict[str, Any]:
    """Make an experiment of another length, without statements on metrics."""
    document: dict[str, Any] = yaml.safe_load(find_experiment(name).read_text())
    return document | {
        "duration_s": duration_s,
        "warm_up_s": duration_s / 10,
        "predictions": [],
        "claims": [],
        "findings": [],
    }


def many_flows(
    *, pairs: int, each: int, rate_mbit: int, duration_s: float, both: bool = True
) -> dict[str, Any]:
    """Make an experiment with flows between pairs of hosts.

    Args:
        pairs: number of pairs of hosts.
        each: number of flows in a direction of a pair.
        rate_mbit: rate of the bottleneck.
        duration_s: length of the traffic.
        both: True for flows in both directions.
    """
    there = [(f"l{n}", f"r{n}") for n in range(1, pairs + 1)]
    ends = [hosts for pair in there for hosts in ((pair, pair[::-1]) if both else (pair,))]
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
    experiment, results = folder / "measured.yml", tempfile.mkdtemp(dir=folder)
    experiment.write_text(yaml.safe_dump(document))
    if start_twoway("run", str(experiment), "--results", results).wait() != 0:
        raise SystemExit(f"bench: {document['title']} failed; run it by itself to see why")
    return Path(results, "latest").resolve()
