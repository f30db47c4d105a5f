"""The reproduction report: index, a page per paper, papers.json, summary.json and tables."""

import csv
import io
import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import relpath
from pathlib import Path
from typing import Any

from capture_analysis.pictures.figure import Figure

from twoway.contract.judge import Verdict
from twoway.contract.statements import FORMS, Form, in_words
from twoway.contract.verdicts import TESTBED_CHECK, FindingRow, PredictionRow, Row
from twoway.contract.writing import write_json, written_aside
from twoway.report import pages
from twoway.report.cells import cells
from twoway.report.claims import (
    Claim,
    Said,
    Sharpness,
    claims,
    findings,
    predictions,
    worst_percent,
)
from twoway.report.curves import pictures
from twoway.report.paper_figures import PaperFigure, paper_figures
from twoway.report.papers import Source, find_paper
from twoway.report.results import Experiment, Result, read_results
from twoway.report.thumbnail import thumbnail

# A table with more rows than this is folded.
ROWS_SHOWN = 12
# The page on experiments that reproduce no paper.
_BEYOND = Source("beyond", "Beyond the papers")
# The verdicts by which the index counts claims, in order.
COUNTED = (
    Verdict.UNEXPLAINED,
    Verdict.EXPLAINED,
    Verdict.PAPER_DIFFERS,
    Verdict.AGREES,
    Verdict.NOT_COMPARABLE,
    Verdict.CANNOT_TELL,
    Verdict.NO_RUN,
)
# Verdicts that get a column only if a claim has them.
_OPTIONAL_COLUMNS = (Verdict.CANNOT_TELL, Verdict.NO_RUN)


@dataclass(frozen=True)
class Section:
    """An experiment on its paper's page."""

    experiment: Experiment

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims that it measures."""
        return claims([self.experiment])

    @cached_property
    def predictions(self) -> list[Said[PredictionRow]]:
        """The predictions for its points."""
        return [said for said in predictions(self.experiment) if not said.row.of_testbed]

    @cached_property
    def testbed_checks(self) -> list[Said[PredictionRow]]:
        """The predictions for the testbed itself."""
        return [said for said in predictions(self.experiment) if said.row.of_testbed]

    @cached_property
    def findings(self) -> list[Said[FindingRow]]:
        """The findings about its points."""
        return list(findings(self.experiment))

    @property
    def rows(self) -> list[Said[Row]]:
        """All statements about its points."""
        results = self.experiment.results
        return [Said(result, row) for result in results for row in result.verdicts.rows]

    @property
    def headline(self) -> str:
        """The verdict on the experiment, in words."""
        unsound = [result for result in self.experiment.results if not result.metrics.sound]
        if unsound:
            return f"not to be believed: a fidelity check of {unsound[0].id} fails"
        words = [
            *_counted("prediction", (said.row.verdict for said in self.predictions)),
            *_counted(TESTBED_CHECK, (said.row.verdict for said in self.testbed_checks)),
            *_counted("claim", (claim.verdict for claim in self.claims)),
            *_counted("finding", (said.row.verdict for said in self.findings)),
        ]
        return "; ".join(words) or "measured"

    @property
    def good(self) -> bool:
        """True if everything is as the experiment's file says."""
        return not any(result.verdicts.misses for result in self.experiment.results)

    @property
    def worst(self) -> float | None:
        """The largest difference from predictions, per cent."""
        return worst_percent(self.predictions)

    @property
    def reasons(self) -> list[str]:
        """The origins of all values and tolerances, without repetitions."""
        found = [f"{p.row.metric.partition('.')[0]}: {p.row.why}" for p in self.predictions]
        found += [f"{each.claim}: {said.row.why}" for each in self.claims for said in each.rows]
        return list(dict.fromkeys(found))

    @property
    def simulated_s(self) -> float:
        """Simulated time of all runs together, s."""
        return sum(r.manifest.timing.simulated_s for r in self.experiment.results)

    @property
    def wall_s(self) -> float:
        """Wall time of all runs, one after the other, s."""
        return sum(r.manifest.timing.wall_s for r in self.experiment.results)

    @property
    def speed(self) -> float:
        """Simulated over wall time."""
        return self.simulated_s / self.wall_s


