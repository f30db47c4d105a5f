"""The pictures of the run made by hand, the page and the map."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import packed_page
import pytest
from capture_analysis.pages.page_template import number
from capture_analysis.pictures.figure import Figure, Line, Style
from capture_analysis.pictures.interactive import embed_figures
from capture_analysis.pictures.plots import draw, save_all
from pcap_files import EPOCH_NS
from support.page_text import page_text
from support.synthetic_run import CAPTURES, finding, prediction, write_run

from twoway.errors import UsageError
from twoway.manifest import read_manifest
from twoway.measure.analysis import Analysis
from twoway.measure.document import compute
from twoway.report.figure_files import Print, run_figures
from twoway.report.figures import all_figures
from twoway.report.report import analyse_run
from twoway.report.results import read_results
from twoway.report.topology_drawing import topology_svg

pytestmark = pytest.mark.slow

PREDICTED = [
    prediction("queue_peak.forward", 4),
    prediction("efficiency.first", 0.5, tolerance=0.1),
]
IDS = [
    *("queues", "sequence", "spacing", "bunches", "overview", "goodput"),
    *("cwnd-detail", "cwnd", "rtt"),
]


def drawn(analysis: Analysis) -> list[Figure]:
    """Return every figure of a run that is being measured."""
    return all_figures(analysis, compute(analysis))


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figure]:
    """Return every figure of the run, by its id."""
    folder = write_run(tmp_path_factory.mktemp("run"), PREDICTED)
    return {figure.id: figure for figure in drawn(Analysis(folder))}


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the run's folder with its report; one of its predictions fails."""
    folder = write_run(tmp_path_factory.mktemp("run"), PREDICTED)
    analyse_run(folder)
    return folder


def test_words_on_an_axis_of_paper() -> None:
    """A picture in a file also shows an axis's words, at x = 0 and x = 1."""
    figure = Figure("", "", "", "aqm", "", [Line("delay", np.arange(2.0), np.ones(2))])
    (axes,) = draw(replace(figure, x_names=("pie", "cake"))).axes
    assert [(at.get_position()[0], at.get_text()) for at in axes.get_xticklabels()] == [
        (0, "pie"),
        (1, "cake"),
    ]


def test_a_logarithmic_axis_has_ticks_at_few_values() -> None:
    """Few values of a logarithmic axis have a tick each, in a file and on the page."""
    buffers = np.array([0.25, 0.5, 1, 2])
    figure = Figure("", "", "", "bdp", "", [Line("share", buffers, np.ones(4))], log_x=True)
    (axes,) = draw(figure).axes
    assert [each.get_text() for each in axes.get_xticklabels()] == ["0.25", "0.5", "1", "2"]
    described = json.loads(embed_figures([figure])["plots"])["plots"][""]
    assert described["x"]["ticks"] == buffers.tolist()
    many = replace(figure, lines=[Line("share", np.arange(1.0, 20), np.ones(19))])
    assert not many.x_ticks


def line(figure: Figure, name: str) -> Line:
    """Return the trace of that name."""
    return next(each for each in figure.lines if each.name == name)


def points(trace: Line) -> list[tuple[float, float]]:
    """Return a trace's points."""
    return list(zip(trace.x.tolist(), trace.y.tolist(), strict=True))


def test_figures_stand_in_order(figures: dict[str, Figure]) -> None:
    """The report has these figures, in this order."""
    assert list(figures) == IDS


def test_queue_steps(figures: dict[str, Figure]) -> None:
    """The queue is drawn from the steady window's start, with its last level at each instant."""
    steps = points(line(figures["queues"], "forward queue"))
    assert steps[:6] == [(0.01, 4), (0.01, 4), (0.0105, 3), (0.011, 2), (0.0115, 1), (0.012, 0)]
    # Segments 6 and 7 enter as an ACK leaves: the queue steps once, to two packets.
    assert (0.01495, 2.0) in steps
    assert (0.01495, 0.0) not in steps
    assert steps[-1] == (0.03, 0.0)


def test_predicted_peak_is_drawn(figures: dict[str, Figure]) -> None:
    """A predicted peak is a dashed line across the figure."""
    trace = line(figures["queues"], "forward peak, theory")
    assert points(trace) == [(0.01, 4.0), (0.03, 4.0)]
    assert trace.style == "dashed"


def test_sequence_numbers(figures: dict[str, Figure]) -> None:
    """Progress starts at zero, and a retransmission returns to the lost segment."""
    trace = line(figures["sequence"], "first: sent")
    segments = np.rint(trace.y * 1e6 / 450).astype(int).tolist()
    assert segments == [0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 10]
    assert trace.x[0] == 0.01


