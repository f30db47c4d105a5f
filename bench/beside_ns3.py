"""`make bench OF=ns3`: 100 simulated seconds of two-way TCP here and in ns-3, in turn.

Both simulate the same network, windows and packets; the payload that arrives is compared first. The
guest's wall time includes its boot, its set-up and six captures; ns-3 is timed without captures and
with those of the two hosts. Ratios are of runs in direct succession, medians with the extremes.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from timed_runs import ROUNDS, experiment_of, machine, run_experiment

from twoway.contract.manifest import read_manifest
from twoway.contract.metrics import METRICS, Metrics

SOURCE = Path(__file__).with_name("ns3_two_way.cc")
MODULES = ("core", "network", "internet", "applications", "point-to-point", "traffic-control")
SECONDS, FROM_S = 100, 10
# ns-3's link adds 2 bytes of PPP to a packet, ours 10 of Zhang's: an ACK has 42 bytes or 50.
SAME = 0.02


@dataclass(frozen=True)
class Network:
    """One experiment, with the parameters that ns-3's program needs.

    Attributes:
        experiment: ours.
        options: ns-3's.
        segment_bytes: payload of a full segment, here and in ns-3.
    """

    experiment: str
    options: tuple[str, ...]
    segment_bytes: tuple[int, int]


NETWORKS = (
    Network(
        "kalampoukas-5.2",
        ("--rate=131Mbps", "--delay=8416us", "--mtu=9180", "--left=28", "--right=28"),
        (9140, 9140),
    ),
    Network(
        "zhang-fig8",
        ("--rate=50kbps", "--delay=10ms", "--mtu=498", "--left=30", "--right=25", "--later=0.5"),
        (450, 458),
    ),
)


def main() -> int:
    """Build ns-3's program, and print a line for each network and kind of run."""
    print(f"{machine()}, medians of {ROUNDS} (least to most)")
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        program = Path(scratch, "ns3_two_way")
        libraries = [f"-lns3-{name}" for name in MODULES]
        subprocess.run(["g++", "-O2", "-o", program, SOURCE, *libraries], check=True)
        for network in NETWORKS:
            _compare(network, program, Path(scratch))
    return 0


def _compare(network: Network, program: Path, folder: Path) -> None:
    ours, without, with_captures = [], [], []
    for _ in range(ROUNDS):
        run = run_experiment(folder, experiment_of(network.experiment, SECONDS))
        ours.append(read_manifest(run).timing.wall_s)
        seconds, theirs = _ns3(program, network, ())
        without.append(seconds)
        with_captures.append(_ns3(program, network, (f"--pcap={folder}/ns3",))[0])
        for capture in folder.glob("ns3-*.pcap"):
            capture.unlink()
    for here, there in zip(_goodput(run), theirs, strict=True):
        mine, its = (
            rate / size for rate, size in zip((here, there), network.segment_bytes, strict=True)
        )
        if abs(mine / its - 1) > SAME:
            raise SystemExit(f"{network.experiment}: {mine:.1f} segments/s, in ns-3 {its:.1f}")
    for what, walls in (("without captures", without), ("with two", with_captures)):
        ratios = [theirs / own for theirs, own in zip(walls, ours, strict=True)]
        print(
            f"{network.experiment}: twoway {_spread(ours)} s, ns-3 {what} {_spread(walls)} s; "
            f"twoway is {_spread(ratios)} times as fast",
            flush=True,
        )


def _ns3(program: Path, network: Network, more: tuple[str, ...]) -> tuple[float, list[float]]:
    """Run ns-3; return wall seconds, and the payload that arrived in each direction, bytes/s."""
    began = time.monotonic()
    times = (f"--seconds={SECONDS}", f"--from={FROM_S}")
    done = subprocess.run(
        [program, *network.options, *times, *more], capture_output=True, text=True, check=True
    )
    return time.monotonic() - began, [float(line) for line in done.stdout.splitlines()]


def _goodput(run: Path) -> list[float]:
    """Measure the payload that arrived in each direction in a run of ours, bytes/s."""
    found = Metrics.read(run / METRICS).metrics
    names = [connection.name for connection in read_manifest(run).connections]
    return [(found[f"goodput.{name}"].value or 0) * 1e6 / 8 for name in names]


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    sys.exit(main())
