"""Load a module with parameters in the guest, as root, and write the results.

load_modules.py MODULE [PARAMETER]...: each parameter is an attempt of its own; the module's
messages and names go to /mnt/run/loads.json.
"""

import json
import os
import subprocess
import sys
from pathlib import Path


def kernel_log() -> list[str]:
    """Return all messages of the kernel."""
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    lines = []
    try:
        while True:
            lines.append(os.read(log, 8192).decode().partition(";")[2].splitlines()[0])
    except BlockingIOError:
        return lines
    finally:
        os.close(log)


def controls() -> list[str]:
    """Return the existing congestion controls."""
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()


def main() -> int:
    """Load the module, record the results, and unload it."""
    # User-mode Linux adds its own argument to those of the first process.
    module, *attempts = [word for word in sys.argv[1:] if word != "console=tty0"]
    found = {}
    for parameter in attempts:
        before, known = len(kernel_log()), set(controls())
        argv = ["insmod", f"/mnt/bin/{module}.ko", parameter]
        done = subprocess.run(argv, check=False, capture_output=True)
        found[parameter] = {
            "loaded": done.returncode == 0,
            "said": [line for line in kernel_log()[before:] if line.startswith(module)],
            "registers": sorted(set(controls()) - known),
        }
        if done.returncode == 0:
            subprocess.run(["rmmod", module], check=True)
        assert set(controls()) == known, "something stayed registered"
    Path("/mnt/run/loads.json").write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
