"""Write docs/results/README.md from the tables beside it: `make results-page`."""

import csv
import json
from collections import Counter
from itertools import groupby
from pathlib import Path

from twoway.commands.options import all_ids
from twoway.runs.cases import load_case
from twoway.spec.point import case_names

RESULTS = Path(__file__).resolve().parent / "results"
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
# The last full run

`docs/results_page.py` writes this page from the tables beside it. All {points} points are as their
files say: those of the last full run (Linux {kernel}, revision {revision}), judged by
today's files, and those of experiments that are newer.

| file | what it has |
|---|---|
| `summary.json` | machine, kernel, revision, and the number of claims by verdict |
| `claims.csv` | each claim, with its paper and the measurement that decides its verdict |
| `predictions.csv` | each predicted value: tolerance, the paper's formula, what came out |
| `numbers/` | every number that a statement is about |

`make results` runs everything and writes them again. `make test` compares two points of each
experiment with them, digit by digit, where the kernel is the same. [Findings](../findings.md) and
the pages for classes may print no figure that is not here.
"""


def page() -> str:
    """Return the page's text."""
    summary = json.loads((RESULTS / "summary.json").read_text("utf-8"))
    (kernel,), (revision,) = (summary["provenance"][key] for key in ("kernel", "git"))
    points = sum(len(case_names(name)) for name in all_ids())
    parts = [_HEAD.format(points=points, kernel=kernel, revision=revision), *_claims(), *_missed()]
    return "\n".join(parts) + "\n"


def _rows(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _claims() -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for row in _rows("claims.csv"):
        counts.setdefault(row["paper"], Counter())[row["verdict"]] += 1
    table = ["## Claims by verdict", "", f"| paper | {' | '.join(_VERDICTS)} |"]
    table += ["|---" * (len(_VERDICTS) + 1) + "|"]
    for paper, count in sorted(counts.items()):
        assert not count.keys() - set(_VERDICTS), count
        table.append(f"| {paper} | {' | '.join(str(count[verdict]) for verdict in _VERDICTS)} |")
    return [*table, ""]


def _missed() -> list[str]:
    rows = _rows("predictions.csv")
    missed = [row for row in rows if row["verdict"] != "pass"]
    kept = len(rows) - len(missed)
    lines = ["## Predictions", "", f"{kept} predicted values came out, {len(missed)} did not:", ""]
    lines += [
        "| point | metric | predicted | measured | what is known of the reason |",
        "|---" * 5 + "|",
    ]
    for point, group in groupby(missed, lambda row: row["point"]):
        known = {each.metric: each.contradicted for each in load_case(point).predictions}
        for row in group:
            record = known[row["metric"]]
            why = record.why if record else "not on record"
            values = f"{row['value']} ± {row['tolerance']} | {row['measured']}"
            lines.append(f"| `{point}` | `{row['metric']}` | {values} | {why} |")
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
