"""Harm: a connection beside others, compared with the same connection alone."""

from typing import Any

import pytest
from support.synthetic_run import CONNECTIONS, SENDER, manifest, metrics_of

from twoway.contract.metrics import Metric, Metrics
from twoway.manifest import Manifest
from twoway.report.harm import HARMS, with_harm

GOODPUT, RTT = HARMS[0], HARMS[3]


def metric(value: float | None, error: float | None = 0) -> Metric:
    """Make a measured number."""
    return Metric(value=value, unit="1", error=error)


@pytest.mark.parametrize(
    ("alone", "beside", "goodput", "rtt"),
    [
        (8, 2, 0.75, -3),
        (2, 8, -3, 0.75),
        (5, 5, 0, 0),
        (0, 0, 0, 0),
        (4, 0, 1, None),
        (0, 4, None, 1),
        (None, 4, None, None),
        (4, None, None, None),
    ],
)
def test_harm_of_two_values(
    alone: float | None, beside: float | None, goodput: float | None, rtt: float | None
) -> None:
    """Harm is the relative loss: (x - y) / x, or (y - x) / y if less is better."""
    for harm, value in ((GOODPUT, goodput), (RTT, rtt)):
        assert harm.between(metric(alone), metric(beside)) == metric(value)


def test_the_error_is_that_of_both() -> None:
    """The harm's error combines both values' errors, and is unknown if one has no bound."""
    assert GOODPUT.between(metric(8, 0.8), metric(2, 0.4)).error == pytest.approx(0.075)
    assert GOODPUT.between(metric(8, None), metric(2, 0.4)).error is None


def run(point: dict[str, Any], goodputs: dict[str, float], **more: Any) -> tuple[Manifest, Metrics]:
    """Make a point's run, with goodputs of its connections."""
    document = manifest() | {
        "point": point,
        "connections": [{**SENDER, **each} for each in CONNECTIONS if each["name"] in goodputs],
        **more,
    }
    found = {
        f"{harm.of.name}.{name}": {"value": None, "unit": "1"}
        for harm in HARMS
        for name in goodputs
    } | {f"goodput.{name}": {"value": goodputs[name], "unit": "Mbit/s"} for name in goodputs}
    return Manifest.model_validate(document), metrics_of(document, found)


def harms(*runs: tuple[Manifest, Metrics]) -> list[dict[str, float | None]]:
    """Return the harms of each run."""
    found = with_harm({str(number): each for number, each in enumerate(runs)})
    return [
        {name: each.value for name, each in metrics.metrics.items() if name.startswith("harm_")}
        for _, metrics in found.values()
    ]


def test_a_sweep_has_the_harm_to_what_it_has_alone() -> None:
    """A connection is compared with the point that differs in one axis and has it alone."""
    alone = [run({"beside": 0, "buffer": each}, {"first": each}) for each in (8, 4)]
    beside = [run({"beside": 1, "buffer": each}, {"first": 2, "second": 9}) for each in (8, 4)]
    zero = {"harm_goodput.first": 0}
    assert harms(*alone, *beside) == [
        *(zero, zero),
        *({"harm_goodput.first": 0.75}, {"harm_goodput.first": 0.5}),
    ]


def test_what_is_not_the_same_connection_is_not_compared() -> None:
    """Points are not compared if links differ, or if no point has that connection alone."""
    both = run({"beside": 1}, {"first": 2, "second": 9})
    slower = {"profile": {"directions": {"forward": {"queue_packets": 1}}}}
    assert harms(both, run({"beside": 0}, {"first": 4}, **slower))[0] == {}
    assert harms(both, run({"beside": 0}, {"second": 18}))[0] == {"harm_goodput.second": 0.5}
    assert harms(run({"beside": 0}, {"first": 4}), run({"beside": 2}, {"first": 4})) == [{}, {}]
    assert harms(both) == [{}]
