"""The answers of a sweep and of a run: tables, sentences, and what a reader must know of them."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.page_text import page_text
from support.swept_runs import swept, write_points
from support.synthetic_run import edit_manifest, write_run

from twoway.api import Run, Sweep
from twoway.contract.expression import Derived
from twoway.contract.judge import Verdict
from twoway.contract.metrics import METRICS, Metric, Metrics
from twoway.contract.verdicts import FindingRow, Verdicts
from twoway.errors import UsageError
from twoway.manifest import SEED, Manifest, read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.curves import axis_label, measured_curves
from twoway.report.figures import all_figures
from twoway.report.report import analyse_run
from twoway.report.results import Experiment
from twoway.report.run_answer import answer, hero_first
from twoway.report.sweep_answer import answer_of, answer_tables
from twoway.report.sweep_page import asked_of, derive, write_sweep_pages

RATIO = {"ratio": Derived(formula="efficiency.first / efficiency.second * window")}


def of_shares(tmp_path: Path, *buffers: tuple[float, Sequence[float | None]]) -> Experiment:
    """Make a sweep of buffers, each with a run for each value of its metric `share`."""
    result = swept(tmp_path).results[0]
    said = result.manifest.experiment
    axis = {"buffer": {"set": [], "to": [0.25, 0.5, 1, 2, 4]}}
    repeated = []
    for buffer, values in buffers:
        for seed, value in enumerate(values, start=1):
            fields = {"matrix": axis, "id": f"swept@buffer={buffer},seed={seed}"}
            experiment = said.model_validate(said.model_dump(by_alias=True) | fields)
            point = {"experiment": experiment, "point": {"buffer": buffer, SEED: seed}}
            found = {"share": Metric(value=value, unit="1")}
            repeated.append(
                replace(
                    result,
                    manifest=result.manifest.model_copy(update=point),
                    metrics=result.metrics.model_copy(update={"metrics": found}),
                )
            )
    return Experiment("swept", tuple(repeated))


def test_a_sweep_answers_with_a_table_and_a_sentence(tmp_path: Path) -> None:
    """Each point is a row, and each line of the figure a sentence from its first to its last."""
    answer = answer_of(derive(swept(tmp_path), RATIO), ["ratio"])
    assert answer_tables(answer)[0] == [
        ["window", "acks", "ratio"],
        ["4", "every-segment", "4"],
        ["4", "delayed", "4"],
        ["8", "every-segment", "8"],
        ["8", "delayed", "8"],
        ["16", "every-segment", "-"],
        ["16", "delayed", "16"],
    ]
    assert answer.sentences == (
        "ratio (acks every-segment) rises from 4 at window 4 to 8 at 8.",
        "ratio (acks delayed) rises from 4 at window 4 to 16 at 16.",
    )
    why = "efficiency.first is undefined"
    assert answer.doubts == (f"ratio is undefined at window 16, acks every-segment: {why}.",)
    nowhere = {"none": Derived(formula="1 / (window - window)")}
    (doubt,) = answer_of(derive(swept(tmp_path / "other"), nowhere), ["none"]).doubts
    assert doubt == "none is undefined in all 6 runs: (window - window) is 0."


def test_programs_alone_answer_for_their_findings(tmp_path: Path) -> None:
    """A sweep without flows of its own answers for its findings, one with flows for nothing."""
    first = swept(tmp_path).results[0]
    row = FindingRow.model_construct(metric="run_time.get", verdict=Verdict.AS_STATED)
    verdicts = first.verdicts.model_copy(update={"findings": (row,)})
    alone = first.manifest.model_copy(update={"connections": (), "datagrams": ()})
    asked = [
        asked_of(Experiment("swept", (replace(first, manifest=each, verdicts=verdicts),)), [])
        for each in (alone, first.manifest)
    ]
    assert asked == [["run_time.get"], []]


def test_seeds_have_an_interval_and_a_line_its_middle(tmp_path: Path) -> None:
    """Table and figure have mean and interval; a share that passes 50 % says where."""
    low, high = [(0.25, [0.9, 0.8]), (0.5, [0.7, 0.6])], [(1, [0.3, 0.4]), (2, [0.2, 0.1])]
    experiment = of_shares(tmp_path, *low, *high)
    answer = answer_of(experiment, ["share"])
    (figure,) = measured_curves(experiment, ["share"])
    mean, interval, _ = figure.lines
    drawn = [f"± {each:.2g}" for each in interval.highest() - mean.y]
    assert [["0.25", f"{mean.y[0]:.4g}", drawn[0], "2"], len(drawn)] == [
        answer_tables(answer)[0][1],
        4,
    ]
    assert "means over the seeds, bars their 95 % intervals" in figure.caption
    assert answer_tables(answer)[0][:2] == [
        ["buffer", "share", "95 %", "seeds"],
        ["0.25", "0.85", "± 0.64", "2"],
    ]
    # On a logarithmic axis, for the buffers double.
    assert answer.sentences == (
        "share falls from 85 % at buffer 0.25 to 15 % at 2; 50 % at about 0.707; means of 2 seeds.",
    )


FROM = "at buffer 0.25 to"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ([0.3, 0.6, 0.5], [0.4, 0.5, 0.7], f"rises from 46.7 % {FROM} 53.3 % at 2; 50 % at"),
        (
            *([0.1, 0.5, 0.9], [0.2, 0.61, 0.99]),
            f"rises from 50 % {FROM} 60 % at 2, a difference of 10 ± 2.5 points by seed",
        ),
        ([1] * 3, [3] * 3, f"rises from 1 {FROM} 3 at 2, a difference of 2 ± 0 "),
        ([0] * 3, [1] * 3, f"rises from 0 {FROM} 1 at 2, a difference of 1 ± 0 by"),
        ([0.5] * 3, [1.5] * 3, f"rises from 0.5 {FROM} 1.5 at 2, a difference"),
        ([0.3, 0.3, 0.3], [0.30001, 0.3, 0.3], "is 30 % at each buffer; means of 3 seeds."),
        ([0.3, None, 0.3], [0.6, 0.6, 0.6], f"rises from 30 % {FROM} 60 % at 2; 50 % at"),
    ],
)
def test_a_sentence_says_no_more_than_its_draws(
    tmp_path: Path, low: list[float | None], high: list[float | None], said: str
) -> None:
    """Percent is for shares, equal prints are one, and a difference by chance is called so."""
    (sentence,) = answer_of(of_shares(tmp_path, (0.25, low), (2, high)), ["share"]).sentences
    assert sentence.startswith(f"share {said}")
    by_chance = low == [0.3, 0.6, 0.5]
    assert (", a difference of 6.667 ± 38 points by seed, which" in sentence) == by_chance
    assert ("which these seeds do not tell from chance (95 %)" in sentence) == by_chance
    assert (None in low) == sentence.endswith("means of 2 to 3 seeds.")


@pytest.mark.parametrize(
    ("name", "field", "values", "text"),
    [
        ("bdp", "profile.forward.queue_packets", {"0.5": 17}, "BDP"),
        ("buffer_bdp", "profile.forward.queue_packets", {"0.5": 17}, "buffer, BDP"),
        ("buffer", "profile.forward.queue_packets", [17], "buffer, packets"),
        ("long_buffer", "profile.forward.queue_packets", {"1": 1}, "long buffer"),
        ("control", "flows.up.congestion", ["bbr"], "control"),
    ],
)
def test_an_axis_is_labelled_with_its_unit(
    tmp_path: Path, name: str, field: str, values: object, text: str
) -> None:
    """The unit is at the end of the axis's name, or, of plain values, that of their field."""
    first = swept(tmp_path).results[0]
    matrix = {name: {"set": [field], "to": values}}
    said = first.manifest.experiment
    said = type(said).model_validate(said.model_dump() | {"matrix": matrix})
    labelled = replace(first, manifest=first.manifest.model_copy(update={"experiment": said}))
    assert axis_label(Experiment("swept", (labelled,)), name) == text


