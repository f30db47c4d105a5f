"""`make bench OF=captures`: the speed of capture-analysis and its peers, on one processor.

Every round measures every figure once, so that a drift of the machine affects all alike. The result
is the median of the rounds and its ratio to a walk over the records in C and to tcptrace. Speed
depends on the number and the length of connections: of the first of CAPTURES all figures are
measured, of the others those that read a capture once. --packets or --flows chooses one capture.

    bench_captures.py [--packets 2000000] [--flows 24] [--rounds 5] [--only WORD] [--memory 10e9]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import peers
from machine import machine
from opening import open_page
from processes import ProgramFailedError, run

HERE = Path(__file__).parent
GENERATOR = HERE.parents[1] / "capture-analysis/tests/support/traffic_generator.py"
OURS = [sys.executable, "-m", "capture_analysis.cli"]
# Packets and connections: of 83,000 packets each, of 2,000, and of 50, as on a server. Half of the
# connections are seen at their sender.
CAPTURES = ((2_000_000, 24), (3_000_000, 1_500), (1_000_000, 20_000))
RECORD_BYTES = 102  # a packet of the generated capture, on average


@dataclass(frozen=True)
class Scene:
    """Two captures of one path, of the same number of packets.

    Attributes:
        near, far: the files.
        packets, connections: their number in each file.
        folder: folder for output files.
    """

    near: Path
    far: Path
    packets: int
    connections: int
    folder: Path


Figure = Callable[[Scene], float]


def columns(scene: Scene) -> float:
    """Measure packets per second from file to columns.

    Without the start of the interpreter.
    """
    packets, nanoseconds = map(
        int, run([sys.executable, HERE / "read_columns.py", scene.near]).output.split()
    )
    return packets / nanoseconds * 1e9


def metrics(scene: Scene) -> float:
    """Measure packets per second from command to metrics, start-up included."""
    done = run([*OURS, "metrics", scene.near])
    json.loads(done.output)
    return scene.packets / done.seconds


def flows(scene: Scene) -> float:
    """Measure packets per second of `flows`, start-up included."""
    return scene.packets / run([*OURS, "flows", scene.near]).seconds


def match(scene: Scene) -> float:
    """Measure packets per second, of both files, of `match`, with start-up."""
    done = run([*OURS, "match", scene.near, scene.far])
    json.loads(done.output)
    return 2 * scene.packets / done.seconds


def export(scene: Scene) -> float:
    """Measure packets per second of `export` to Parquet, with start-up."""
    return scene.packets / run([*OURS, "export", scene.near, scene.folder / "a.parquet"]).seconds


ONCE: dict[str, Figure] = {
    "flows, start-up included": flows,
    "metrics, start-up included": metrics,
}
SPEEDS: dict[str, Figure] = {
    "file to columns": columns,
    **ONCE,
    "match, start-up included": match,
    "export to Parquet, start-up included": export,
}


def report(scene: Scene) -> None:
    """Print the time to write the page, its size, and the time to open it."""
    target = scene.folder / "report"
    done = run([*OURS, "report", scene.near, "--output", target])
    page = next(target.rglob("*.html"))
    print(f"{'report, start-up included':<46} {done.seconds:8.2f} s")
    print(f"{'its page':<46} {page.stat().st_size / 1e6:8.2f} MB")
    opened = [open_page(page) for _ in range(3)]
    for name, what in (
        ("load", "to open it in Chromium, until the load event"),
        ("first_plot", "until the first plot is painted"),
        ("every_plot", "to every plot painted"),
    ):
        seconds = statistics.median(getattr(each, name) for each in opened)
        print(f"{what:<46} {seconds:8.2f} s", flush=True)
    print()


# Arguments of each command in the measurement of peak memory.
COMMANDS: dict[str, Callable[[Scene], list[str | Path]]] = {
    "flows": lambda scene: [scene.near],
    "metrics": lambda scene: [scene.near],
    "match": lambda scene: [scene.near, scene.far],
    "report": lambda scene: [scene.near, "--output", scene.folder / "report"],
    "report of two": lambda scene: [scene.near, scene.far, "--output", scene.folder / "report2"],
    "plot": lambda scene: [scene.near, "--output", scene.folder / "plot.html"],
    "export": lambda scene: [scene.near, scene.folder / "big.parquet"],
}


def main() -> int:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int)
    parser.add_argument("--flows", type=int, help="connections; half send from near")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="figures whose names contain this")
    parser.add_argument(
        "--memory", type=float, help="instead: peak memory on captures of this many bytes"
    )
    parser.add_argument(
        "--folder", type=Path, help="folder for captures, with room; they are deleted afterwards"
    )
    asked = parser.parse_args()
    packets, connections = asked.packets or CAPTURES[0][0], asked.flows or CAPTURES[0][1]
    sizes = [(packets, connections)] if asked.packets or asked.flows else CAPTURES
    status = 0
    for number, size in enumerate(sizes):
        with tempfile.TemporaryDirectory(prefix="capture-bench-", dir=asked.folder) as folder:
            if asked.memory:
                return _memory(Path(folder), asked.memory, connections, asked.only)
            status |= _speeds(
                _scene(Path(folder), *size), asked.rounds, asked.only, once=number > 0
            )
    return status


def _speeds(scene: Scene, rounds: int, only: str, *, once: bool) -> int:
    """Measure our figures and the peers' in turns, and print their medians.

    Args:
        scene: the captures.
        rounds: how often.
        only: a part of the names of our figures.
        once: True for the figures that read one capture once, and two peers.
    """
    packets = scene.packets
    known = peers.build(scene.folder, packets)[: 2 if once else None]
    figures: dict[str, Figure] = {
        each.name: lambda scene, each=each: each.packets_per_second(scene.near)  # type: ignore[misc]
        for each in known
    }
    ours = {name: figure for name, figure in (ONCE if once else SPEEDS).items() if only in name}
    figures |= ours
    size = scene.near.stat().st_size / 1e6
    what = f"{packets} packets, {scene.connections} connections, {size:.0f} MB"
    print(f"{machine()}\n{what}, medians of {rounds}, one processor\n")
    if (load := os.getloadavg()[0]) > 1.5:
        print(f"NOTE: others use this machine (load {load:.1f}): only ratios are meaningful\n")
    found: dict[str, list[float]] = {name: [] for name in figures}
    for _ in range(rounds):
        for name in list(found):
            try:
                found[name].append(figures[name](scene))
            except ProgramFailedError as error:
                print(f"LEFT OUT: {name}: {error}", flush=True)
                del found[name]
    _table({name: statistics.median(values) for name, values in found.items()})
    if only in "report" and not once:
        try:
            report(scene)
        except ProgramFailedError as error:
            print(f"LEFT OUT: report: {error}", flush=True)
            return 1
    return 0 if ours.keys() <= found.keys() else 1


def _table(medians: dict[str, float]) -> None:
    walk, tcptrace = next(iter(medians.values())), medians.get("tcptrace")
    print(f"{'':<46} {'M/s':>8} {'of walk':>8} {'tcptrace':>9}")
    for name, speed in medians.items():
        beside = f"{speed / tcptrace:8.2f}x" if tcptrace else ""
        print(f"{name:<46} {speed / 1e6:8.3f} {speed / walk:8.3f} {beside}")
    print(flush=True)


def _memory(folder: Path, size_bytes: float, flows: int, only: str) -> int:
    """Print the peak memory of every command on captures of a size."""
    needed, free = 3 * size_bytes, shutil.disk_usage(folder).free
    if free < needed:
        print(f"bench: {folder} has {free / 1e9:.0f} GB free, {needed / 1e9:.0f} GB are needed")
        return 1
    scene = _scene(folder, int(size_bytes / RECORD_BYTES), flows)
    print(f"{machine()}\n{scene.near.stat().st_size / 1e9:.1f} GB each, {scene.packets} packets\n")
    status = 0
    for name, arguments in COMMANDS.items():
        if only not in name:
            continue
        try:
            done = run([*OURS, name.split()[0], *arguments(scene)], keep_output=False)
            peak, seconds = done.peak_bytes / 2**20, done.seconds
            print(f"{name:<24} {peak:8.0f} MiB {seconds:8.1f} s", flush=True)
        except ProgramFailedError as error:
            print(f"{name:<24} failed: {error}", flush=True)
            status = 1
    return status


def _scene(folder: Path, packets: int, connections: int) -> Scene:
    near, far = folder / "near.pcap", folder / "far.pcap"
    words = ["--packets", packets, "--flows", connections, near, far]
    subprocess.run([sys.executable, GENERATOR, *map(str, words)], check=True)
    return Scene(near, far, packets, connections, folder)


if __name__ == "__main__":
    sys.exit(main())