@dataclass(frozen=True)
class Paper:
    """A paper's page."""

    source: Source
    sections: tuple[Section, ...]
    figures: list[PaperFigure] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Authors, title, year."""
        return self.source.title

    @property
    def file(self) -> str:
        """The page's name."""
        return re.sub(r"[^a-z0-9]+", "-", self.source.id.lower()).strip("-") + ".html"

    @property
    def points(self) -> str:
        """The name of the page with every number of its points."""
        return self.file.replace(".html", "-points.html")

    @property
    def table(self) -> str:
        """The name of the table of its numbers."""
        return self.file.removesuffix("html") + "csv"

    @cached_property
    def claims(self) -> list[Claim]:
        """The paper's claims, each once, the worst first."""
        return claims(section.experiment for section in self.sections)

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of claims by verdict."""
        return dict(Counter(claim.verdict for claim in self.claims))

    def of_form(self, form: Form) -> dict[str, int]:
        """Count the claims of a form: all, and by verdict."""
        found = Counter(claim.verdict for claim in self.claims if claim.form == form)
        by_verdict = {verdict.value: found[verdict] for verdict in COUNTED}
        return {"claims": found.total(), **by_verdict}

    @cached_property
    def pictured(self) -> list[Result]:
        """The runs whose captures its pages are drawn from."""
        drawn = [each.pictured for each in self.figures if each.pictured]
        shown = [section.experiment for section in self.sections]
        drawn += [experiment.results[0] for experiment in shown if not experiment.axes]
        return list({result.id: result for result in drawn}.values())

    @property
    def predictions(self) -> list[Said[PredictionRow]]:
        """All predictions for the paper's experiments."""
        return [said for section in self.sections for said in section.predictions]

    @property
    def testbed_checks(self) -> list[Said[PredictionRow]]:
        """All that is predicted of the testbed itself."""
        return [said for section in self.sections for said in section.testbed_checks]

    @property
    def kept(self) -> int:
        """The number of predictions that hold."""
        return _kept(self.predictions)

    @property
    def checks_kept(self) -> int:
        """The number of predictions of the testbed that hold."""
        return _kept(self.testbed_checks)

    @property
    def sharpness(self) -> Sharpness:
        """The sharpness of the predictions, as counts."""
        return Sharpness.of(said.row for said in self.predictions)

    @property
    def contradicted(self) -> list[Said[PredictionRow]]:
        """The predictions that runs contradict, on record."""
        return [said for said in self.predictions if said.row.verdict is Verdict.CONTRADICTED]


def write_site(
    folders: Iterable[Path], site: Path, whole: int, failed: Sequence[str] = ()
) -> dict[str, Any]:
    """Write the reproduction report on runs.

    Args:
        folders: folders of finished, analysed runs.
        site: the report's folder; it replaces the pages of an earlier report.
        whole: the number of all experiments, if only some are shown.
        failed: ids of the points that have no run.

    Returns: the content of papers.json.
    Raises: AnalysisError naming a folder that is no analysed run.
    """
    experiments = read_results(folders)
    papers = _papers(experiments, site, failed)
    site.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        others = {s.experiment.id: _others(s.experiment, paper.figures) for s in paper.sections}
        drawn = [each.figure for each in paper.figures if each.figure]
        pages.write(
            site / paper.file,
            "paper.html.j2",
            [*drawn, *(figure for each in others.values() for figure in each)],
            paper=paper,
            by_experiment=others,
            report_of=lambda result: _report_of(result, site),
        )
        pages.write(
            site / paper.points, "paper_points.html.j2", [], paper=paper, rows_shown=ROWS_SHOWN
        )
    found = {verdict for paper in papers for verdict in paper.counts}
    counted = [
        verdict for verdict in COUNTED if verdict not in _OPTIONAL_COLUMNS or verdict in found
    ]
    pages.write(
        site / "index.html",
        "papers.html.j2",
        [],
        papers=papers,
        counted=counted,
        forms=FORMS,
        whole=whole,
        thumbnail=thumbnail,
        in_figures=Counter(each.verdict for paper in papers for each in paper.figures),
    )
    write_tables(papers, site)
    document = {
        "provenance": _provenance(experiments),
        "papers": [_paper_document(paper, site) for paper in papers],
    }
    write_json(site / "papers.json", document)
    write_json(
        site / "summary.json",
        {
            "machine": _machine(),
            "provenance": document["provenance"],
            "runs": sum(len(experiment.results) for experiment in experiments),
            "papers": [_counts(paper) for paper in papers],
        },
    )
    return document


