"""Write docs/results/README.md from the tables beside it: `make results-page`."""

import csv
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import NamedTuple

from results_kept import RESULTS, kept_numbers, later_revisions, paper_of, read_lines

from twoway.commands.options import all_ids
from twoway.contract.judge import Verdict, judge
from twoway.contract.statements import FORMS
from twoway.contract.verdicts import PredictionRow
from twoway.description.matrix import drop_axis, full_name, points
from twoway.description.point import find_source, point_names
from twoway.description.reading import load_experiment
from twoway.description.statements import said_at
from twoway.paths import PAPERS, ROOT
from twoway.report.claims import Sharpness
from twoway.report.paper_text import markdown_table
from twoway.report.papers import find_paper
from twoway.report.statistics import spread
from twoway.runs.points import load_point
from twoway.runs.predicted import FILE, Row, read_predictions
from twoway.theory.registry import tests_testbed

PAGE = RESULTS / "README.md"
_VERDICTS = (
    "agrees",
    "differs, explained",
    "differs, unexplained",
    "the paper contradicts itself",
    "not comparable",
    "cannot be told",
)
_HEAD = """\
# Kept results

`docs/results_page.py` writes this page from the tables beside it. They have the newest run of each
of the {points} points, as their files say (Linux {kernel}), judged by today's files. All runs are
of the clean checkout `{checkout}`; {later} lines of later runs name their own.

| file | what it has |
|---|---|
| `summary.json` | machine, kernel, guests and revisions of the last full run |
| `claims.csv` | each claim, with its paper and the measurement that decides its verdict |
| `noticed.csv` | how many predictions a small change of the setup refutes |
| `hidden.jsonl` | [twenty findings](../hidden.md) on the papers' TCP and on Linux's own |
| `atlas.csv` | [fifty situations](../atlas.md) of TCP, a cell for each kernel |
| `witness/` | verdicts on a point of each paper on another kernel |
| `numbers/` | every number that a statement is about, a line for each point |
| `score/` | the card of each [suite](../guides/score.md#the-suites), a line for each row |

`predictions.jsonl` in each folder of `experiments/` has what was predicted: value, tolerance and
the result of the paper's formula. Its lines have the points and metrics of `numbers/`.

`make results` runs everything and writes them again; with `OF="EXPERIMENT..."` it runs some, and
replaces their lines. It refuses runs of a checkout with changes. `make test` compares a point of
each experiment with them, digit by digit, where the kernel is the same.
[Findings](../findings.md) and the pages for classes may print no figure that is not here.
"""


class Judged(NamedTuple):
    """A predicted value as its file has it, the number that came out, and the verdict."""

    said: Row
    measured: float | None
    verdict: Verdict

    @property
    def of_testbed(self) -> bool:
        """True if it says that the testbed does what the profile sets."""
        return tests_testbed(self.said.theory, self.said.metric)


def page() -> str:
    """Return the page's text."""
    summary = json.loads((RESULTS / "summary.json").read_text("utf-8"))
    (kernel,) = summary["provenance"]["kernel"]
    (checkout,) = summary["provenance"]["git"]
    lines = [*read_lines()]
    later_revisions(lines)
    count = sum(len(point_names(name)) for name in all_ids())
    later = sum("git" in line for line in lines)
    parts = [
        _HEAD.format(points=count, kernel=kernel, checkout=checkout, later=later),
        *_claims(),
        *_coverage(),
        *_sharpness(),
        *_noticed(),
        *_witness(),
        *_spread(),
        *_missed(),
    ]
    return "\n".join(parts)


