"""In the guest: cost per packet of several qdiscs, and per acknowledgement of two controls.

Arguments: the folder with the built benchmark module. Writes /mnt/run/bench.json: name to a list
of nanoseconds, one per round. Needs a real clock.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROUNDS = 9
PACKETS = 200_000
ACKS = 2_000_000
# Each as fast as it can be told to be, so that no packet waits: what is left is the code. A
# packet counts as one byte where the qdisc lets one say so.
QDISCS = {
    "pfifo": "pfifo limit 1000",
    "dtm": "dtm slots 8192 limit 1000 overhead -64",
    "dtm rate": "dtm slots 8192 limit 1000 overhead -64 min 8192 allocator rate",
    "netem rate": "netem limit 1000 rate 100gbit",
    "tbf": "tbf rate 100gbit burst 1gb limit 1gb",
}
CONTROLS = ("vegas", "fast100")


def sh(command: str) -> None:
    """Run a command that must work."""
    subprocess.run(command.split(), check=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def measure(module: Path, parameters: str) -> float:
    """Load the module with some parameters; the nanoseconds that it says."""
    subprocess.run(["dmesg", "-C"], check=True)
    subprocess.run(["insmod", str(module), *parameters.split()], check=False, capture_output=True)
    said = subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"twoway_bench: (\d+) ps", said)
    if not found:
        raise SystemExit(f"{parameters}: {said}")
    return int(found[1]) / 1000


def main() -> None:
    """Measure in turns, so that a slow moment of the machine hits all alike."""
    module = Path(sys.argv[1]) / "twoway_bench.ko"
    sh("insmod /mnt/bin/sch_dtm.ko")
    sh("insmod /mnt/bin/tcp_fast.ko alphas=100")
    sh("ip link set dummy0 up")
    tc = ["env", "TC_LIB_DIR=/mnt/bin", "tc", "qdisc", "replace", "dev", "dummy0", "root"]
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, arguments in QDISCS.items():
            subprocess.run([*tc, *arguments.split()], check=True)
            cost = measure(module, f"dev=dummy0 count={PACKETS}")
            found.setdefault(f"packet through {name}", []).append(cost)
        for name in CONTROLS:
            cost = measure(module, f"control={name} count={ACKS}")
            found.setdefault(f"ack to {name}", []).append(cost)
    Path("/mnt/run/bench.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
