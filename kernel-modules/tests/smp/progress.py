"""Report to the host that a program is alive: the host ends a guest that is silent for long."""

import json
import time
from pathlib import Path

_FILE = Path("/mnt/run/sockets/progress.json")


def report() -> None:
    """Report to the host that this program is alive."""
    progress = {"time_ns": time.monotonic_ns(), "acked_bytes": 0, "queued_packets": 0}
    _FILE.write_text(json.dumps(progress) + "\n")
