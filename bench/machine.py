"""The machine and the commit for which a benchmark's figures hold."""

import os
import platform
import subprocess
from pathlib import Path


def machine() -> str:
    """Name the commit and the machine for which figures hold."""
    with Path("/proc/cpuinfo").open() as lines:
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "?")
    return f"{commit()}, {model}, {os.cpu_count()} processors, Linux {platform.release()}"


def commit() -> str:
    """Name the checked-out commit, with the word dirty if files differ from it."""
    argv = ["git", "-C", str(Path(__file__).parent), "describe"]
    argv += ["--always", "--dirty", "--exclude=*"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"commit {done.stdout.strip() or '?'}"
