"""Write docs/results/noticed.csv: how many kept predictions a small change of the setup refutes.

The theories with closed forms and the packet model of fixed windows are quick enough to compute
again for every point; the models of Tahoe are not.
"""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from results_kept import RESULTS
from results_page import Judged, judge_kept_numbers

from twoway.contract.judge import Verdict, judge
from twoway.description.predictions import setup_of
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.registry import predict

_THEORIES = ("fast", "kalampoukas", "kalampoukas_bound")


def _segment(setup: Setup) -> Setup:
    windows = [c.window_packets and c.window_packets + 1 for c in setup.connections]
    pairs = zip(setup.connections, windows, strict=True)
    changed = tuple(c.model_copy(update={"window_packets": window}) for c, window in pairs)
    return replace(setup, connections=changed)


def _ack(setup: Setup) -> Setup:
    links = {name: replace(link, ack_s=2 * link.ack_s) for name, link in setup.links.items()}
    return replace(setup, links=links)


def _nanosecond(setup: Setup) -> Setup:
    later = {
        n: link.with_fields(delay_ms=link.delay_ns / 1e6 + 1e-6) for n, link in setup.links.items()
    }
    return replace(setup, links=later)


_CHANGES: dict[str, Callable[[Setup], Setup]] = {
    "a segment more in each fixed window": _segment,
    "ACKs that take twice the time": _ack,
    "a delay longer by 1 ns": _nanosecond,
}


def count_noticed(found: Sequence[Judged]) -> Counter[str]:
    """Count a point's predictions of one theory that hold, and those that notice a change."""
    said = found[0].said
    point = load_point(said.point)
    setup = setup_of(point.experiment, point.profile, point.graph, list(point.connections))
    holding = [each for each in found if _holds(each, predict(said.theory, setup))]
    counts = Counter({"kept": len(holding)})
    for name, change in _CHANGES.items():
        values = predict(said.theory, change(setup))
        counts[name] = sum(not _holds(each, values) for each in holding)
    return counts


def _holds(each: Judged, values: dict[str, float]) -> bool:
    """Tell whether a prediction holds with other values than the file's."""
    numbers, value = each.said.numbers, values.get(each.said.metric)
    kinds = ("value", "at_most", "at_least")
    other = {kind: value for kind in kinds if getattr(numbers, kind) is not None}
    return judge(numbers.model_copy(update=other), each.measured) is Verdict.PASS


def _write() -> None:
    points: dict[tuple[str, str], list[Judged]] = {}
    for each in judge_kept_numbers():
        if each.said.theory in _THEORIES:
            points.setdefault((each.said.theory, each.said.point), []).append(each)
    counts = {theory: Counter[str]() for theory in _THEORIES}
    for (theory, _), found in points.items():
        counts[theory] += count_noticed(found)
    with (RESULTS / "noticed.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("theory", "kept", *_CHANGES))
        table.writerows(
            (theory, found["kept"], *(found[name] for name in _CHANGES))
            for theory, found in counts.items()
        )


if __name__ == "__main__":
    _write()