def test_a_line_that_ends_level_falls(tmp_path: Path) -> None:
    """The least value at the end of a line is its end, though another point has it, too."""
    buffers = ((0.25, [3.0, 3.0]), (1, [1.0, 1.0]), (2, [1.0, 1.0]))
    (sentence,) = answer_of(of_shares(tmp_path, *buffers), ["share"]).sentences
    assert sentence == "share falls from 3 at buffer 0.25 to 1 at 2; means of 2 seeds."


def test_seeds_alone_have_one_sentence(tmp_path: Path) -> None:
    """One point with seeds has a sentence: its mean, and the ends of the mean's interval."""
    assert answer_of(of_shares(tmp_path, (1, [0.2, 0.3, 0.4])), ["share"]).sentences == (
        "share is 30 %, the mean of 3 seeds; its 95 % interval goes from 5.16 % to 54.8 %.",
    )


def test_draws_in_two_groups_are_named(tmp_path: Path) -> None:
    """The answer names both groups in which draws fall."""
    draws = [0.1, 0.1, 0.11, 0.1, 0.9, 0.9, 0.91, 0.9]
    (doubt,) = answer_of(of_shares(tmp_path, (1, draws)), ["share"]).doubts
    assert doubt.startswith("share at buffer 1: the draws fall in two groups, near 10.2 % and near")