def test_slope_is_rate_times_window(figures: dict[str, Figure]) -> None:
    """A full link's progress is 0.9 MB/s times the window; the predicted one is half of it."""
    full = line(figures["sequence"], "first: full link, one direction")
    assert full.y.tolist() == [0.0, pytest.approx(0.018, abs=1e-15)]
    predicted = line(figures["sequence"], "first: predicted")
    assert predicted.y.tolist() == [0.0, full.y[1] / 2]
    assert "second: predicted" not in [each.name for each in figures["sequence"].lines]


def test_ack_spacing_sent_and_arrived(figures: dict[str, Figure]) -> None:
    """The same three ACKs are 0.5 ms apart as sent and 0.05 ms on arrival."""
    sent = line(figures["spacing"], "first's acks as sent")
    arrived = line(figures["spacing"], "first's acks on arrival")
    assert sent.y[:3].tolist() == [0.5, 0.5, 3.45]
    assert arrived.y[:3].tolist() == [0.05, 0.05, 2.45]
    assert sent.x[:3].tolist() == [0.015, 0.01505, 0.0175]
    assert figures["spacing"].log_y


def test_bunch_shares(figures: dict[str, Figure]) -> None:
    """Seven of ten ACKs arrive singly and three together; all were sent singly."""
    trace = line(figures["bunches"], "first's acks on arrival")
    assert points(trace) == [(1.0, 70.0), (3.0, 30.0)]
    assert points(line(figures["bunches"], "first's acks as sent")) == [(1.0, 100.0)]


def test_overview_reaches_peak_and_marks_drops(figures: dict[str, Figure]) -> None:
    """The overview reaches the queue's true peak, and marks each drop at the limit."""
    assert line(figures["overview"], "forward queue, lowest and highest").y.max() == 4
    assert points(line(figures["overview"], "forward drops")) == [(0.01, 4.0)]
    assert points(line(figures["overview"], "reverse drops")) == [(0.0115, 5.0)]


def test_goodput_counts_new_payload_per_cycle(figures: dict[str, Figure]) -> None:
    """Payload counts in the interval of its transmission, and an interval is a whole cycle."""
    trace = line(figures["goodput"], "first")
    cycle_us = 6500
    assert (trace.x * 1e6).tolist() == pytest.approx([0, 6500, 13_000, 19_500, 26_000])
    # A segment takes 500 us. Segment 0 arrives at 6500 us, segment 4 at 13000 us, segment 5 after
    # its loss at 20000 us, and segment 11 after the last interval.
    assert (trace.y[:-1] * cycle_us / (450 * 8)).tolist() == pytest.approx([1, 4, 4, 2])


def test_predicted_goodput(figures: dict[str, Figure]) -> None:
    """A predicted efficiency is drawn as its goodput, 0.5 of 7.2 Mbit/s."""
    assert points(line(figures["goodput"], "first: theory")) == [(0.0, 3.6), (0.026, 3.6)]
    assert [each.name for each in figures["goodput"].lines] == ["first", "first: theory", "second"]


def test_socket_figures(figures: dict[str, Figure]) -> None:
    """Windows and round trips are the kernel's; losses are marked, infinite thresholds left out."""
    assert points(line(figures["cwnd"], "first: cwnd")) == [(0.0, 10.0), (0.019, 5.0)]
    assert points(line(figures["cwnd"], "first: ssthresh")) == [(0.019, 5.0)]
    # Segment 5 is dropped at 10000 us; the queue that dropped an ACK of `second` drops none of its
    # data.
    assert points(line(figures["cwnd"], "first: segments dropped")) == [(0.01, 10.0)]
    assert "second: segments dropped" not in [each.name for each in figures["cwnd"].lines]
    assert points(line(figures["rtt"], "second: smoothed RTT")) == [(0.0, 1.5), (0.019, 2.5)]


def test_run_without_traffic(tmp_path: Path) -> None:
    """A run without traffic has all figures except that of windows after losses."""
    folder = write_run(tmp_path, forward=[], reverse=[])
    wanted = [name for name in IDS if name != "cwnd-detail"]
    assert [figure.id for figure in drawn(Analysis(folder))] == wanted


def test_windows_in_detail(figures: dict[str, Figure]) -> None:
    """If segments were dropped, a second figure has the windows for the queues' time span."""
    names = [each.name for each in figures["cwnd-detail"].lines]
    assert "first: segments dropped" in names
    assert points(line(figures["cwnd-detail"], "first: cwnd")) == [(0.019, 5.0)]


