"""Run a command within limits of the process: `python -P -m ... BYTES SECONDS COMMAND ...`."""

import resource
import sys

from capture_analysis.cli import main

if __name__ == "__main__":
    octets, seconds, *words = sys.argv[1:]
    for limit, most in (
        (resource.RLIMIT_AS, int(octets)),
        (resource.RLIMIT_FSIZE, int(octets)),
        (resource.RLIMIT_CPU, int(seconds)),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (most, most))
    sys.argv[1:] = words  # a report quotes its command line
    sys.exit(main(words))
