"""What the benchmarks of whole runs share."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from twoway.spec.point import find_experiment

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5


def machine() -> str:
    """Name what figures hold for."""
    with Path("/proc/cpuinfo").open() as lines:
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "?")
    return f"{platform.node()}: {model}, {os.cpu_count()} processors, Linux {platform.release()}"


def start_twoway(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command, silent."""
    argv = [sys.executable, "-m", "twoway.cli", *arguments]
    return subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL)


def experiment_of(name: str, duration_s: float) -> dict[str, Any]:
    """Make an experiment of another length, of which nothing is expected."""
    document: dict[str, Any] = yaml.safe_load(find_experiment(name).read_text())
    return document | {
        "duration_s": duration_s,
        "warm_up_s": duration_s / 10,
        "predictions": [],
        "claims": [],
        "findings": [],
    }


def run_experiment(folder: Path, document: dict[str, Any]) -> Path:
    """Run an experiment; its folder."""
    experiment = folder / "measured.yml"
    experiment.write_text(yaml.safe_dump(document))
    if start_twoway("run", str(experiment), "--results", str(folder / "results")).wait() != 0:
        raise SystemExit(f"bench: {document['title']} failed; run it by itself to see why")
    return (folder / "results/latest").resolve()
