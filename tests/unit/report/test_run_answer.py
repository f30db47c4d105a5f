"""The first sentence of a report, made from the run's numbers, and its figure."""

from pathlib import Path

import pytest
from support.synthetic_run import write_run

from twoway.contract.metrics import Metric, Metrics
from twoway.contract.verdicts import FindingRow, Verdicts
from twoway.manifest import Manifest, read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.figures import all_figures
from twoway.report.report import analyse_run
from twoway.report.run_answer import answer, hero_first

pytestmark = pytest.mark.slow

_NOTHING = {
    "utilisation_data.forward": 1.0,
    "utilisation_data.reverse": 1.0,
    "ack_bunch_max.first": 1.0,
    "ack_bunch_max.second": 1.0,
    "drops_data.forward": 0.0,
    "drops_data.reverse": 0.0,
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Metrics]:
    """Make a run of two connections by hand."""
    folder = write_run(tmp_path_factory.mktemp("run"))
    return read_manifest(folder), compute(Analysis(folder))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "Each link carries data all the time."),
        (
            {
                "utilisation_data.forward": 0.651,
                "utilisation_data.reverse": 0.651,
                "ack_bunch_max.first": 13.0,
            },
            "Each link is without data 34.9 % of the time: ACKs come in bunches of up to 13.",
        ),
        (
            {
                "utilisation_data.forward": 0.9,
                "ack_bunch_max.second": 55.0,
                "drops_data.reverse": 1.0,
            },
            (
                "The link forward is without data 10 % of the time, reverse 0 %, and ACKs come in "
                "bunches of up to 55; 1 data packet is dropped."
            ),
        ),
        (
            {"ack_bunch_max.first": 2.0, "drops_data.forward": 1234.0},
            "Each link carries data all the time; 1,234 data packets are dropped.",
        ),
        (
            {"goodput.first": 0.0},
            "Each link carries data all the time; 1 of 2 connections delivers nothing.",
        ),
    ],
    ids=["full", "bunches", "losses", "pairs", "still"],
)
def test_answer_is_made_from_numbers(
    measured: tuple[Manifest, Metrics], values: dict[str, float], sentence: str
) -> None:
    """The sentence names ACK bunches above 2 for idle links, and counts dropped data packets."""
    manifest, metrics = measured
    given = {name: Metric(value=v, unit="1") for name, v in (_NOTHING | values).items()}
    others = {n: m for n, m in metrics.metrics.items() if not n.startswith("ack_bunch_max_sent")}
    found = metrics.model_copy(update={"metrics": others | given})
    assert answer(manifest, found) == sentence


def test_first_figure_is_what_the_file_speaks_of(tmp_path: Path) -> None:
    """The first figure is of the metric with most statements, or goodput if no statement exists."""
    folder = write_run(tmp_path)
    analyse_run(folder)
    figures = all_figures(Analysis(folder), Metrics.read(folder / "metrics.json"))
    silent = Verdicts.read(folder / "verdicts.json")
    assert hero_first(figures, silent)[0].id == "goodput"
    peak = FindingRow.model_construct(metric="queue_peak.forward")
    found = hero_first(figures, silent.model_copy(update={"findings": (peak,)}))
    assert found[0].id == "queues"
    assert sorted(each.id for each in found) == sorted(each.id for each in figures)