def test_the_page_answers_before_all_else(tmp_path: Path) -> None:
    """A page has sentences, then its first figure, which they are of, a table, other figures."""
    (page,) = write_sweep_pages([swept(tmp_path)], tmp_path, {}, ["ratio"], derived=RATIO)
    text = page_text(page)
    places = [
        text.index('<p class="answer">ratio (acks every-segment) rises'),
        text.index('id="swept-ratio"'),
        text.index('<h2 id="answer">'),
        text.index('id="swept-efficiency"'),
    ]
    assert places == sorted(places)
    assert "ratio" in (page.parent / "points.csv").read_text().splitlines()[0]
    (page,) = write_sweep_pages([swept(tmp_path / "unasked")], tmp_path, {}, [])
    said = re.findall('<p class="answer">(.*?)</p>', page_text(page))
    assert said[0].startswith("efficiency.first (acks every-segment) rises")


def test_a_run_has_the_metrics_of_its_file(tmp_path: Path) -> None:
    """metrics.json has derived metrics; the page has the reason where one is undefined."""
    folder = write_run(tmp_path)
    asked = {"share": "goodput.first / sum(goodput.*)", "none": "1 / (2 - 2)"}
    edit_manifest(folder, lambda document: document["experiment"].update(metrics=asked))
    analyse_run(folder)
    metrics = Metrics.read(folder / METRICS).metrics
    goodputs = [metrics[f"goodput.{name}"].value or 0 for name in ("first", "second")]
    assert metrics["share"].value == pytest.approx(goodputs[0] / sum(goodputs))
    assert metrics["none"].value is None
    assert "(2 - 2) is 0" in page_text(folder / "report.html")
    assert read_manifest(folder).experiment.metrics["share"].formula == asked["share"]


def test_values_of_an_axis_are_compared_by_seed(tmp_path: Path) -> None:
    """An axis of two values has their difference, whose interval is that of each seed's."""
    runs = of_shares(tmp_path, (0.25, [0.1, 0.5, 0.9]), (4, [0.2, 0.61, 0.99]))
    answer = answer_of(runs, ["share"])
    assert answer_tables(answer)[1] == [
        ["buffer", "share difference", "95 %", "seeds"],
        ["4 - 0.25", "0.1", "± 0.025", "3"],
    ]


def test_flows_of_one_name_are_one_column(tmp_path: Path) -> None:
    """A family shows the mean of alike flows of one name; each flow is asked for by its name."""
    result = swept(tmp_path).results[0]
    connections = tuple(
        c.model_copy(update={"name": f"cubic-{n}", "direction": "forward"})
        for n, c in enumerate(result.manifest.connections, start=1)
    )
    found = {f"goodput.cubic-{n}": Metric(value=n, unit="Mbit/s") for n in (1, 2)}
    for congestion, names in (("reno", ["goodput.cubic-*"]), ("bbr", [*found])):
        others = (connections[0], connections[1].model_copy(update={"congestion": congestion}))
        given = replace(
            result,
            manifest=result.manifest.model_copy(update={"connections": others}),
            metrics=result.metrics.model_copy(update={"metrics": found}),
        )
        experiment = derive(Experiment("swept", (given,)), {})
        assert list(answer_of(experiment, ["goodput"]).units) == names
        assert list(answer_of(experiment, ["goodput.cubic-2"]).units) == ["goodput.cubic-2"]


