"""The reproduction report: index, a page per paper, papers.json."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from os.path import relpath
from pathlib import Path
from typing import Any

from twoway.contract.metrics import ExpectationRow
from twoway.contract.verdict import Bounds, Verdict
from twoway.contract.writing import write_json
from twoway.report import templated
from twoway.report.claims import SOURCES, Claim, claims, worst_percent
from twoway.report.curves import pictures
from twoway.report.results import BEYOND, Experiment, Result, read_results

# A table with more rows than this is folded.
ROWS_SHOWN = 12


@dataclass(frozen=True)
class Section:
    """An experiment on its paper's page."""

    experiment: Experiment

    @cached_property
    def claims(self) -> list[Claim]:
        """All claims about the experiment."""
        return claims(self.experiment)

    @property
    def holds(self) -> bool:
        """True if every run passes, as far as can be told."""
        return all(result.metrics.pass_ for result in self.experiment.results)

    @property
    def misses(self) -> int:
        """Number of claims that do not hold, without those that cannot be told."""
        return sum(claim.verdict is Verdict.FAIL for claim in self.claims)

    @property
    def verdict(self) -> str:
        """The verdict on all claims, in words."""
        if self.misses:
            return f"{self.misses} of {len(self.claims)} claims do not hold"
        if not all(result.fidelity_holds for result in self.experiment.results):
            return "a fidelity check fails"
        untold = sum(not claim.holds for claim in self.claims)
        if untold:
            return f"{untold} of {len(self.claims)} claims cannot be told"
        return "all claims hold"

    def worst(self, source: str) -> float | None:
        """Find the largest difference from a source's values, per cent."""
        return worst_percent(self.claims, source)

    @property
    def sources(self) -> set[str]:
        """The sources that make claims about the experiment."""
        return {source for claim in self.claims for source in claim.said}

    @property
    def reasons(self) -> list[str]:
        """The origins of all values and tolerances, without repetitions."""
        return list(
            dict.fromkeys(
                f"{claim.metric.partition('.')[0]}, {source}: {row.why}"
                for claim in self.claims
                for source, row in claim.said.items()
            )
        )

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

    title: str
    sections: tuple[Section, ...]

    @property
    def file(self) -> str:
        """The page's name: first author and year."""
        year = re.search(r"\b(?:19|20)\d\d\b", self.title)
        words = [re.split(r"\W", self.title)[0], *([year[0]] if year else [])]
        return "-".join(words).lower() + ".html"

    @property
    def claims(self) -> list[Claim]:
        """The claims of all experiments of the paper."""
        return [claim for section in self.sections for claim in section.claims]


def write_site(folders: Iterable[Path], site: Path) -> dict[str, Any]:
    """Write the reproduction report on runs.

    Args:
        folders: folders of finished, analysed runs.
        site: the report's folder; pages of an earlier report are replaced.

    Returns: the content of papers.json.
    Raises: AnalysisError naming a folder that is no analysed run.
    """
    papers = _papers(read_results(folders))
    site.mkdir(parents=True, exist_ok=True)
    for paper in papers:
        figures = {s.experiment.id: pictures(s.experiment) for s in paper.sections}
        templated.write(
            site / paper.file,
            "paper.html.j2",
            [figure for each in figures.values() for figure in each],
            paper=paper,
            papers=papers,
            by_experiment=figures,
            report_of=lambda result: _report_of(result, site),
            rows_shown=ROWS_SHOWN,
        )
    templated.write(site / "index.html", "papers.html.j2", [], papers=papers)
    document = {"papers": [_paper_document(paper, site) for paper in papers]}
    write_json(site / "papers.json", document)
    return document


def _papers(experiments: list[Experiment]) -> list[Paper]:
    """Group experiments by paper; those without a paper come last."""
    titles: dict[str, list[Section]] = {}
    for experiment in experiments:
        titles.setdefault(experiment.paper, []).append(Section(experiment))
    papers = [Paper(title, tuple(sections)) for title, sections in titles.items()]
    return sorted(papers, key=lambda paper: (paper.title == BEYOND, paper.title))


def _report_of(result: Result, site: Path) -> str | None:
    """Build the link to a run's own report; None if it has none."""
    report = result.folder / "report.html"
    return relpath(report.resolve(), site.resolve()) if report.is_file() else None


def _paper_document(paper: Paper, site: Path) -> dict[str, Any]:
    return {
        "title": paper.title,
        "page": paper.file,
        "claims": len(paper.claims),
        "hold": sum(claim.holds for claim in paper.claims),
        "experiments": [_section_document(section, site) for section in paper.sections],
    }


def _section_document(section: Section, site: Path) -> dict[str, Any]:
    experiment = section.experiment
    return {
        "id": experiment.id,
        "title": experiment.said.title,
        "pass": section.holds,
        "command": f"twoway run {experiment.id}",
        "simulated_s": section.simulated_s,
        "wall_s": round(section.wall_s, 3),
        "speed": round(section.speed, 2),
        "points": [
            _result_document(result, [c for c in section.claims if c.result is result], site)
            for result in experiment.results
        ],
    }


def _result_document(result: Result, found: list[Claim], site: Path) -> dict[str, Any]:
    manifest = result.manifest
    return {
        "id": result.id,
        "point": result.point,
        "run": relpath(result.folder.resolve(), site.resolve()),
        "identity": manifest.identity,
        "kernel": manifest.kernel.release,
        "git": manifest.git,
        "fidelity": result.fidelity_holds,
        "speed": manifest.timing.speed,
        "claims": [_claim_document(claim) for claim in found],
    }


def _claim_document(claim: Claim) -> dict[str, Any]:
    return {
        "metric": claim.metric,
        "unit": claim.unit,
        "measured": claim.measured,
        "pass": claim.holds,
        "expected": {
            source: _said(claim, source, claim.said[source])
            for source in SOURCES
            if source in claim.said
        },
    }


def _said(claim: Claim, source: str, row: ExpectationRow) -> dict[str, Any]:
    return {
        **{field: getattr(row, field) for field in Bounds.model_fields},
        "off_percent": claim.off_percent(source),
        "pass": row.pass_,
        "why": row.why,
    }
