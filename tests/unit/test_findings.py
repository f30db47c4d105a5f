"""The pages of findings and of classes have only figures from docs/results, at their setting."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from typing import NamedTuple

import pytest
import results_page
import yaml
from finding_bars import FINDINGS
from support.kept_results import kept_numbers
from support.running import ROOT

from twoway.contract.judge import Verdict
from twoway.manifest import Described
from twoway.report.comparing import parameters
from twoway.runs.manifest import describe
from twoway.runs.points import load_point

PAGES = sorted([*(ROOT / "docs").glob("findings*.md"), *(ROOT / "docs/classes").glob("*.md")])
TEXTS = "\n\n".join(page.read_text(encoding="utf-8") for page in PAGES)
LINKS = (ROOT / "docs/guides/links.md").read_text(encoding="utf-8")
# A measured figure is a link: its text is the figure, its title the point and the metric.
_FIGURE = re.compile(
    r'\[([^\]]+)\]\((?:\.\./)?results/numbers/([a-z0-9-]+)\.jsonl\s"(\S+)\s(\S+)"\)'
)
# What the words before a figure name: figures of a paper, or examples of Ge et al.
_NAMED = re.compile(
    r"\b(figure|example)s? (\d[\d.]*(?:(?:, | and |, and )\d[\d.]*)*)", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.;:])\s+(?=[*`]*[A-Z])|\n\n|\n- ")
# Parameters that decide what of a run is measured, and names of files: no setting in print.
_NO_SETTING = ("experiment.duration_s", "experiment.warm_up_s", "experiment.profile")
# Text without measurements: pictures, code and links; a paper's numbers are in italics.
_ELSE = re.compile(r"<[^>]*>|`[^`]*`|\[[^\]]*\]\([^)]*\)|\*[^*]+\*")
_NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.(\d+))?")


class _Measured(NamedTuple):
    """A figure with the names of the paper's figures before it, and the words of its sentence."""

    named: tuple[str, ...]
    paper: str
    point: str
    words: str


def test_a_figure_is_a_kept_results() -> None:
    """A measured figure is the metric at the point that its link names, rounded as in the text.

    At `point=*` it is the least or the most; of `metric>=bound` it is the number of points.
    """
    figures = _FIGURE.findall(TEXTS + LINKS)
    assert figures
    assert [figure for figure in figures if not _is_kept(*figure)] == []


def _is_kept(text: str, _: str, point: str, metric: str) -> bool:
    number = _NUMBER.search(text)
    assert number
    digits = len(number[1] or "")
    written = float(number[0].replace(",", "")) / (100 if "%" in text else 1)
    exact = 0.5000001 * 10**-digits / (100 if "%" in text else 1)
    found = _found(point, metric)
    return written in (pytest.approx(min(found), abs=exact), pytest.approx(max(found), abs=exact))


def _found(pattern: str, metric: str) -> list[float]:
    """Return a metric at each point of a pattern, or the number of points above a bound."""
    rows = [_kept(point) for point in kept_numbers() if fnmatch(point, pattern)]
    name, bounded, bound = metric.partition(">=")
    kept = [[value for each, value in row.items() if fnmatch(each, name)] for row in rows]
    assert all(kept), f"{pattern} has no {name}"
    if bounded:
        return [sum(min(values) >= float(bound) for values in kept)]
    return [value for values in kept for value in values]


def _kept(point: str) -> dict[str, float]:
    return {name: value for name, value in kept_numbers()[point].items() if value is not None}


def test_a_figure_is_of_the_setting_that_its_sentence_names() -> None:
    """After a paper's figure is named, numbers are of its runs, or words name the difference."""
    measured = list(_measured(TEXTS))
    wrong = {each.point: names for each in measured if (names := _differences_not_named(each))}
    assert wrong == {}
    assert len(measured) > 10


def _measured(text: str) -> Iterator[_Measured]:
    for sentence in _SENTENCE.split(text):
        words = _FIGURE.sub(r"\1", sentence).lower()
        parts = [*_NAMED.finditer(sentence), *_FIGURE.finditer(sentence)]
        named = next((_names(part) for part in parts if part.re is _NAMED), ())
        for part in sorted(parts, key=re.Match.start):
            if part.re is _NAMED:
                named = _names(part)
            elif named and (ROOT / f"papers/{part[2]}.yml").is_file():
                yield _Measured(named, part[2], part[3], words)


def _names(named: re.Match[str]) -> tuple[str, ...]:
    numbers = re.findall(r"\d+(?:\.\d+)*", named[2])
    return tuple(f"{named[1].lower()} {number}" for number in numbers)


def _differences_not_named(each: _Measured) -> list[str]:
    """List the parameters of a point that differ from the figure's, and that no word names.

    Of several runs or figures the nearest counts.
    """
    runs = [run for name in each.named for run in _runs(each.paper)[name]]
    if any(each.point == run or each.point.startswith(f"{run}@") for run in runs):
        return []
    differing = [parameters([_described(run), _described(each.point)]) for run in runs]
    return min(
        (
            [
                f"{name} {row.values[1]}"
                for name, row in rows.items()
                if not name.startswith(_NO_SETTING) and not _in_words(row.values[1], each.words)
            ]
            for rows in differing
        ),
        key=len,
    )


