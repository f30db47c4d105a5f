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
from capture_analysis.metrics.congestion_control import ALIKE, CONTROLS

from support.guest.branches.drawn import draw_controls, experiment
from support.guest.limits_of_runs import data_to, run

RUN_S = 22.0
UNKNOWN, SEVERAL, OTHERS = "unknown", "several, and it", "several without it"


def said(document: Mapping[str, Any], client: str) -> str:
    """Return the controls that a capture names for the data to a client; UNKNOWN if none."""
    flow, direction = data_to(document, client)
    found = flow[direction]["congestion_control"]
    if found["value"] is not None:
        return CONTROLS[int(found["value"]) - 1]
    return str(found["why"]) if found["why"].startswith(ALIKE) else UNKNOWN


def word(control: str, named: str) -> str:
    """Return the matrix's column for what is named for a control."""
    if not named.startswith(ALIKE):
        return named
    names = named.removeprefix(ALIKE).partition(", which")[0].replace(" and ", ", ")
    return SEVERAL if control in names.strip().split(", ") else OTHERS


def show(found: Mapping[str, Counter[str]]) -> None:
    """Print the matrix, and how many of those named are right."""
    last = [SEVERAL, OTHERS, UNKNOWN]
    words = [*(each for each in CONTROLS if any(row[each] for row in found.values())), *last]
    lines = [f"| set | {' | '.join(words)} |", "|---|" + "--:|" * len(words)]
    lines += [
        f"| {true} | {' | '.join(str(row[w]) for w in words)} |" for true, row in found.items()
    ]
    total = sum(found.values(), Counter[str]())
    alone = total.total() - sum(total[each] for each in last)
    right = sum(row[true] for true, row in found.items())
    several = total[SEVERAL] + total[OTHERS]
    lines.append(f"{total.total()} transfers: {alone} have one name, {right} of these right")
    lines.append(f"{several} have several names, {total[SEVERAL]} with theirs among them")
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
            named = said(capture, f"10.2.{branch}.2")
            found[each.kind][word(each.kind, named)] += 1
            sys.stderr.write(f"{number} {each.kind}: {named}\n")
    show(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
