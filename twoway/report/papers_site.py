"""The reproduction report: index, a page per paper, papers.json, summary.json and tables."""

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
from twoway.report.curves import pictures
from twoway.report.paper_figures import PaperFigure, paper_figures
from twoway.report.paper_page import COUNTED, Paper, Section
from twoway.report.papers import Source, find_paper
from twoway.report.papers_document import papers_document, summary_document
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
    document = papers_document(papers, experiments, site)
    write_json(site / "papers.json", document)
    write_json(site / "summary.json", summary_document(papers, experiments), rows="papers")
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