def _rows(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _claims() -> list[str]:
    """Count claims by verdict, and those that agree by their form in print."""
    rows = _rows("claims.csv")
    assert {row["verdict"] for row in rows} <= set(_VERDICTS)
    forms = (f"{form} that agree" for form in FORMS)
    table = [["paper", *_VERDICTS, *forms]]
    for paper in (*sorted({row["paper"] for row in rows}), "all"):
        found = [row for row in rows if paper in (row["paper"], "all")]
        cells = [str(sum(row["verdict"] == verdict for row in found)) for verdict in _VERDICTS]
        for form in FORMS:
            verdicts = [row["verdict"] for row in found if row["form"] == form]
            cells.append(f"{verdicts.count(_VERDICTS[0])} of {len(verdicts)}" if verdicts else "")
        table.append([paper, *cells])
    return ["## Claims by verdict", "", markdown_table(table)]


def _coverage() -> list[str]:
    """Count the sentences of each paper, those with a claim, and those whose claim agrees."""
    verdicts = {(row["paper"], row["claim"]): row["verdict"] for row in _rows("claims.csv")}
    columns = ("sentences", "claimed", "fair", "agreeing", "with a reason", "not run yet")
    table = [["paper", *columns]]
    total: Counter[str] = Counter()
    for name in sorted(path.stem for path in PAPERS.iterdir()):
        paper = find_paper(name)
        found = Counter("not run yet" if each.run else "with a reason" for each in paper.untested)
        for claim, sentences in paper.claimed.items():
            verdict = verdicts[name, claim]
            found["claimed"] += len(sentences)
            found["fair"] += len(sentences) * (verdict not in _VERDICTS[-2:])
            found["agreeing"] += len(sentences) * (verdict == _VERDICTS[0])
        found["sentences"] = found["claimed"] + len(paper.untested)
        total += found
        table.append([name, *(str(found[column]) for column in columns)])
    table.append(["all", *(str(total[column]) for column in columns)])
    return [
        "## Sentences of the papers",
        "",
        "`papers/*.yml` lists the sentences that state a result, each with its claim, the reason",
        "why no experiment tests it, or the run that would. A claim is fair if its verdict is",
        "neither `not comparable` nor `cannot be told`.",
        "",
        markdown_table(table),
    ]


def _sharpness() -> list[str]:
    """Count predictions by sharpness; those about the testbed have a column of their own."""
    columns = (
        *("paper", "predictions kept", "exact", "bounds", "with a tolerance"),
        *("median share used", "using less than 5 %", "the paper's formula fails", "fidelity kept"),
    )
    table = [[*columns]]
    rows: dict[str, list[Judged]] = {}
    for each in (*judge_kept_numbers(), *testbed_checks()):
        rows.setdefault(paper_of(each.said.point), []).append(each)
    for paper, found in sorted(rows.items()):
        ours = [each for each in found if not each.of_testbed]
        sharp = Sharpness.from_rows(map(_as_row, ours))
        cells = [
            _count_kept(ours),
            sharp.exact,
            sharp.bounds,
            len(sharp.used),
            "" if sharp.median is None else f"{100 * sharp.median:.2g} %",
            sharp.slack,
            f"{sharp.printed_fails} of {len(sharp.printed)}",
            _count_kept([each for each in found if each.of_testbed]),
        ]
        table.append([paper, *map(str, cells)])
    return [
        "## How much the predictions say",
        "",
        "A prediction that uses little of its tolerance says little by being kept.",
        "The paper's formula fails if it is not within the same tolerance. A prediction about the",
        "testbed itself counts as fidelity.",
        "",
        markdown_table(table),
    ]


def _as_row(each: Judged) -> PredictionRow:
    said = each.said
    return PredictionRow(
        **dict(said.numbers),
        metric=said.metric,
        why="",
        theory=said.theory,
        measured=each.measured,
        unit="",
        verdict=each.verdict,
    )


def _count_kept(found: Sequence[Judged]) -> str:
    kept = sum(each.verdict is Verdict.PASS for each in found)
    return f"{kept} of {len(found)}" if found else "none"


def _noticed() -> list[str]:
    rows = _rows("noticed.csv")
    return [
        "How many of the kept predictions a small change of the setup refutes, for theories that",
        "are quick to compute again (`docs/results_noticed.py`):",
        "",
        markdown_table([[*rows[0]], *([*row.values()] for row in rows)]),
    ]


def _witness() -> list[str]:
    """Count the verdicts of a point of each paper on a distribution's kernel."""
    summary = json.loads((RESULTS / "witness/summary.json").read_text("utf-8"))
    (kernel,) = summary["provenance"]["kernel"]
    tables = [_rows(f"witness/{name}.csv") for name in ("predictions", "claims")]
    table = [["point", "predictions kept", "cannot be told", "claims", "cannot be told"]]
    for point in dict.fromkeys(row["point"] for row in tables[0]):
        predicted, claimed = (
            Counter(row["verdict"] for row in rows if row["point"] == point) for rows in tables
        )
        untold = predicted["cannot be told"]
        told = "; ".join(
            f"{count} {verdict}" for verdict, count in claimed.items() if verdict != _VERDICTS[-1]
        )
        kept = f"{predicted['pass']} of {predicted.total() - untold}"
        untold_claims = str(claimed[_VERDICTS[-1]])
        table.append([f"`{point}`", kept, str(untold), told or "none", untold_claims])
    return [
        "## On a second kernel",
        "",
        f"`make witness` runs a point of each paper on Debian's own kernel {kernel}, in QEMU that",
        "counts instructions, where the kernel's work takes time. Its clock tells less.",
        "",
        markdown_table(table),
    ]


def _spread() -> list[str]:
    """Make the table of each result's spread over seeds or starts, from findings over these."""
    numbers = kept_numbers()
    table = [
        ["point", "metric", "draws", "alike", "median", "its interval", "least", "most"],
    ]
    for name in all_ids():
        experiment = load_experiment(find_source(name))
        by_point: dict[tuple[str, str], list[float]] = {}
        for point in points(experiment.matrix):
            for _, finding, metric in said_at(point, experiment.findings):
                if finding.over is not None:
                    key = full_name(name, drop_axis(finding.over, point)), metric
                    value = numbers[full_name(name, point)][metric]
                    assert value is not None, (name, point)
                    by_point.setdefault(key, []).append(value)
        for (rest, metric), drawn in by_point.items():
            found = spread(drawn)
            assert found is not None, (rest, metric)
            low, high, least, middle, most = (
                f"{getattr(found, name):.4g}"
                for name in ("median_low", "median_high", "least", "median", "most")
            )
            alike = sum(one == other for one, other in pairwise(drawn))
            what = [f"`{rest}`", f"`{metric}`", str(len(drawn)), str(alike)]
            table.append([*what, middle, f"{low} to {high}", least, most])
    return [
        "## Where there is chance",
        "",
        "Draws of the kernel's random numbers, or starts where microseconds decide. The interval",
        "holds the median of all possible draws, with a confidence of 95 % or more, whatever their",
        "distribution, if draws are independent. Starts half a millisecond apart are not: a packet",
        "takes 1.66 ms. Equal neighbours likely leave packets in one order; no run shows it.",
        "`alike` counts the draws that equal the one before; of starts, they make the interval too",
        "narrow.",
        "",
        markdown_table(table, 2),
    ]


@cache
def judge_kept_numbers() -> list[Judged]:
    """Compare the predicted values with the kept numbers; those about the testbed are left out."""
    return [each for each in _all_judged() if not each.of_testbed]


def testbed_checks() -> list[Judged]:
    """Compare predictions about the testbed with the kept numbers."""
    return [each for each in _all_judged() if each.of_testbed]


@cache
def _all_judged() -> list[Judged]:
    said: dict[tuple[str, str], list[Row]] = {}
    for path in sorted((ROOT / "experiments").glob(f"*/{FILE}")):
        for row in read_predictions(path):
            said.setdefault((row.point, row.metric), []).append(row)
    return [
        Judged(each, measured, judge(each.numbers, measured))
        for point, numbers in kept_numbers().items()
        for metric, measured in numbers.items()
        for each in said.get((point, metric), ())
    ]


def _digits(number: float | None) -> str:
    return "" if number is None else f"{number:.7g}"


def _missed() -> list[str]:
    missed = [each for each in judge_kept_numbers() if each.verdict is not Verdict.PASS]
    kept = len(judge_kept_numbers()) - len(missed)
    table = [["point", "metric", "predicted", "measured", "what is known of the reason"]]
    for point, group in groupby(missed, lambda each: each.said.point):
        known = {each.metric: each.contradicted for each in load_point(point).predictions}
        for said, measured, _ in group:
            record = known[said.metric]
            why = record.why if record else "not on record"
            value, tolerance = map(_digits, (said.numbers.value, said.numbers.tolerance))
            values = [f"{value} ± {tolerance}", _digits(measured)]
            table.append([f"`{point}`", f"`{said.metric}`", *values, why])
    counts = f"{kept} predicted values came out, {len(missed)} did not:"
    return ["## Predictions", "", counts, "", markdown_table(table, 5)]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
