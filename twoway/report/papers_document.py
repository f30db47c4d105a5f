"""The reproduction report as documents: papers.json and summary.json."""

import os
import platform
import re
from collections.abc import Iterable, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from twoway.contract.statements import FORMS
from twoway.report.claims import Claim, Said
from twoway.report.paper_figures import PaperFigure
from twoway.report.paper_page import COUNTED, Paper, Section
from twoway.report.results import Experiment, Result


def papers_document(
    papers: Iterable[Paper], experiments: Sequence[Experiment], site: Path
) -> dict[str, Any]:
    """Return the content of papers.json; its paths are relative to the site's folder."""
    return {
        "provenance": _provenance(experiments),
        "papers": [_paper_document(paper, site) for paper in papers],
    }


def summary_document(papers: Iterable[Paper], experiments: Sequence[Experiment]) -> dict[str, Any]:
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