def test_python_has_the_answer_as_a_table(tmp_path: Path) -> None:
    """A sweep in Python has mean, margin and number for each point, and a formula of each run."""
    runs = {folder.parent.name: Run(folder) for folder in write_points(tmp_path)}
    sweep = Sweep(runs, {})
    formula = "efficiency.first / efficiency.second * window"
    rows = sweep.answer(ratio=formula).to_pylist()
    assert (rows[0]["window"], rows[0]["acks"], rows[0]["ratio"]) == (4, "every-segment", 4)
    assert (rows[4]["ratio"], rows[4]["ratio_seeds"]) == (None, 0)
    assert list(rows[0]) == ["window", "acks", "ratio", "ratio_margin", "ratio_seeds"]
    each = [run.compute(formula) for run in runs.values()]
    assert sorted(each, key=str) == [16, 4, 4, 8, 8, None]
    table = sweep.table("efficiency.first", ratio=formula)
    assert table.column_names == ["point", "window", "acks", "efficiency.first", "ratio"]
    assert table["ratio"].to_pylist() == each
    for refused in (
        lambda bad: sweep.answer(ratio=bad),
        lambda bad: sweep.table(ratio=bad),
        lambda bad: next(iter(runs.values())).compute(bad),
    ):
        with pytest.raises(UsageError, match="a closing bracket"):
            refused("sum(efficiency.*")
        with pytest.raises(UsageError, match='no metric or axis "efficiency'):
            refused("efficiency.nosuch")


def test_a_frame_of_all_metrics_takes_more_columns(tmp_path: Path) -> None:
    """A column added to a sweep's table in pandas or polars, of all metrics, warns of nothing."""
    pl = pytest.importorskip("polars")
    runs = {folder.parent.name: Run(folder) for folder in write_points(tmp_path)}
    table = Sweep(runs, {}).table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = table.to_pandas()
        frame["half"] = frame["efficiency.first"] / 2
    assert pl.DataFrame(pl.from_arrow(table)).columns == [*frame.columns][:-1]


# The first sentence of a report, made from the run's numbers, and its figure.


BUSY, DATA, BUNCH = "Each link carries data all the time", "utilisation_data", "ack_bunch_max"
_NOTHING = {
    **{f"{DATA}.{direction}": 1.0 for direction in ("forward", "reverse")},
    **{f"{BUNCH}.{name}": 1.0 for name in ("first", "second")},
    **{f"drops_data.{direction}": 0.0 for direction in ("forward", "reverse")},
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, Metrics]:
    """Make a run of two connections by hand."""
    folder = write_run(tmp_path_factory.mktemp("run"))
    return read_manifest(folder), compute(Analysis(folder))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, f"{BUSY}."),
        (
            {f"{DATA}.forward": 0.651, f"{DATA}.reverse": 0.651, f"{BUNCH}.first": 13.0},
            "Each link is without data 34.9 % of the time: ACKs come in bunches of up to 13.",
        ),
        (
            {f"{DATA}.forward": 0.9, f"{BUNCH}.second": 55.0, "drops_data.reverse": 1.0},
            (
                "The link forward is without data 10 % of the time, reverse 0 %, and ACKs come in "
                "bunches of up to 55; 1 data packet is dropped."
            ),
        ),
        (
            {f"{BUNCH}.first": 2.0, "drops_data.forward": 1234.0},
            f"{BUSY}; 1,234 data packets are dropped.",
        ),
        ({"goodput.first": 0.0}, f"{BUSY}; 1 of 2 connections delivers nothing."),
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


@pytest.mark.slow
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
