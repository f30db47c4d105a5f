"""Simulated captures, kept in the user's cache under the hash of all that decides them."""

import fcntl
import hashlib
import os
import pickle
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import capture_analysis
import numpy as np
import zstandard

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "twoway/simulations"
KEPT_S = 30 * 24 * 3600
_HERE = Path(__file__).parent
_PRODUCT = Path(str(capture_analysis.__file__)).parent
# The simulation, and what it imports of the product.
_SOURCES = [
    *sorted(_HERE.glob("simulated_*.py")),
    *(_HERE / f"{name}.py" for name in ("truth_corpus", "limits_confusion", "measured_captures")),
    *(_PRODUCT / f"{name}.py" for name in ("columns", "flow_table", "ack_compression")),
    _PRODUCT / "one_capture/limit.py",
]

T = TypeVar("T")


def kept(name: str, simulate: Callable[[], Iterable[T]]) -> list[T]:
    """Return what a function simulates, from the cache if no source has changed since.

    Args:
        name: what determines the result besides the sources, such as a seed.
        simulate: makes the simulations.
    """
    decisive = [name.encode(), np.__version__.encode(), *(path.read_bytes() for path in _SOURCES)]
    path = CACHE / hashlib.sha256(b"".join(decisive)).hexdigest()
    CACHE.mkdir(parents=True, exist_ok=True)
    for old in CACHE.iterdir():
        if old.stat().st_mtime < time.time() - KEPT_S:
            old.unlink(missing_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            written = path.with_suffix(".new")
            written.write_bytes(zstandard.compress(pickle.dumps([*simulate()])))
            written.rename(path)
    os.utime(path)
    found: list[T] = pickle.loads(zstandard.decompress(path.read_bytes()))  # noqa: S301 - the user's
    return found
