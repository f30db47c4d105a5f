"""What a packet costs with 10, 100 and 1000 flows: a guest's wall time over packets.

CUBIC flows one way over 1 Gbit/s, ten to a pair of hosts. Of two lengths of a run the difference is
traffic alone; packets are those of the bottleneck's capture, data and ACKs.
"""

import math
import statistics
import tempfile
from pathlib import Path
from typing import Any

from capture_analysis import read_columns
from timed_runs import run_experiment

from twoway.contract.manifest import read_manifest

FLOWS = (10, 100, 1000)
PER_PAIR = 10
LENGTHS_S = (0.5, 4.5)
ROUNDS = 3


def show_flows_curve() -> None:
    """Print a line for each number of flows, and how the cost grows with them."""
    costs = {flows: _cost_us(flows) for flows in FLOWS}
    for flows, cost in costs.items():
        print(f"{flows:5} flows of 1 Gbit/s, guest, a packet {cost:16.2f} us", flush=True)
    least, most = min(FLOWS), max(FLOWS)
    growth = costs[most] / costs[least]
    exponent = math.log(growth) / math.log(most / least)
    print(f"{most} flows over {least}: {growth:.2f} times, flows to the power of {exponent:.3f}")


def _cost_us(flows: int) -> float:
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        (short, few), (long, many) = (_measured(Path(scratch), flows, s) for s in LENGTHS_S)
    return (long - short) / (many - few) * 1e6


def _measured(folder: Path, flows: int, seconds: float) -> tuple[float, int]:
    """Median wall time of a guest, s, and the packets that its bottleneck has seen."""
    walls, packets = [], 0
    for _ in range(ROUNDS):
        run = run_experiment(folder, _experiment(flows, seconds))
        manifest = read_manifest(run)
        walls.append(manifest.timing.wall_s)
        packets = sum(
            len(read_columns(path)["time_ns"])
            for path in (run / "pcap").iterdir()
            if path.name.startswith(manifest.queues[0].interface)
        )
    return statistics.median(walls), packets


def _experiment(flows: int, seconds: float) -> dict[str, Any]:
    pairs = max(flows // PER_PAIR, 1)
    rates = [f"profile.{direction}.rate_mbit" for direction in ("forward", "reverse")]
    return {
        "schema": 1,
        "title": f"{flows} flows",
        "summary": "For the cost of a packet.",
        "topology": {"name": "dumbbell", "parameters": {"pairs": pairs}},
        "profile": "fast-100mbit",
        "matrix": {"rate": {"set": rates, "to": [1000]}},
        "flows": [
            {"name": f"of-l{n}", "from": f"l{n}", "to": f"r{n}", "count": PER_PAIR}
            | {"congestion": "cubic", "generator": "kernel"}
            for n in range(1, pairs + 1)
        ],
        "duration_s": seconds,
        "warm_up_s": seconds / 4,
    }
