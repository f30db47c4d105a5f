"""A paper's page as data: its experiments, claims, predictions and figures."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from twoway.contract.judge import Verdict
from twoway.contract.statements import Form
from twoway.contract.verdicts import TESTBED_CHECK, FindingRow, PredictionRow, Row
from twoway.report.claims import (
    Claim,
    Said,
    Sharpness,
    claims,
    findings,
    predictions,
    worst_percent,
)
from twoway.report.paper_figures import PaperFigure
from twoway.report.papers import Source
from twoway.report.results import Experiment, Result

# The verdicts by which claims are counted, in order.
COUNTED = (
    Verdict.UNEXPLAINED,
    Verdict.EXPLAINED,
    Verdict.PAPER_DIFFERS,
    Verdict.AGREES,
    Verdict.NOT_COMPARABLE,
    Verdict.CANNOT_TELL,
    Verdict.NO_RUN,
)


@dataclass(frozen=True)
class Section:
    """An experiment on its paper's page."""

    experiment: Experiment

    @cached_property
    def claims(self) -> list[Claim]:
        """The claims that the experiment measures."""
        return claims([self.experiment])

    @cached_property
    def predictions(self) -> list[Said[PredictionRow]]:
        """The predictions for the experiment's points."""
        return [said for said in predictions(self.experiment) if not said.row.of_testbed]

    @cached_property
    def testbed_checks(self) -> list[Said[PredictionRow]]:
        """The predictions for the testbed itself."""
        return [said for said in predictions(self.experiment) if said.row.of_testbed]

    @cached_property
    def findings(self) -> list[Said[FindingRow]]:
        """The findings about the experiment's points."""
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
            *_count_verdicts("prediction", (said.row.verdict for said in self.predictions)),
            *_count_verdicts(TESTBED_CHECK, (said.row.verdict for said in self.testbed_checks)),
            *_count_verdicts("claim", (claim.verdict for claim in self.claims)),
            *_count_verdicts("finding", (said.row.verdict for said in self.findings)),
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
        return self.file.removesuffix("html") + "jsonl"

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
        return _count_kept(self.predictions)

    @property
    def checks_kept(self) -> int:
        """The number of predictions of the testbed that hold."""
        return _count_kept(self.testbed_checks)

    @property
    def sharpness(self) -> Sharpness:
        """The sharpness of the predictions, as counts."""
        return Sharpness.from_rows(said.row for said in self.predictions)

    @property
    def contradicted(self) -> list[Said[PredictionRow]]:
        """The predictions that runs contradict, on record."""
        return [said for said in self.predictions if said.row.verdict is Verdict.CONTRADICTED]


def _count_verdicts(what: str, verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Count verdicts, in words."""
    for verdict, count in Counter(verdicts).items():
        yield f"{count} {what}{'s' if count > 1 else ''}: {verdict.value}"


def _count_kept(predicted: Iterable[Said[PredictionRow]]) -> int:
    return sum(said.row.verdict is Verdict.PASS for said in predicted)
