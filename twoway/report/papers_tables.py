"""The tables of the reproduction report, small enough to be kept with the code."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from twoway.contract.statements import in_words
from twoway.contract.verdicts import ClaimRow, PredictionRow
from twoway.contract.writing import written_aside
from twoway.report.claims import Claim, Said
from twoway.report.paper_page import Paper
from twoway.report.paper_text import cells, csv_text

_CLAIM_COLUMNS = (
    "claim",
    "where",
    "by",
    "form",
    "verdict",
    "point",
    "metric",
    "measured",
    "printed",
)
_PREDICTION_COLUMNS = (
    *("point", "metric", "theory", "value", "tolerance", "at_least", "at_most"),
    *("printed", "measured", "verdict", "used", "printed_holds"),
)


def write_tables(papers: Iterable[Paper], folder: Path) -> None:
    """Write claims.csv, predictions.csv, fidelity.csv, and a point per line in numbers/."""
    papers = list(papers)
    write_claims(folder / "claims.csv", {paper.source.id: paper.claims for paper in papers})
    for name, of in (("predictions", "predictions"), ("fidelity", "testbed_checks")):
        predicted = (_prediction_line(said) for paper in papers for said in getattr(paper, of))
        _write_table(folder / f"{name}.csv", _PREDICTION_COLUMNS, predicted)
    asked = _asked(papers)
    for paper in papers:
        _write_numbers(folder / "numbers" / paper.table, paper, asked)


def write_claims(path: Path, papers: Mapping[str, Iterable[Claim]]) -> None:
    """Write the claims of each paper as a table, each with the row that decides its verdict."""
    lines = ([paper, *_claim_line(each)] for paper, found in papers.items() for each in found)
    _write_table(path, ("paper", *_CLAIM_COLUMNS), lines)


def _asked(papers: Iterable[Paper]) -> dict[str, list[str]]:
    """List the metrics that statements name, by run: of their own run, or of one they refer to."""
    asked: dict[str, list[str]] = {}
    for said in (said for paper in papers for each in paper.sections for said in each.rows):
        row = said.row
        asked.setdefault(said.result.id, []).append(row.metric)
        if isinstance(row, ClaimRow):
            other = row.differs and row.differs.explained_by
            asked.setdefault(row.against or "", []).append(row.metric)
            asked.setdefault(other or "", []).append(
                (row.differs and row.differs.metric) or row.metric
            )
    return asked


def _write_numbers(path: Path, paper: Paper, asked: Mapping[str, Iterable[str]]) -> None:
    """Write a line for each point with statements: the revision of its run, and its numbers."""
    found: dict[str, dict[str, str | float | None]] = {}
    for result in (result for each in paper.sections for result in each.experiment.results):
        for name in asked.get(result.id, ()):
            metric = result.metrics.metrics.get(name)
            number = _number(metric.value if metric else None)
            line = found.setdefault(result.id, {"git": result.manifest.git})
            line[name] = float(number) if number else None
    path.parent.mkdir(exist_ok=True)
    with written_aside(path) as file:
        for point, numbers in found.items():
            file.write(f"{json.dumps({'point': point, **numbers})}\n".encode())


def read_numbers(folder: Path) -> dict[str, dict[str, float | None]]:
    """Read the measured values of each point by metric, in seven digits, from `numbers/`."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.open("rb"))
    rows = map(json.loads, lines)
    return {row.pop("point"): {k: v for k, v in row.items() if k != "git"} for row in rows}


def _claim_line(claim: Claim) -> list[str]:
    """Write a claim with the row that decides its verdict."""
    said = claim.worst
    printed = in_words(said.row)
    return [
        *(claim.claim, claim.where, claim.by, claim.form, claim.verdict.value),
        *(said.result.id, said.row.metric, _number(said.measured), printed),
    ]


def _prediction_line(said: Said[PredictionRow]) -> list[str]:
    """Write a prediction, what the paper's formula gives, what came out, and how sharp it is."""
    row = said.row
    numbers = (row.value, row.tolerance, row.at_least, row.at_most, row.printed, row.measured)
    used = "" if row.used is None else f"{row.used:.2g}"
    holds = {None: "", True: "yes", False: "no"}[row.printed_holds]
    said_of = [said.result.id, row.metric, row.theory]
    return [*said_of, *map(_number, numbers), row.verdict.value, used, holds]


def _write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with written_aside(path) as file:
        file.write(csv_text([columns, *map(cells, rows)]).encode())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"
