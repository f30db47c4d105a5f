"""Compare the congestion control that a sender's capture shows with the one that was set.

    python controls_of_runs.py RESULTS SEED [RUNS]

Runs the testbed, unless RESULTS has the runs, and prints capture-analysis/docs/how-true.md's matrix
of controls. In each run one server has a transfer of 20 s with each control of the guest's kernel,
over links of their own, whose rates, delays, queues and losses are drawn (branches/drawn.py).
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from capture_analysis import analyse
from capture_analysis.metrics.congestion_control import CONTROLS

from support.guest.branches.drawn import draw_controls, experiment
from support.guest.limits_of_runs import data_to, run

RUN_S = 22.0
UNKNOWN = "unknown"
# These follow Reno's rules between their own, by the kernel's sources.
AS_RENO = {"reno", "lp", "cdg", "vegas", "yeah", "highspeed", "htcp", "hybla"}


def said(document: Mapping[str, Any], client: str) -> str:
    """Return the control that a capture names for the data to a client; UNKNOWN if none."""
    flow, direction = data_to(document, client)
    number = flow[direction]["congestion_control"]["value"]
    return UNKNOWN if number is None else [*CONTROLS][number - 1]


def show(found: Mapping[str, Counter[str]]) -> None:
    """Print the matrix, and how many of those named are right."""
    words = [*CONTROLS, UNKNOWN]
    lines = [f"| set | {' | '.join(words)} |", "|---|" + "--:|" * len(words)]
    lines += [
        f"| {true} | {' | '.join(str(row[w]) for w in words)} |" for true, row in found.items()
    ]
    whole = sum(row.total() for row in found.values())
    named = whole - sum(row[UNKNOWN] for row in found.values())
    same = sum(row[true] for true, row in found.items())
    rules = same + sum(found[true]["reno"] for true in AS_RENO - {"reno"})
    lines += [f"{named} of {whole} named; {same} by their name, {rules} with those by Reno's rules"]
    sys.stdout.write("\n".join(lines) + "\n")


def main(results: Path, seed: int, runs: int = 5) -> None:
    """Make the runs of a seed, and print what captures of the server say."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for number in range(runs):
        branches = draw_controls(np.random.default_rng([seed, number, 1]))
        document = experiment(branches, seed, run_s=RUN_S)
        folder = run(document, results, f"controls-{seed}-{number}")
        capture = analyse(folder / "pcap/sv-eth0.pcap.zst", flows=1000)
        for branch, each in enumerate(branches, 1):
            found[each.kind][said(capture, f"10.2.{branch}.2")] += 1
    show(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
