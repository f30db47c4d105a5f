"""Read a capture; print its number of packets and nanoseconds."""

import sys
import time
from pathlib import Path

from capture_analysis.reading.capture import Capture

began_ns = time.monotonic_ns()
packets = sum(len(chunk) for chunk in Capture(Path(sys.argv[1])).chunks())
print(packets, time.monotonic_ns() - began_ns)
