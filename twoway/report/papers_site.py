"""The reproduction report: index, a page per paper, papers.json, summary.json and tables."""

import os
import platform
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from capture_analysis.pictures.figure import Figure

from twoway.contract.judge import Verdict
from twoway.contract.statements import FORMS
from twoway.contract.writing import write_json
from twoway.report import pages
from twoway.report.claims import Claim, Said
from twoway.report.curves import pictures
from twoway.report.paper_figures import PaperFigure, paper_figures
from twoway.report.paper_page import COUNTED, Paper, Section
from twoway.report.papers import Source, find_paper
from twoway.report.papers_tables import write_tables
from twoway.report.results import Experiment, Result, read_results
from twoway.report.thumbnail import thumbnail

# A table with more rows than this is folded.
ROWS_SHOWN = 12
# The page on experiments that reproduce no paper.
_BEYOND = Source("beyond", "Beyond the papers")
# Verdicts that get a column only if a claim has them.
_OPTIONAL_COLUMNS = (Verdict.CANNOT_TELL, Verdict.NO_RUN)


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
    document = _papers_document(papers, experiments, site)
    write_json(site / "papers.json", document)
    write_json(site / "summary.json", _summary_document(papers, experiments), rows="papers")
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
        drawn = paper_figures(
            source, shown, lambda run: _path_to(pages.page_of(run.folder), site), failed
        )
        papers.append(Paper(source, tuple(sections), drawn))
    return sorted(papers, key=lambda paper: (paper.source is _BEYOND, paper.title))


def _others(experiment: Experiment, drawn: Sequence[PaperFigure]) -> list[Figure]:
    """Draw an experiment's main figures, except those that are the paper's."""
    if not experiment.axes and any(experiment.id in each.experiments for each in drawn):
        return []  # the run's report has every picture
    covered = {name for each in drawn for name in each.covers}
    return [figure for figure in pictures(experiment) if figure.id not in covered]


def _report_of(result: Result, site: Path) -> str | None:
    """Build the link to a run's own report; None if it has none."""
    page = pages.page_of(result.folder)
    return None if page == result.folder else _path_to(page, site)


def _path_to(path: Path, site: Path) -> str:
    return relpath(path.resolve(), site.resolve())


def _papers_document(
    papers: Iterable[Paper], experiments: Sequence[Experiment], site: Path
) -> dict[str, Any]:
    """Return the content of papers.json; its paths are relative to the site's folder."""
    return {
        "provenance": _provenance(experiments),
        "papers": [_paper_document(paper, site) for paper in papers],
    }


def _summary_document(papers: Iterable[Paper], experiments: Sequence[Experiment]) -> dict[str, Any]:
    """Return the content of summary.json: machine, versions, and counts by paper."""
    return {
        "machine": _machine(),
        "provenance": _provenance(experiments),
        "runs": sum(len(experiment.results) for experiment in experiments),
        "papers": [_counts(paper) for paper in papers],
    }


def _provenance(experiments: Sequence[Experiment]) -> dict[str, list[str]]:
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
        "run": _path_to(result.folder, site),
        "identity": manifest.identity,
        "kernel": manifest.kernel.release,
        "git": manifest.git,
        "fidelity": result.metrics.sound,
        "speed": manifest.timing.speed,
        "predictions": [_row_document(Said(result, row)) for row in rows.predictions],
        "findings": [_row_document(Said(result, row)) for row in rows.findings],
        "pass": not rows.misses,
    }
