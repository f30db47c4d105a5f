"""Repetitions of a sweep's points: the spread of their metrics, and the statements that hold.

A point's repetitions differ only in their seed. A statement holds for all of them, for most, for
some or for none; only in the middle two cases the spread decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from twoway.contract.judge import Verdict
from twoway.contract.metrics import Metrics
from twoway.contract.statements import in_words
from twoway.manifest import SEED, Manifest
from twoway.report.results import Result
from twoway.report.statistics import Spread, spread

_HOLDS = {Verdict.PASS, Verdict.AGREES, Verdict.AS_STATED}
# Fields of Spread, and their names for people.
QUANTILES = {
    "least": "least",
    "lower": "lower quartile",
    "median": "median",
    "upper": "upper quartile",
    "most": "most",
}
_FAILS = {
    Verdict.FAIL,
    Verdict.CONTRADICTED,
    Verdict.EXPLAINED,
    Verdict.UNEXPLAINED,
    Verdict.CHANGED,
}


class Over(NamedTuple):
    """A statement over a point's repetitions.

    Attributes:
        point: the point's name.
        said: the statement, with its metric.
        words: the number of repetitions for which it holds, and whether the spread decides it.
        holds: True if it holds for all of them.
    """

    point: str
    said: str
    words: str
    holds: bool


def without_seed(manifest: Manifest) -> str:
    """Return the name of a run's point without the seed of its repetition."""
    name = manifest.experiment.id
    return name if manifest.repetition is None else name[: name.rindex(f"{SEED}=") - 1]


def group_runs(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Group runs by their points, each with all of its repetitions."""
    found: dict[str, list[Result]] = {}
    for each in results:
        found.setdefault(without_seed(each.manifest), []).append(each)
    return found


def summarise_runs(runs: Sequence[Metrics]) -> dict[str, Metrics]:
    """Summarise repetitions as metrics, by the names of quantiles from "least" to "most"."""
    found = {
        name: spread(each.metrics[name].value for each in runs if name in each.metrics)
        for name in runs[0].metrics
    }
    return {word: _choose_field(runs[0], found, field) for field, word in QUANTILES.items()}


def _choose_field(run: Metrics, spreads: Mapping[str, Spread | None], field: str) -> Metrics:
    metrics = {
        name: metric.model_copy(update={"value": getattr(spreads[name], field, None)})
        for name, metric in run.metrics.items()
    }
    return run.model_copy(update={"metrics": metrics})


def statements(results: Iterable[Result]) -> Iterator[Over]:
    """Count, for each statement, the repetitions of each point for which it holds."""
    for point, runs in group_runs(results).items():
        if runs[0].manifest.repetition is not None:
            for rows in zip(*(each.verdicts.rows for each in runs), strict=False):
                words = write_held([row.verdict for row in rows])
                holds = all(row.verdict in _HOLDS for row in rows)
                said = f"{rows[0].metric} {in_words(rows[0])}"
                yield Over(point, said, words, holds)


def write_held(verdicts: Sequence[Verdict]) -> str:
    """Write for how many repetitions a statement holds, and whether the spread decides it."""
    holds = sum(each in _HOLDS for each in verdicts)
    fails = sum(each in _FAILS for each in verdicts)
    told, untold = holds + fails, len(verdicts) - holds - fails
    more = f"; {untold} cannot be told" if untold else ""
    if not told:
        return f"cannot be told for any of {untold} seeds"
    if not fails:
        return f"holds for all {told} seeds{more}"
    if not holds:
        return f"holds for none of {told} seeds{more}"
    share = "most" if 2 * holds > told else "some"
    return f"holds for {share}, {holds} of {told} seeds: the spread decides it{more}"
