"""verdicts.json: a run's metrics beside the statements on them."""

from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from twoway.contract.judge import Verdict, judge
from twoway.contract.metrics import FidelityRow
from twoway.contract.model import Document, FileName, Record
from twoway.contract.statements import Bounds, Claim, Finding, Prediction, Statement, in_words

VERDICTS = "verdicts.json"
# Exit codes of a run: everything is as the experiment's file says; something is not; the run's
# clock decides fewer than half of the statements.
GOOD, BAD, TELLS_LITTLE = 0, 1, 3


class Judged(Record):
    """A statement, its measurement, and the verdict."""

    measured: float | None = Field(description="the metric's value; null if undefined")
    unit: str = Field(description="the metric's unit, 1 for shares and counts")
    verdict: Verdict = Field(description="the outcome")
    note: str | None = Field(default=None, description="other grounds of the verdict")
    listed: bool = Field(
        default=True,
        description="false if a prediction's or claim's verdict is not what its file lists",
    )


class PredictionRow(Prediction, Judged):
    """A prediction and its verdict."""

    @property
    def used(self) -> float | None:
        """The share of its tolerance by which the measurement is off; None without a tolerance."""
        if self.measured is None or self.value is None or not self.tolerance:
            return None
        return abs(self.measured - self.value) / self.tolerance

    @property
    def printed_holds(self) -> bool | None:
        """True if the paper's formula is within the tolerance, too; None without the formula."""
        if self.printed is None or self.value is None:
            return None
        said = Bounds(value=self.printed, tolerance=self.tolerance)
        return judge(said, self.measured) is Verdict.PASS


class ClaimRow(Claim, Judged):
    """A claim and its verdict."""

    compared: float | None = Field(
        default=None, description="the number compared with the claim, if `against` another run"
    )


class FindingRow(Finding, Judged):
    """A finding and its verdict."""


Row = PredictionRow | ClaimRow | FindingRow
# Counts of rows have predictions of the testbed itself under this name.
TESTBED_CHECK = "testbed check"
_KINDS: dict[type, str] = {
    PredictionRow: "prediction",
    ClaimRow: "claim",
    FindingRow: "finding",
    FidelityRow: "fidelity check",
}


class Verdicts(Document):
    """Verdicts on a run."""

    schema_: Literal[1] = Field(default=1, description="version of this format: 1")
    experiment: FileName = Field(description="the experiment's id, with its point")
    run: FileName = Field(description="the run's name")
    spec_sha256: str = Field(description="as in manifest.json")
    predictions: tuple[PredictionRow, ...]
    claims: tuple[ClaimRow, ...]
    findings: tuple[FindingRow, ...]
    fidelity: tuple[FidelityRow, ...] = Field(description="tests of the testbed, of metrics.json")

    @property
    def rows(self) -> tuple[Row, ...]:
        """All statements about the run."""
        return (*self.predictions, *self.claims, *self.findings)

    @property
    def told(self) -> int:
        """Number of rows that the run's clock can decide."""
        return sum(row.verdict is not Verdict.CANNOT_TELL for row in self.rows)

    @property
    def untold_checks(self) -> list[FidelityRow]:
        """Checks that need a verdict and have none in this run."""
        return [row for row in self.fidelity if row.needed and row.verdict is Verdict.CANNOT_TELL]

    @property
    def tells_little(self) -> bool:
        """True if the clock decides fewer than half of the rows, or not all required checks."""
        return 2 * self.told < len(self.rows) or bool(self.untold_checks)

    @property
    def misses(self) -> list[Row | FidelityRow]:
        """The rows and checks that fail the run."""
        return [row for row in (*self.rows, *self.fidelity) if fails(row)]

    @property
    def contradicted(self) -> list[PredictionRow]:
        """The predictions that the run contradicts as the experiment's file has on record."""
        return [row for row in self.predictions if row.verdict is Verdict.CONTRADICTED]

    @property
    def changed(self) -> list[FindingRow]:
        """The findings that the run does not confirm; they fail no run."""
        return [row for row in self.findings if row.verdict is Verdict.CHANGED]

    @property
    def differs(self) -> bool:
        """True if a row that fails no run differs from its statement without explanation."""
        seen = {Verdict.CONTRADICTED, Verdict.UNEXPLAINED, Verdict.CHANGED}
        return any(row.verdict in seen for row in self.rows)

    @property
    def exit_code(self) -> int:
        """The run's exit code."""
        if self.misses:
            return BAD
        return TELLS_LITTLE if self.tells_little else GOOD

    @property
    def headline(self) -> str:
        """The verdict on the run, in words."""
        if any(fails(check) for check in self.fidelity):
            return "not to be believed: a fidelity check fails"
        if self.misses:
            return "; ".join(_counted(self.misses))
        if self.untold_checks:
            return f"this run's clock is too coarse: {self.untold_checks[0].check}"
        if self.tells_little:
            return f"this run's clock decides only {self.told} of {len(self.rows)} numbers"
        warns = Verdict.WARNING, Verdict.NOT_PROVEN
        warnings = [check for check in self.fidelity if check.verdict in warns]
        return "; ".join(_counted((*self.rows, *warnings))) or "every fidelity check holds"


def fails(row: Row | FidelityRow) -> bool:
    """Tell whether a row fails its run.

    A prediction or claim fails its run if its verdict is not the one that its file lists.
    """
    return row.verdict is Verdict.FAIL or (isinstance(row, Judged) and not row.listed)


def _counted(rows: Iterable[Row | FidelityRow]) -> Iterator[str]:
    """Count the verdicts by kind of row, in words; a claim counts once."""
    found: dict[tuple[str, Verdict], set[object]] = {}
    for row in rows:
        said: object = id(row)
        if isinstance(row, ClaimRow):
            said = row.claim, row.by
        elif isinstance(row, FindingRow):
            said = row.finding
        found.setdefault((_kind(row), row.verdict), set()).add(said)
    for (kind, verdict), each in found.items():
        yield f"{len(each)} {kind}{'s' if len(each) > 1 else ''}: {verdict.value}"


def _kind(row: Row | FidelityRow) -> str:
    return TESTBED_CHECK if isinstance(row, PredictionRow) and row.of_testbed else _KINDS[type(row)]


def points_in_words(points: int, missed: int, changed: int) -> str:
    """Write how many points are as their files say.

    Args:
        points: number of points.
        missed: number of points without a run, or with a failed one.
        changed: number of other points with a finding that is not as stated.
    """
    found = f"{points - missed - changed} of {points} points are as their files say"
    more = f"; {changed} have a finding that is not as stated, which fails no run"
    return found + (more if changed else "")


def row_in_words(row: Row | FidelityRow) -> str:
    """Write a row as one line."""
    if isinstance(row, FidelityRow):
        return f"{row.check}: {row.value}, bound {row.bound}"
    measured = "none" if row.measured is None else f"{row.measured:.4g}"
    note = f"; {row.note}" if row.note else ""
    more = ""
    if isinstance(row, ClaimRow) and row.compared is not None:
        more = f"{row.compared:+.4g} against {row.against}, "
    return f"{row.metric:<32} {measured:>8} measured, {more}{in_words(row)} {_source(row)}{note}"


def _source(row: Statement) -> str:
    if isinstance(row, Prediction):
        return f"predicted by {row.theory}"
    if isinstance(row, Claim):
        return f"in {row.where}" if row.by == "paper" else f"by their simulator, {row.where}"
    return "seen before"
