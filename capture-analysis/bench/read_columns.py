"""Reads a capture into columns, and prints how many packets and the nanoseconds that took."""

import sys
import time
from pathlib import Path

from capture_analysis.reading.capture import Capture

began_ns = time.monotonic_ns()
packets = sum(len(chunk) for chunk in Capture(Path(sys.argv[1])).chunks())
print(packets, time.monotonic_ns() - began_ns)