def test_figures_of_one_flow(reported: Path) -> None:
    """The pictures of a flow have its lines alone; an unknown flow is refused with those there."""
    (experiment,) = read_results([reported])
    how = Print("", None, True, "")
    (rtt,) = run_figures(experiment, ["rtt"], ["second"], how)
    rows = rtt.read_text("utf-8").splitlines()[1:]
    assert {row.split(",")[0] for row in rows} == {"second: smoothed RTT"}
    with pytest.raises(UsageError, match=r"--flow: secnd: no such flow; did you mean") as refused:
        run_figures(experiment, [], ["secnd"], how)
    assert refused.value.hint == "there are first, second"


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    """Drawing a figure twice gives the same SVG, so that a diff shows only changes."""
    x = np.arange(3.0)
    lines = [
        Line(style, x, x, style, n, top=x + 1 if style in ("spans", "cells") else None, letter="R")
        for n, style in enumerate(get_args(Style))
    ]
    figure = Figure("x", "title", "caption", "time, s", "packets", lines)
    for name in ("a", "b"):
        save_all([figure], tmp_path / name)
    assert (tmp_path / "a/x.svg").read_bytes() == (tmp_path / "b/x.svg").read_bytes()


def test_page_tells_the_verdict(reported: Path) -> None:
    """The page says that a prediction fails, and which one."""
    page = page_text(reported / "report.html")
    assert '<span class="verdict fail">' in page
    assert '<span class="verdict pass">' not in page
    verdicts = re.findall(r"<tr><td><a [^>]+><code>([^<]+)</code>.*?(pass|FAIL)</td>", page)
    assert verdicts[:2] == [("queue_peak.forward", "pass"), ("efficiency.first", "FAIL")]


@pytest.mark.parametrize(("seen", "mark"), [(1, "pass"), (2, "")])
def test_a_finding_that_is_not_seen_leaves_the_page_unmarked(
    tmp_path: Path, seen: int, mark: str
) -> None:
    """The verdict is green only if the finding holds; otherwise it has no colour."""
    folder = write_run(tmp_path, findings=[finding("drops_data.forward", seen)])
    analyse_run(folder)
    assert f'<span class="verdict {mark}">1 finding: ' in (folder / "report.html").read_text()


def test_page_escapes(reported: Path) -> None:
    """Characters of HTML in a title are shown, not interpreted."""
    page = (reported / "report.html").read_text()
    assert "<h1>Two drops &amp; &lt;one&gt; compression</h1>" in page


def test_page_is_self_contained(reported: Path) -> None:
    """The page loads nothing: its script and its data are inside."""
    page = (reported / "report.html").read_text()
    assert re.findall(r"<(?:script|img|iframe)[^>]* src=", page) == []
    assert re.findall(r'<link[^>]*href="(?!data:)', page) == []


def test_page_has_every_plot(reported: Path) -> None:
    """The page's data are its figures' traces, with one element to draw each figure in."""
    page = (reported / "report.html").read_text()
    plots = packed_page.plots(page)
    assert list(plots) == IDS
    assert re.findall(r'<div class="plot" id="([\w-]+)">', page) == IDS
    drop = next(t for t in plots["overview"]["traces"] if t["name"] == "reverse drops")
    assert (drop["x"].tolist(), drop["y"].tolist()) == ([0.0115], [5.0])
    assert drop["style"] == "crosses"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "\N{EN DASH}"), (0, "0"), (12345.0, "12,345"), (0.123456, "0.1235"), (-2.0, "-2")],
)
def test_numbers_on_the_page(value: float | None, text: str) -> None:
    """Numbers have four digits or are whole; a missing number is a dash."""
    assert number(value) == text


def test_map_has_every_node_and_link(reported: Path) -> None:
    """The map has every node and link once, and each bottleneck's arrow points in its direction."""
    svg = topology_svg(read_manifest(reported))
    assert sorted(re.findall(r'class="node">(\w+)<', svg)) == ["h1", "h2", "r1", "r2"]
    assert len(re.findall("<line ", svg)) == len(CAPTURES) / 2
    assert svg.count('class="bottleneck"') == 1
    assert re.findall(r'class="label">([^<]+)<', svg) == [
        "→ 8 Mbit/s, 1 ms, 4 packets",
        "← 8 Mbit/s, 1 ms, 5 packets",
    ]


def test_map_of_two_parts(reported: Path) -> None:
    """A network of two parts has all of its nodes on the map."""
    manifest = read_manifest(reported)
    between = [i for i in manifest.interfaces if not {i.name, i.peer} & {"r1-eth1", "r2-eth1"}]
    parted = manifest.model_copy(update={"interfaces": tuple(between), "queues": ()})
    svg = topology_svg(parted)
    assert sorted(re.findall(r'class="node">(\w+)<', svg)) == ["h1", "h2", "r1", "r2"]
    assert len(re.findall("<line ", svg)) == 2


def test_times_are_relative(figures: dict[str, Figure]) -> None:
    """No figure shows the clock's epoch: all start within the run."""
    for figure in figures.values():
        if figure.id != "bunches":
            assert max(each.x.max() for each in figure.lines) <= 0.03 < EPOCH_NS / 1e9
