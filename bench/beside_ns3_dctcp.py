"""`make bench OF=dctcp`: figure 17 of DCTCP's paper here, in ns-3, and on the authors' switches.

5 s of 40 flows over 10 and 1 Gbit/s, four million data packets: the experiment dctcp-racks, and
ns3_dctcp.cc, which has the parameters of ns-3's own example, and then what the authors' switches
and hosts do otherwise. Each runs once. Wall time of twoway is printed for the guest, its boot and
captures included, and for the command with its report; memory is that of the largest process.
Goodputs are means of a group's flows.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import yaml
from beside_ns3 import compile_program
from machine import machine
from timed_runs import ROOT, experiment_of

from twoway.contract.metrics import METRICS, Metrics
from twoway.manifest import read_manifest

SOURCE = Path(__file__).with_name("ns3_dctcp.cc")
SECONDS, FROM_S = 5, 2
# Flows of each group, and what each of them got from the authors' switches, Mbit/s.
GROUPS = {"s1": (10, 46), "s2": (20, 475), "s3": (10, 54)}
# The runs of ns-3. The second has no packets in devices below the marking queue, which marks each
# packet above K, and Linux's least window.
STEPS = {
    "ns-3 as its example": (),
    "ns-3 as the paper's network": ("--device=1p", "--step", "--least=2"),
}


def main() -> int:
    """Run both, and print a line for each run."""
    print(f"{machine()}, {SECONDS} s, goodput from {FROM_S} s on, each run once")
    published = [mbit for _, mbit in GROUPS.values()]
    _show("the authors' switches", published)
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        folder = Path(scratch)
        for acks in ("delayed", "every-segment"):
            _twoway(folder, acks)
        program = compile_program(SOURCE, folder)
        for name, words in STEPS.items():
            times = (f"--seconds={SECONDS}", f"--from={FROM_S}")
            wall_s, most_mb, said = _timed([str(program), *times, *words])
            rates = [float(line) * 8e-6 for line in said.splitlines()]
            _show(name, _means(rates), f"{wall_s:.0f} s, {most_mb:.0f} MB")
    return 0


def _twoway(folder: Path, acks: str) -> None:
    document = experiment_of("dctcp-racks", SECONDS)
    document |= {"stack": document["stack"] | {"acks": acks}, "matrix": {}}
    document |= {"warm_up_s": FROM_S, "theory": None}
    experiment, results = folder / f"{acks}.yml", folder / acks
    experiment.write_text(yaml.safe_dump(document))
    words = ["-m", "twoway.cli", "run", str(experiment), "--results", str(results)]
    wall_s, most_mb, _ = _timed([sys.executable, *words])
    run = (results / "latest").resolve()
    found = Metrics.read(run / METRICS).metrics
    names = [f"{group}-{n}" for group, (count, _) in GROUPS.items() for n in range(1, count + 1)]
    rates = [found[f"goodput.{name}"].value or 0.0 for name in names]
    guest_s = read_manifest(run).timing.wall_s
    cost = f"{guest_s:.0f} s, to the report {wall_s:.0f} s, {most_mb:.0f} MB"
    _show(f"twoway, acks: {acks}", _means(rates), cost)


def _timed(words: Sequence[str]) -> tuple[float, float, str]:
    """Run a command; return wall seconds, its largest process in MB, and its output."""
    began = time.monotonic()
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {words[0]} failed; run it by itself to see why")
    return time.monotonic() - began, used.ru_maxrss / 1000, said


def _means(rates: Sequence[float]) -> list[float]:
    """Compute the mean of each group's flows."""
    found, begin = [], 0
    for count, _ in GROUPS.values():
        found.append(statistics.fmean(rates[begin : begin + count]))
        begin += count
    return found


def _show(name: str, rates: Sequence[float], cost: str = "") -> None:
    figures = "  ".join(
        f"{group.upper()} {rate:6.1f} ({100 * (rate / mbit - 1):+.0f} %)"
        for (group, (_, mbit)), rate in zip(GROUPS.items(), rates, strict=True)
    )
    print(f"{name:<28} {figures} Mbit/s  {cost}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
