"""The cost of a packet with 10, 100 and 1000 flows: a guest's wall time per packet.

CUBIC flows in one direction over 1 Gbit/s, ten for each pair of hosts. The wall time of traffic is
the difference of a longer and a shorter run; the packets, data and ACKs, are counted in the
bottleneck's capture.
"""

import math
import statistics
import tempfile
from pathlib import Path

from capture_analysis import read_columns
from timed_runs import many_flows, run_experiment

from twoway.manifest import read_manifest

FLOWS = (10, 100, 1000)
PER_PAIR = 10
LENGTHS_S = (0.5, 4.5)
ROUNDS = 3


def show_flows_curve() -> None:
    """Print a line for each number of flows, and the growth of the cost."""
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
    """Measure a guest's median wall time, s, and the packets at its bottleneck."""
    experiment = many_flows(
        pairs=flows // PER_PAIR,
        each=PER_PAIR,
        rate_mbit=1000,
        duration_s=seconds,
        both=False,
    )
    walls, packets = [], 0
    for _ in range(ROUNDS):
        run = run_experiment(folder, experiment)
        manifest = read_manifest(run)
        walls.append(manifest.timing.wall_s)
        packets = sum(
            len(read_columns(path)["time_ns"])
            for path in (run / "pcap").iterdir()
            if path.name.startswith(manifest.queues[0].interface)
        )
    return statistics.median(walls), packets
