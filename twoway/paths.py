"""Paths of the checkout, and of the cache outside it."""

import os
from pathlib import Path

from twoway.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent
EXPERIMENTS = ROOT / "experiments"
PAPERS = ROOT / "papers"
TOPOLOGIES = ROOT / "topologies"
PROFILES = ROOT / "tc-profiles"
KERNEL_MODULES = ROOT / "kernel-modules"
VM = ROOT / "vm"
# The guest that a Debian package brings, in the cache's layout. A checkout has none.
PACKAGED = ROOT / "guest"


def results() -> Path:
    """Return where runs are kept: in the checkout, or where a package is used, in this folder."""
    return Path("results") if PACKAGED.is_dir() else ROOT / "results"


def cache() -> Path:
    """Return the folder for builds and downloads: $XDG_CACHE_HOME/twoway.

    Raises: UsageError if there is neither that nor a home folder.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "twoway"
    except RuntimeError as error:
        raise UsageError("no home folder: set HOME or XDG_CACHE_HOME") from error
