"""Keep the numbers of runs in docs/results, and judge the papers' claims by them.

`results_kept.py FOLDER` takes the lines of the points that `twoway papers` reported in FOLDER. All
are of the clean revision in summary.json but those that name another, of later runs. It writes
claims.csv by today's files.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from twoway.commands.options import all_ids
from twoway.contract.metrics import Metric, Metrics
from twoway.description.point import find_source, point_names
from twoway.description.reading import load_experiment
from twoway.report.claims import Claim, claims
from twoway.report.judging import Measured, judge_claims
from twoway.report.papers_tables import read_numbers, write_claims
from twoway.report.results import Experiment, Result
from twoway.runs.manifest import describe
from twoway.runs.points import load_point

RESULTS = Path(__file__).resolve().parent / "results"
_NUMBERS = RESULTS / "numbers"
_CLAIMS, _SUMMARY = RESULTS / "claims.csv", RESULTS / "summary.json"


def later_revisions(lines: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the revisions that lines name.

    Raises: SystemExit with a sentence if one has changes that were not committed.
    """
    named = {line["git"]: line["point"] for line in lines if "git" in line}
    for revision, point in named.items():
        if revision.endswith("-dirty"):
            raise SystemExit(f"{point}: ran at {revision}: commit the changes, and run it again")
    return set(named)


def merge(reported: Path) -> None:
    """Take the lines of a report's numbers, and drop those of points that no longer exist.

    Runs repeat to the digit: a metric that the report lacks, because no experiment in it refers to
    it, keeps its number. If all lines are of one revision, it stands in summary.json alone.
    """
    lines: dict[str, dict[str, Any]] = {}
    for line in (*read_lines(), *read_lines(reported / "numbers")):
        lines[line["point"]] = {**lines.get(line["point"], {}), **line}
    names = [point for name in all_ids() for point in point_names(name) if point in lines]
    kept = [lines[point] for point in names]
    revisions = later_revisions(kept)
    if len(revisions) == 1 and all("git" in line for line in kept):
        for line in kept:
            del line["git"]
        summary = json.loads((reported / "summary.json").read_text("utf-8"))
        del summary["papers"]
        _SUMMARY.write_text(f"{json.dumps(summary, indent=1)}\n", "utf-8")
    texts: dict[Path, list[str]] = {}
    for line in kept:
        path = _NUMBERS / f"{paper_of(line['point'])}.jsonl"
        texts.setdefault(path, []).append(f"{json.dumps(line)}\n")
    for path, written in texts.items():
        path.write_text("".join(written), "utf-8")


def read_lines(folder: Path = _NUMBERS) -> Iterator[dict[str, Any]]:
    """Read the lines of kept, or of reported, numbers."""
    return (json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.open("rb"))


@cache
def paper_of(name: str) -> str:
    """Return the paper that an experiment, or a point of one, reproduces; "beyond" if none."""
    source = load_experiment(find_source(name.partition("@")[0])).source
    return (source and source.paper) or "beyond"


def kept_claims() -> dict[str, list[Claim]]:
    """Judge every claim by the kept numbers and today's files; by paper."""
    papers: dict[str, list[Experiment]] = {}
    for name in all_ids():
        if load_experiment(find_source(name)).claims:
            found = tuple(filter(None, map(_result, point_names(name))))
            papers.setdefault(paper_of(name), []).append(Experiment(name, found))
    return {paper: claims(papers[paper]) for paper in sorted(papers)}


def _result(point: str) -> Result | None:
    """Judge a point's claims; None if it has not run."""
    if (here := _read_measured(point)) is None:
        return None
    return cast("Result", _Kept(point, here))


class _Kept:
    """A kept run, as claims need it."""

    def __init__(self, point: str, here: Measured) -> None:
        self.id = point
        self.verdicts = self
        self.claims = judge_claims(here, _read_measured)


@cache
def _read_measured(point: str) -> Measured | None:
    numbers = kept_numbers().get(point)
    if numbers is None:
        return None
    metrics = {name: Metric(value=value, unit="") for name, value in numbers.items()}
    found = Metrics.model_construct(metrics=metrics, fidelity=())
    return Measured(describe(load_point(point)), found)


@cache
def kept_numbers() -> dict[str, dict[str, float | None]]:
    """Return each point's measured values by metric, in seven digits."""
    return read_numbers(_NUMBERS)


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        merge(Path(folder))
    write_claims(_CLAIMS, kept_claims())