def _in_words(value: object, words: str) -> bool:
    """Tell whether a sentence has a value; a field without a value needs no words."""
    if isinstance(value, int | float):
        return re.search(rf"(?<![\w.]){re.escape(f'{value:g}')}(?!\.?\w)", words) is not None
    return value is None or str(value).lower() in words


@cache
def _described(point: str) -> Described:
    return describe(load_point(point))


@cache
def _runs(paper: str) -> dict[str, list[str]]:
    """Return the runs of each figure of a paper; Ge's table 2 has those of the examples."""
    runs: dict[str, list[str]] = {}
    page = yaml.safe_load((ROOT / f"papers/{paper}.yml").read_text(encoding="utf-8"))
    for figure in page["figures"]:
        runs.setdefault(figure["name"].partition(" (")[0], []).extend(figure["runs"])
    for number, run in enumerate(runs.get("table 2", ())[:5], start=1):
        runs[f"example {number}"] = [run]
    return runs


def test_no_figure_is_without_its_source() -> None:
    """A share or decimal has a link, unless it is in italics, as a paper's, or a setting."""
    bare = _ELSE.sub("", TEXTS.replace("**", ""))
    assert re.findall(r"\d[\d.,]*\s*%|\d+\.\d+", bare) == []
    assert len(_FIGURE.findall(TEXTS)) > 50


def test_ten_findings_have_a_picture_and_three_sentences() -> None:
    """Each of the ten findings has a headline, a picture, three sentences and a link to more."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    findings = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert len(findings) == len(FINDINGS) == 10
    for name, finding in zip(FINDINGS, findings, strict=True):
        _, picture, words, more = finding.strip().split("\n\n")
        assert picture.endswith(f"](assets/finding-{name}.svg)")
        assert [line[-1] for line in words.splitlines()] == ["."] * 3
        assert more.startswith("More: [")


def test_missed_predictions_are_counted() -> None:
    """The page counts the predicted values that did not come out, with points and experiments."""
    missed = [
        each.said.point
        for each in results_page.judge_kept_numbers()
        if each.verdict is not Verdict.PASS
    ]
    points = set(missed)
    experiments = {point.partition("@")[0] for point in points}
    assert (
        f"**{len(missed)} predicted values did not come out**, "
        f"at {len(points)} points of {len(experiments)} experiments."
    ) in TEXTS


def test_queues_over_the_bound_of_the_lemmas_are_counted() -> None:
    """22 of 72 queues are over Lemma 4's or 5's bound; 46 bounds are an own window or more."""
    over, idle = [], []
    for point in map(load_point, filter(re.compile("kalampoukas-theorems@").match, kept_numbers())):
        own = dict(zip(("forward", "reverse"), point.experiment.flows, strict=True))
        for claim in (each for each in point.claims if each.metric.startswith("queue_peak_data")):
            measured, window = _kept(point.id)[claim.metric], own[claim.metric[16:]].window_packets
            assert claim.at_most
            assert window
            over.append(claim.at_most < measured <= claim.at_most + 1)
            assert over[-1] == (claim.differs is not None)
            idle.append(claim.at_most > window - 1e-9)
    assert (len(over), sum(over), sum(idle)) == (72, 22, 46)
    text = " ".join(TEXTS.split())
    assert "Of 72 queues of `kalampoukas-theorems` 22 are over the bound" in text
    assert "In 46 cases the bound is at least the sender's own window" in text


def test_readings_of_the_allocator_are_counted() -> None:
    """Ten of 28 readings meet the claims on figures 4 to 6 and lock at 40 ms, three at 25 ms."""
    readings = [
        point.partition(",")[2] for point in kept_numbers() if "readings@figure=4,start_" in point
    ]
    fitting = [reading for reading in readings if _fits(reading)]
    locking = [
        sum(_locks(f"dtm-fig9-readings@delay_ms={delay},{reading}") for reading in fitting)
        for delay in (40, 25)
    ]
    assert (len(readings), *locking) == (28, 10, 3)
    text = " ".join(TEXTS.split())
    assert "ten fit figures 4, 5 and 6 and also give figure 9's lock at 40 ms, and three" in text


def _fits(reading: str) -> bool:
    """Apply the claims of dtm-fig4, dtm-fig5 and dtm-fig6."""
    rows = [_kept(f"dtm-readings@figure={figure},{reading}") for figure in (4, 5, 6)]
    spare = rows[0]["capacity_unused.channel"]
    changes = [row["reallocations.channel"] for row in rows]
    return 0.5 <= spare <= 1.5 and changes[:2] == [0, 0] and changes[2] >= 2


def _locks(point: str) -> bool:
    """Apply dtm-fig9's claim that neither flow reaches 5 Mbit/s."""
    return all(_kept(point)[f"throughput.{name}"] <= 4.5 for name in ("first", "second"))
