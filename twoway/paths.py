"""Paths of the checkout, and of the cache outside it."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "experiments"
PAPERS = ROOT / "papers"
TOPOLOGIES = ROOT / "topologies"
PROFILES = ROOT / "tc-profiles"
KERNEL_MODULES = ROOT / "kernel-modules"
VM = ROOT / "vm"


def cache() -> Path:
    """Return the folder for builds and downloads: $XDG_CACHE_HOME/twoway."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "twoway"
