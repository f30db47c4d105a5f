"""How the host knows that a program goes on: it would end a guest that is silent for long."""

import json
import time
from pathlib import Path

_FILE = Path("/mnt/run/sockets/progress.json")


def report() -> None:
    """Tell the host that this goes on."""
    progress = {"time_ns": time.monotonic_ns(), "acked_bytes": 0, "queued_packets": 0}
    _FILE.write_text(json.dumps(progress) + "\n")
