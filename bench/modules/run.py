"""In a guest: cost per packet of several qdiscs, and per acknowledgement of two controls.

    run.py FOLDER SHARE # FOLDER has the built benchmark module; SHARE of the packets: 1 is all

The program writes /mnt/run/bench.json: name to a list of nanoseconds, one per round. The benchmark
needs a real clock. In the phases "pass" and "drop" a packet has one byte on its channel and passes
at once; in the phase "wait" it is the channel's only packet. Other qdiscs are measured in the same
phases: first at their highest rate, then at a slow one.
"""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "kernel-modules/tests"))

from channels import bench_options, bench_pool_slots

ROUNDS = 3
CHANNELS = (1, 10, 100, 1000)
PHASES = ("pass", "drop", "wait")
PACKETS = {"pass": 200_000, "drop": 200_000}
# Number of rounds of packets that wait; each packet takes twice as long as otherwise.
WAIT_ROUNDS = 100
ACKS = 2_000_000
# Time until a waiting packet is due, ms: much longer than asking all qdiscs in turn takes.
DUE_MS = {1: 5, 10: 5, 100: 17, 1000: 17}
FRAME_BITS = 480
CONTROLS = ("vegas", "fast100")
# By the intended outcome of packets: the largest share with another outcome. Some have it because
# the clock is slow, a bucket starts full, or a flow's first packet never waits.
MOST_OFF = {"pass": 0.1, "drop": 0.1, "wait": 0.3}


def netem(phase: str, channels: int) -> str:
    """Return the options of a netem with a rate."""
    return f"netem limit 10 rate {_rate(phase, channels)}"


def tbf(phase: str, channels: int) -> str:
    """Return the options of a tbf, whose bucket is large, or holds one packet."""
    burst = "64" if phase == "wait" else "1gb"
    return f"tbf limit 600 burst {burst} rate {_rate(phase, channels)}"


def fq(phase: str, channels: int) -> str:
    """Return the options of an fq with one flow, and a rate for it if it is to wait."""
    pacing = f"maxrate {_rate(phase, channels)} quantum 60 initial_quantum 60"
    return f"fq limit 10 {pacing if phase == 'wait' else ''}"


def dtm(phase: str, channels: int) -> str:
    """Return the options of static channels of one pool."""
    return bench_options("static", phase, channels)


def dtm_rate(phase: str, channels: int) -> str:
    """Return the options of channels of one pool; each channel estimates its rate."""
    return bench_options("rate", phase, channels)


QDISCS: dict[str, Callable[[str, int], str]] = {
    "netem rate": netem,
    "tbf": tbf,
    "fq": fq,
    "dtm": dtm,
    "dtm rate": dtm_rate,
}


def _rate(phase: str, channels: int) -> str:
    due_ms = DUE_MS[channels]
    return f"{FRAME_BITS * 1000 // due_ms}bit" if phase == "wait" else "100gbit"


def sh(command: str, lines: str = "") -> None:
    """Run a command that must work."""
    done = subprocess.run(command.split(), input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")


def build(channels: int, options: str) -> str:
    """Make a device with as many transmit queues as channels; return its name."""
    device = f"bench{channels}"
    sh(f"ip link add {device} numtxqueues {channels} type dummy")
    root = f"qdisc replace dev {device} root handle 1:"
    lines = [f"{root} {options}"]
    if channels > 1:
        leaf = f"qdisc replace dev {device} parent 1:%x {options}"
        lines = [f"{root} mq", *(leaf % number for number in range(1, channels + 1))]
    # The device is still down: otherwise the kernel would wait, per channel, for packets under way.
    sh("tc -batch -", "\n".join(lines) + "\n")
    sh(f"ip link set {device} up")
    return device


def measure(module: Path, parameters: str) -> tuple[float, int, int]:
    """Load the module with some parameters; return the nanoseconds, waits and drops it reports."""
    subprocess.run(["dmesg", "-C"], check=True)
    argv = ["insmod", str(module), *parameters.split()]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    said = subprocess.run(["dmesg"], check=True, capture_output=True, text=True).stdout
    found = re.search(r"twoway_bench: (\d+) ps, (\d+) waits, (\d+) drops", said)
    if not found:
        raise SystemExit(f"{parameters}: {done.stderr}{said}")
    return int(found[1]) / 1000, int(found[2]), int(found[3])


def costs(module: Path, share: float) -> Iterator[tuple[str, float]]:
    """Measure each qdisc and control once; return its name and its cost in nanoseconds."""
    for channels in CHANNELS:
        for phase in PHASES:
            waits = max(int(WAIT_ROUNDS * share / channels**0.5), 1) * channels
            count = waits if phase == "wait" else int(PACKETS[phase] * share)
            sh(f"/mnt/bin/dtm pool add bench slots {bench_pool_slots(phase, channels)}")
            for name, options in QDISCS.items():
                device = build(channels, options(phase, channels))
                wait = f"wait_us={DUE_MS[channels] * 2000}" if phase == "wait" else ""
                cost, waits, drops = measure(
                    module, f"dev={device} phase={phase} count={count} {wait}"
                )
                sh(f"ip link del {device}")
                expected = {"pass": (0, 0), "drop": (0, 1), "wait": (1, 0)}[phase]
                off = max(
                    abs(got / count - n) for got, n in zip((waits, drops), expected, strict=True)
                )
                # A figure is not comparable if too many packets did not do what the phase demands.
                yield f"{phase} {name} {channels}", cost if off <= MOST_OFF[phase] else math.nan
            sh("/mnt/bin/dtm pool del bench")
    for name in CONTROLS:
        yield f"ack to {name}", measure(module, f"control={name} count={int(ACKS * share)}")[0]


def main() -> None:
    """Measure in turns, so that a slow moment of the machine affects all alike."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    folder, share = sys.argv[1:3]
    sh("insmod /mnt/bin/sch_dtm.ko")
    sh("insmod /mnt/bin/tcp_fast.ko alphas=100")
    found: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, cost in costs(Path(folder) / "twoway_bench.ko", float(share)):
            found.setdefault(name, []).append(cost)
            Path("/mnt/run/bench.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
