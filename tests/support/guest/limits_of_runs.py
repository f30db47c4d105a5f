"""Compare the limits that captures give with what the kernels of the testbed's hosts waited for.

    python limits_of_runs.py RESULTS SEED [RUNS]

Runs the testbed, unless RESULTS has the runs, and prints capture-analysis/docs/how-true.md's table
of branches, and every confusion. In each run one server has a client for each kind of branch, over
links of their own (branches/drawn.py). The kernel gives the truth: TCP_INFO says every 5 ms for
which cause data waits (branches/ends.py). Each connection is captured at the server, on the link
and at the client, six of ten with a snap length.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from capture_analysis import analyse, read_columns
from capture_analysis.one_capture.document import numbers
from capture_analysis.one_capture.limit import CANNOT_TELL, FULL, LINK, QUEUE, limit_of
from capture_analysis.pages.headline import limit
from limits_confusion import EITHER, SENDER

from support.guest.branches.drawn import Branch, draw, experiment
from twoway.backends import uml
from twoway.backends.registry import backend_for
from twoway.guest.cache import built_guest
from twoway.runs.points import load_point
from twoway.runs.run import kept_run, run_experiment

HERE = Path(__file__).parent / "branches"
SNAPS = (0, 0, 0, 0, 54, 66, 68, 74, 80, 96)
# A shorter snap length cuts the handshake's scale of windows.
SCALE_BYTES = 74
# A connect that fails is counted; a run has one of each.
FAILS = {"refused": "connects_refused", "no answer": "connects_unanswered"}
NEAR_ONLY = ("Nagle", "black hole")
# Words that are wrong where a branch does not have them.
WORDS = ("policer", "black hole")


@dataclass(frozen=True)
class Judged:
    """One capture's answer on a connection, and the truth.

    Attributes:
        kind, place, snap: the branch's kind, the tap's place, and the snap length; 0 is none.
        true: the causes that are right, the first the true one.
        said: a cause, or CANNOT_TELL.
        text: all sentences on the limit.
        word: a word that these must have; "" if none.
    """

    kind: str
    place: str
    snap: int
    true: tuple[str, ...]
    word: str
    said: str = ""
    text: str = ""

    @property
    def right(self) -> bool:
        """True if the named cause is a true one.

        From afar causes at the sender look alike. An empty send buffer is an application that wrote
        no more.
        """
        true = self.true[0]
        return (
            self.said in self.true
            or (self.said == "sender" and true in {*SENDER, "Nagle", "send buffer"})
            or (self.said == "send buffer" and true == "application")
        )

    @property
    def wordless(self) -> bool:
        """True if the sentences lack the word."""
        return self.word.lower() not in self.text.lower()


def run(document: Mapping[str, Any], results: Path, name: str) -> Path:
    """Find an experiment's run in a folder, or make it there; return the run's folder."""
    folder = results / "files"
    folder.mkdir(parents=True, exist_ok=True)
    for each in ("branches.py", "ends.py"):
        shutil.copy(HERE / each, folder)
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document))
    point = load_point(str(path))
    on = backend_for(point, uml.Uml(built_guest()))
    return kept_run(point, on, results) or run_experiment(point, on, results)


def judged(
    folder: Path, branches: Sequence[Branch], random: np.random.Generator
) -> Iterator[Judged]:
    """Yield what captures of a run say, from each place, beside the truth."""
    waited = {
        each["client"][0]: Counter(each["samples"])
        for each in map(json.loads, (folder / "programs/server.out").read_text().splitlines())
    }
    snaps = random.choice(SNAPS, (len(branches), 3))
    near: dict[int, Mapping[str, Any]] = {}
    for number, branch in enumerate(branches, 1):
        client = f"10.2.{number}.2"
        # A router's captures have what leaves it: two make a capture of the link between them.
        link = [f"j{number}-eth1", f"k{number}-eth0"]
        taps = {"near": ["sv-eth0"], "middle": link, "far": [f"c{number}-eth0"]}
        true = (branch.fails,) if branch.fails else truth(folder, number, branch, waited[client])
        for (place, tap), snap in zip(taps.items(), map(int, snaps[number - 1]), strict=True):
            if branch.kind == "unanswered" and place == "near":
                continue  # nothing of it comes there
            paths = [folder / f"pcap/{each}.pcap.zst" for each in tap]
            document = near[snap] if place == "near" and snap in near else said(paths, snap)
            if place == "near":
                near[snap] = document
            yield _judge(document, client, _seen(branch, place, snap, true))


def truth(folder: Path, number: int, branch: Branch, waited: Counter[str]) -> tuple[str, ...]:
    """Return the causes that are right for a branch's connection, the largest first."""
    least = max(waited.values()) - EITHER * waited.total()
    causes = [cause for cause, count in waited.most_common() if count >= least]
    packets = read_columns(folder / f"pcap/c{number}-eth0.pcap.zst")
    data = (packets["half"] == 1) & (packets["payload_bytes"] != 0)
    rate_mbit = branch.down.get("policer", branch.down)["rate_mbit"]
    spent_ns = max(int(np.ptp(packets["time_ns"][data].astype(np.int64))), 1)
    used = packets["frame_bytes"][data].sum() * 8e3 / rate_mbit / spent_ns
    if branch.kind == "policer":  # which has no queue
        return (*causes, *((LINK,) if used >= FULL - EITHER else ()))
    if used >= FULL:
        # A full link is the only reason for a small congestion window.
        rest = [cause for cause in causes if cause != "congestion window"]
        return (LINK, QUEUE, *(causes if used < FULL + EITHER else rest))
    return (*causes, *((LINK, QUEUE) if used >= FULL - EITHER else ()))


