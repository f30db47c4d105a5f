"""`make bench OF=ns3`: 100 simulated seconds of two-way TCP here and in ns-3, in turn.

Both simulate the same network, windows and packets; the payload that arrives is compared first. The
guest's wall time includes its boot, its set-up and six captures; ns-3 is timed with the two routers
and with hosts that the bottleneck joins, without captures and with those of the two hosts. Ratios
are of runs in direct succession, medians with the extremes.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine import machine
from timed_runs import ROUNDS, experiment_of, run_experiment

from twoway.contract.metrics import METRICS, Metrics
from twoway.manifest import read_manifest

SOURCE = Path(__file__).with_name("ns3_two_way.cc")
MODULES = ("core", "network", "internet", "applications", "point-to-point", "traffic-control")
SECONDS, FROM_S = 100, 10
# ns-3's link adds 2 bytes of PPP to a packet, ours 10 of Zhang's: an ACK has 42 bytes or 50.
SAME = 0.02
# The runs of ns-3, by what is printed of them.
KINDS = {
    "with routers, without captures": (),
    "with routers and two captures": ("--pcap={folder}/ns3",),
    "without routers or captures": ("--direct",),
    "without routers, with two captures": ("--direct", "--pcap={folder}/ns3"),
}


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
        program = compile_program(SOURCE, Path(scratch))
        for network in NETWORKS:
            _compare(network, program, Path(scratch))
    return 0


def compile_program(source: Path, folder: Path) -> Path:
    """Compile a program of ns-3's libraries into a folder; return its path."""
    program = folder / source.stem
    libraries = [f"-lns3-{name}" for name in MODULES]
    subprocess.run(["g++", "-O2", "-o", program, source, *libraries], check=True)
    return program


def _compare(network: Network, program: Path, folder: Path) -> None:
    ours: list[float] = []
    theirs: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(ROUNDS):
        run = run_experiment(folder, experiment_of(network.experiment, SECONDS))
        ours.append(read_manifest(run).timing.wall_s)
        for kind, words in KINDS.items():
            more = tuple(word.format(folder=folder) for word in words)
            seconds, goodput = _ns3(program, network, more)
            theirs[kind].append(seconds)
            _refuse_others(network, kind, _goodput(run), goodput)
            for capture in folder.glob("ns3-*.pcap"):
                capture.unlink()
    for kind, walls in theirs.items():
        ratios = [their / own for their, own in zip(walls, ours, strict=True)]
        print(
            f"{network.experiment}: twoway {_spread(ours)} s, ns-3 {kind} {_spread(walls)} s; "
            f"twoway is {_spread(ratios)} times as fast",
            flush=True,
        )


def _refuse_others(network: Network, kind: str, ours: list[float], theirs: list[float]) -> None:
    """Exit if ns-3 simulated another network: each direction has another rate of segments."""
    for here, there in zip(ours, theirs, strict=True):
        mine, its = (
            rate / size for rate, size in zip((here, there), network.segment_bytes, strict=True)
        )
        if abs(mine / its - 1) > SAME:
            what = f"{network.experiment}, ns-3 {kind}"
            raise SystemExit(f"{what}: {mine:.1f} segments/s, in ns-3 {its:.1f}")


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