def _papers(experiments: list[Experiment], site: Path, failed: Sequence[str]) -> list[Paper]:
    """Group experiments by paper, and draw its figures; experiments without a paper come last."""
    by_paper: dict[str, list[Section]] = {}
    for experiment in experiments:
        by_paper.setdefault(experiment.paper, []).append(Section(experiment))
    papers = []
    for name, sections in by_paper.items():
        source = find_paper(name) if name else _BEYOND
        shown = [section.experiment for section in sections]
        drawn = paper_figures(source, shown, lambda result: _points_of(result, site), failed)
        papers.append(Paper(source, tuple(sections), drawn))
    return sorted(papers, key=lambda paper: (paper.source is _BEYOND, paper.title))


def _others(experiment: Experiment, drawn: Sequence[PaperFigure]) -> list[Figure]:
    """Draw an experiment's main figures, except those that are the paper's."""
    if not experiment.axes and any(experiment.id in each.experiments for each in drawn):
        return []  # the run's report has every picture
    covered = {name for each in drawn for name in each.covers}
    return [figure for figure in pictures(experiment) if figure.id not in covered]


def _counted(what: str, verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Count verdicts, in words."""
    for verdict, count in Counter(verdicts).items():
        yield f"{count} {what}{'s' if count > 1 else ''}: {verdict.value}"


def _kept(predicted: Iterable[Said[PredictionRow]]) -> int:
    return sum(said.row.verdict is Verdict.PASS for said in predicted)


def _report_of(result: Result, site: Path) -> str | None:
    """Build the link to a run's own report; None if it has none."""
    report = result.folder / "report.html"
    return relpath(report.resolve(), site.resolve()) if report.is_file() else None


def _points_of(result: Result, site: Path) -> str:
    """Build the link to a run's report, or to its folder."""
    return _report_of(result, site) or relpath(result.folder.resolve(), site.resolve())


def _provenance(experiments: list[Experiment]) -> dict[str, list[str]]:
    """List the kernels, guests and revisions of all runs."""
    runs = [result.manifest for experiment in experiments for result in experiment.results]
    return {
        "kernel": sorted({run.kernel.release for run in runs}),
        "guest": sorted({run.kernel.key for run in runs}),
        "backend": sorted({run.backend for run in runs}),
        "git": sorted({run.git for run in runs}),
    }


def _machine() -> dict[str, Any]:
    """Describe the machine that writes the report."""
    processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    return {
        "processor": processor[1] if processor else platform.machine(),
        "processors": os.cpu_count(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "python": platform.python_version(),
    }


def _counts(paper: Paper) -> dict[str, Any]:
    return {
        "id": paper.source.id,
        "title": paper.title,
        "claims": len(paper.claims),
        "forms": {form: paper.of_form(form) for form in FORMS},
        **{verdict.value: paper.counts.get(verdict, 0) for verdict in COUNTED},
        "untested": len(paper.source.untested),
        "predictions": len(paper.predictions),
        "kept": paper.kept,
        "contradicted": len(paper.contradicted),
        "testbed_checks": len(paper.testbed_checks),
        "testbed_checks_kept": paper.checks_kept,
        "sharpness": {
            "exact": paper.sharpness.exact,
            "bounds": paper.sharpness.bounds,
            "with_tolerance": len(paper.sharpness.used),
            "median_used": paper.sharpness.median,
            "below_a_twentieth": paper.sharpness.slack,
            "printed_formula": len(paper.sharpness.printed),
            "printed_formula_fails": paper.sharpness.printed_fails,
        },
    }


def _paper_document(paper: Paper, site: Path) -> dict[str, Any]:
    return {
        **_counts(paper),
        "page": paper.file,
        "untested_claims": [each.model_dump() for each in paper.source.untested],
        "figures": [_figure_document(each) for each in paper.figures],
        "pictured": [result.id for result in paper.pictured],
        "verdicts": [_claim_document(claim) for claim in paper.claims],
        "experiments": [_section_document(section, site) for section in paper.sections],
    }


def _figure_document(figure: PaperFigure) -> dict[str, Any]:
    return {
        "figure": figure.asked.name,
        "shows": figure.asked.shows,
        "runs": [result.id for result in figure.results],
        "verdict": figure.verdict,
        "counted": figure.counted,
    }


def _claim_document(claim: Claim) -> dict[str, Any]:
    return {
        "claim": claim.claim,
        "where": claim.where,
        "by": claim.by,
        "form": claim.form,
        "verdict": claim.verdict.value,
        "listed": claim.listed,
        "rows": [{"run": said.result.id, **_row_document(said)} for said in claim.rows],
    }


def _row_document(said: Said[Any]) -> dict[str, Any]:
    return {
        **said.row.model_dump(mode="json", exclude={"claim", "where", "by", "differs"}),
        "gap": said.gap,
        "gap_percent": said.gap_percent,
    }


def _section_document(section: Section, site: Path) -> dict[str, Any]:
    experiment = section.experiment
    return {
        "id": experiment.id,
        "title": experiment.said.title,
        "pass": section.good,
        "headline": section.headline,
        "command": f"twoway run {experiment.id}",
        "simulated_s": section.simulated_s,
        "wall_s": round(section.wall_s, 3),
        "speed": round(section.speed, 2),
        "points": [_result_document(result, site) for result in experiment.results],
    }


def _result_document(result: Result, site: Path) -> dict[str, Any]:
    manifest = result.manifest
    rows = result.verdicts
    return {
        "id": result.id,
        "point": result.point,
        "run": relpath(result.folder.resolve(), site.resolve()),
        "identity": manifest.identity,
        "kernel": manifest.kernel.release,
        "git": manifest.git,
        "fidelity": result.metrics.sound,
        "speed": manifest.timing.speed,
        "predictions": [_row_document(Said(result, row)) for row in rows.predictions],
        "findings": [_row_document(Said(result, row)) for row in rows.findings],
        "pass": not rows.misses,
    }


def write_tables(papers: Iterable[Paper], folder: Path) -> None:
    """Write claims.csv, predictions.csv, fidelity.csv, and numbers/PAPER.csv, a row per number.

    The tables are small enough to be kept with the code.
    """
    claimed = ([paper.source.id, *_claim_line(each)] for paper in papers for each in paper.claims)
    _write_table(folder / "claims.csv", ("paper", *_CLAIM_COLUMNS), claimed)
    for name, of in (("predictions", "predictions"), ("fidelity", "testbed_checks")):
        predicted = (_prediction_line(said) for paper in papers for said in getattr(paper, of))
        _write_table(folder / f"{name}.csv", _PREDICTION_COLUMNS, predicted)
    (folder / "numbers").mkdir(exist_ok=True)
    for paper in papers:
        found = {
            (said.result.id, said.row.metric): _number(said.row.measured)
            for section in paper.sections
            for said in section.rows
        }
        rows = ([*key, value] for key, value in found.items())
        _write_table(folder / "numbers" / paper.table, ("point", "metric", "measured"), rows)


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


def _claim_line(claim: Claim) -> list[str]:
    """Write a claim with the row that decides its verdict."""
    said = claim.worst
    printed = in_words(said.row)
    return [
        *(claim.claim, claim.where, claim.by, claim.form, claim.verdict.value),
        *(said.result.id, said.row.metric, _number(said.measured), printed),
    ]


_PREDICTION_COLUMNS = (
    *("point", "metric", "theory", "value", "tolerance", "at_least", "at_most"),
    *("printed", "measured", "verdict", "used", "printed_holds"),
)


def _prediction_line(said: Said[PredictionRow]) -> list[str]:
    """Write a prediction, what the paper's formula gives, what came out, and how sharp it is."""
    row = said.row
    numbers = (row.value, row.tolerance, row.at_least, row.at_most, row.printed, row.measured)
    used = "" if row.used is None else f"{row.used:.2g}"
    holds = {None: "", True: "yes", False: "no"}[row.printed_holds]
    said_of = [said.result.id, row.metric, row.theory]
    return [*said_of, *map(_number, numbers), row.verdict.value, used, holds]


def _write_table(path: Path, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(map(cells, rows))
    with written_aside(path) as file:
        file.write(text.getvalue().encode())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"