def _seen(branch: Branch, place: str, snap: int, true: tuple[str, ...]) -> Judged:
    """Make the truth at a place.

    Behind a black hole only the small answers before it are seen, for which the application waits.
    Who sends small data is seen near the sender alone.
    """
    near = place == "near"
    if branch.kind == "black hole" and not near:
        true = ("application",)
    return Judged(
        branch.kind, place, snap, true, branch.word * (near or branch.word not in NEAR_ONLY)
    )


def said(paths: Sequence[Path], snap: int) -> Mapping[str, Any]:
    """Analyse captures of one link, with a snap length; 0 is none."""
    with tempfile.TemporaryDirectory() as folder:
        plain = [Path(folder) / path.stem for path in paths]
        for path, each in zip(paths, plain, strict=True):
            subprocess.run(["zstd", "-dqf", path, "-o", each], check=True)
        merged = Path(folder) / "merged.pcap"
        cut = ["-s", str(snap)] * bool(snap)
        subprocess.run(["mergecap", *cut, "-F", "nsecpcap", "-w", merged, *plain], check=True)
        return analyse(merged, flows=1000)


def _judge(document: Mapping[str, Any], client: str, of: Judged) -> Judged:
    if of.true[0] in FAILS:
        connects = document["metrics"][FAILS[of.true[0]]]["value"]
        return replace(of, said=of.true[0] if connects == 1 else "not seen")
    flow, direction = data_to(document, client)
    place = str(flow["facts"][direction].get("vantage", {}).get("value", "unknown"))
    text = " ".join(limit(flow[direction], place))
    return replace(of, said=limit_of(numbers(flow[direction])).cause, text=text)


def data_to(document: Mapping[str, Any], client: str) -> tuple[Mapping[str, Any], str]:
    """Return the connection of a client, and the direction of the data that it gets."""
    for flow in document["flows"]:
        ends = [flow[end].rpartition(":")[0] for end in ("source", "destination")]
        if client in ends:
            return flow, ("backward", "forward")[ends.index(client)]
    raise KeyError(client)


def show(found: Sequence[Judged]) -> None:
    """Print the agreement by kind, place and snap length, and every confusion."""
    lines = ["| captures | directions | named | right | words |", "|---|--:|--:|--:|--:|"]
    for group in ("kind", "place", "snap"):
        for value in dict.fromkeys(getattr(each, group) for each in found):
            name = f"{value or 'no'} bytes" if group == "snap" else value
            lines.append(_line(name, [each for each in found if getattr(each, group) == value]))
    lines += [_line("all", found), "", "| truth | said | captures |", "|---|---|--:|"]
    wrong = [each for each in found if each.said != CANNOT_TELL and not each.right]
    for (kind, place, true, cause), count in Counter(
        (each.kind, each.place, each.true[0], each.said) for each in wrong
    ).most_common():
        lines.append(f"| {true} ({kind}, {place}) | {cause} | {count} |")
    for each in found:
        lines += [f"| {each.word} ({each.kind}, {each.place}) | no such word | 1 |"] * each.wordless
        lines += [
            f"| no {word} ({each.kind}, {each.place}) | {word} | 1 |"
            for word in WORDS
            if word not in (each.word, each.kind) and word in each.text
        ]
    untold = [each for each in found if each.said == CANNOT_TELL]
    for reason, count in Counter(map(_reason, untold)).most_common():
        lines.append(f"| cannot tell | {reason} | {count} |")
    sys.stdout.write("\n".join(lines) + "\n")


def _reason(of: Judged) -> str:
    """Return the reason why a capture cannot tell, and whether it is the true one."""
    reason = of.text.removeprefix("It cannot be told: ").partition(":")[0].partition(".")[0]
    cut = "scale of windows" in reason and 0 < of.snap < SCALE_BYTES
    return f"{reason} ({'true' if cut else f'{of.kind}, {of.place}, {of.snap} bytes'})"


def _line(name: str, found: Sequence[Judged]) -> str:
    named = [each for each in found if each.said != CANNOT_TELL]
    worded = [each for each in found if each.word]
    words = f"{sum(not each.wordless for each in worded)} of {len(worded)}" if worded else ""
    share, right = len(named) / len(found), sum(each.right for each in named) / max(len(named), 1)
    return f"| {name} | {len(found)} | {share:.0%} | {right:.1%} | {words} |"


def main(results: Path, seed: int, runs: int = 5) -> None:
    """Make the runs of a seed, and print what captures of them say."""
    found: list[Judged] = []
    for number in range(runs):
        random = np.random.default_rng([seed, number])
        branches = draw(random)
        document = experiment(branches, seed, merged=number % 4 == 3)
        folder = run(document, results, f"limits-{seed}-{number}")
        found += judged(folder, branches, random)
    show(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
