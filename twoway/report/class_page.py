"""The results of a class: a ranked table, a page, and each student's file for Gradescope."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from capture_analysis.pages.page_template import number

from twoway.contract.suite import ReadSuite, Shown
from twoway.contract.writing import make_folder, write_json, written_aside
from twoway.messages import cut_line
from twoway.report import pages
from twoway.report.flow_table import align_columns
from twoway.report.paper_text import csv_text

PAGE, CSV, GRADESCOPE = "index.html", "class.csv", "gradescope"
# Characters of a failure's words in a terminal.
_SHORT = 100


class Mark(NamedTuple):
    """A number of a hand-in: its share of the best, from 0 to 1."""

    row: str
    at: str
    shown: Shown
    unit: str
    value: float | None
    best: float
    share: float


@dataclass(frozen=True)
class Marked:
    """A hand-in with its marks.

    Attributes:
        student: the student's number or name.
        sha256: of the file; empty if none can be used.
        draws: the student's values of the axes that the exercise draws.
        marks: one for each number.
        why: what is wrong, in words for the student, with the compiler's or kernel's own words.
        foreign: identities that the student handed in and that none of the student's runs has.
    """

    student: str
    sha256: str
    draws: Mapping[str, str]
    marks: tuple[Mark, ...]
    why: str
    foreign: tuple[str, ...]

    @property
    def points(self) -> float:
        """The mean of the marks, of 100."""
        return 100 * fmean(mark.share for mark in self.marks)

    def points_of(self, row: str) -> float:
        """Return the mean of a row's marks, of 100."""
        return 100 * fmean(mark.share for mark in self.marks if mark.row == row)


def class_table(suite: ReadSuite, marked: Sequence[Marked]) -> list[str]:
    """Format the ranked class for a terminal: a line for each student."""
    rows = _rows(suite)
    lines = [("", "student", "points", *rows.values())]
    for rank, each in enumerate(marked, 1):
        points = (f"{each.points_of(row):.0f}" for row in rows)
        lines.append((f"{rank}.", each.student, f"{each.points:.1f}", *points))
    words = [cut_line(in_short(each), _SHORT) for each in marked]
    titled = ["why" if any(words) else "", *words]
    return [
        f"{line}  {why}".rstrip()
        for line, why in zip(align_columns(lines, left=2), titled, strict=True)
    ]


def in_short(marked: Marked) -> str:
    """Write in one line what is wrong with a hand-in."""
    foreign = ", ".join(run[:12] for run in marked.foreign)
    parts = (marked.why.splitlines()[:1], [f"not a run of yours: {foreign}"] * bool(foreign))
    return "; ".join(part for each in parts for part in each)


def write_class(suite: ReadSuite, marked: Sequence[Marked], folder: Path) -> Path:
    """Write the page of a class, its table, and a file for Gradescope for each student.

    Returns: the page.
    """
    make_folder(folder / GRADESCOPE)
    for each in marked:
        write_json(folder / GRADESCOPE / f"{each.student}.json", gradescope(suite, each))
    rows = _rows(suite)
    table: list[tuple[object, ...]] = [
        ("rank", "student", "points", *rows.values(), "hand-in", "why")
    ]
    for rank, each in enumerate(marked, 1):
        points = (round(each.points_of(row), 1) for row in rows)
        table.append(
            (rank, each.student, round(each.points, 1), *points, each.sha256[:12], in_short(each))
        )
    with written_aside(folder / CSV) as file:
        file.write(csv_text(table).encode())
    pages.write(
        folder / PAGE,
        "class.html.j2",
        [],
        suite=suite,
        rows=rows,
        marked=marked,
        in_short=in_short,
        in_words=in_words,
        csv=CSV,
    )
    return folder / PAGE


def gradescope(suite: ReadSuite, marked: Marked) -> dict[str, Any]:
    """Make a student's results.json, as Gradescope's autograders write it."""
    most = 100 / len(marked.marks)
    tests = [
        {
            "name": _title(suite, mark),
            "score": round(mark.share * most, 3),
            "max_score": round(most, 3),
            "status": "passed" if mark.share else "failed",
            "output": in_words(mark),
            "visibility": "visible",
        }
        for mark in marked.marks
    ]
    foreign = [f"not a run of yours: {run}" for run in marked.foreign]
    return {
        "score": round(marked.points, 3),
        "output": "\n".join(filter(None, (marked.why, *foreign))) or suite.said.title,
        "output_format": "text",
        "visibility": "visible",
        "tests": tests,
        "leaderboard": [{"name": "points", "value": round(marked.points, 1)}],
        "extra_data": {"hand_in": marked.sha256, "suite": suite.sha256, **marked.draws},
    }


def in_words(mark: Mark) -> str:
    """Write a number beside the best."""
    unit = "" if mark.unit == "1" else f" {mark.unit}"
    aim = mark.shown.better if isinstance(mark.shown.better, str) else "near"
    value = "none" if mark.value is None else f"{number(mark.value)}{unit}"
    beside = "aim" if aim == "near" else f"best, {aim} is better"
    return f"{value}; {beside}: {number(mark.best)}{unit}"


def _title(suite: ReadSuite, mark: Mark) -> str:
    at = re.sub(r",?seed=\d+", "", mark.at).replace(",", ", ").replace("=", " ")
    return f"{_rows(suite)[mark.row]} {at}: {mark.shown.metric}".replace(" :", ":")


def _rows(suite: ReadSuite) -> dict[str, str]:
    """Name the rows that have runs, by their experiments' ids."""
    every = suite.rows.items()
    return {row: row.removeprefix(f"{suite.name}-") for row, each in every if each.shows}
