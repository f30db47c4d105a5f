"""Figures of papers drawn again, of a safe region, and of one metric against another."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait
from support.swept_runs import PAPER, WINDOWS, write_points
from support.synthetic_run import edit_json, manifest, metrics_of, prediction, write_run

from twoway.contract.verdicts import VERDICTS
from twoway.description.point import point_names
from twoway.description.reading import experiment_file, load_experiment
from twoway.errors import TwowayError
from twoway.manifest import Manifest
from twoway.paths import EXPERIMENTS, PAPERS
from twoway.report import papers
from twoway.report.curves import pictures, scatters
from twoway.report.judging import judge_statements
from twoway.report.paper_figures import PaperFigure, named_figures, paper_figures
from twoway.report.papers import Redrawn, Source, find_paper
from twoway.report.papers_site import write_site
from twoway.report.report import analyse_run
from twoway.report.results import Experiment, Result, read_results
from twoway.report.thumbnail import thumbnail

PAGE = "zhang-shenker-clark-observations-1991.html"
FIGURES: list[dict[str, Any]] = [
    {
        "name": "figure 1",
        "shows": "a <b>line</b>",
        "runs": ["swept"],
        "metrics": ["efficiency.first"],
        "across": "window",
        "at": {"acks": ["delayed"]},
        "readings": [{"line": "the knee", "x": 6, "y": 7, "error": 0.5, "how": "the text says 7"}],
    },
    {
        "name": "figure 2",
        "shows": "where nothing is defined",
        "runs": ["swept@window=16,acks=every-segment"],
        "metrics": ["efficiency"],
    },
    {"name": "figure 3", "shows": "what nothing ran", "runs": ["other"], "metrics": ["goodput"]},
    {"name": "table 1", "shows": "numbers", "runs": ["swept"], "metrics": ["efficiency.second"]},
]


@pytest.fixture(name="folders")
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Make a sweep's six points, of a paper with figures."""
    monkeypatch.setattr(papers, "PAPERS", tmp_path / "papers")
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    (tmp_path / "papers").mkdir()
    file = {"title": PAPER, "figures": FIGURES, "untested": []}
    (tmp_path / "papers" / f"{PAPER}.yml").write_text(json.dumps(file))
    return write_points(tmp_path / "results")


def _drawn(folders: list[Path], failed: tuple[str, ...] = ()) -> dict[str, PaperFigure]:
    experiments = read_results(folders)
    made = paper_figures(find_paper(PAPER), experiments, lambda result: result.id, failed)
    return {each.asked.name: each for each in made}


@pytest.mark.slow
def test_a_figure_is_measured_computed_and_printed(folders: list[Path]) -> None:
    """Dots open their runs, theory is dashed, printed values are crosses with bars of precision."""
    figure = _drawn(folders)["figure 1"].figure
    assert figure
    lines = {line.name: line for line in figure.lines}
    assert lines["first, measured"].links == tuple(
        f"swept@window={window},acks=delayed" for window in WINDOWS
    )
    assert lines["first, predicted"].style == "dashed"
    assert lines["first, paper"].style == "crosses"
    precision = lines["first, paper: precision"]
    assert precision.top is not None
    assert (precision.top - precision.y).tolist() == pytest.approx([0.2] * 3)
    knee = lines["the knee: precision"]
    assert (knee.x.tolist(), knee.y.tolist()) == ([6], [6.5])
    assert figure.title == "Figure 1: a <b>line</b>"
    assert figure.caption.startswith(f"Figure 1 of {PAPER}, drawn again from 3 runs of swept.")
    assert figure.caption.endswith("the knee: the text says 7.")


@pytest.mark.slow
def test_the_verdict_is_the_worst(folders: list[Path]) -> None:
    """A failed prediction decides a figure's verdict; without one the worst claim decides."""
    assert _drawn(folders)["figure 1"].verdict == "a prediction fails"
    for run in folders:
        edit_json(run / VERDICTS, lambda found: found.update(predictions=[]))
    figure = _drawn(folders)["figure 1"]
    assert (figure.verdict, figure.look, figure.counted) == ("agrees", "pass", "1 claim: agrees")
    for run in folders:
        edit_json(run / VERDICTS, lambda found: found.update(claims=[]))
    assert _drawn(folders)["figure 1"].verdict == "no number in print"
    table = _drawn(folders)["table 1"].figure
    assert table
    assert "prints no value of it: only our lines" in table.caption


@pytest.mark.slow
def test_undefined_and_missing_points_are_said(folders: list[Path]) -> None:
    """A metric undefined at a point has no dot; a point without a run is named."""
    failed = ("swept@window=2,acks=delayed", "swept@window=2,acks=every-segment", "else@window=2")
    drawn = _drawn(folders, failed)
    assert drawn["figure 1"].missing == ("swept@window=2,acks=delayed",)
    assert drawn["figure 1"].counted.endswith("without a run: swept@window=2,acks=delayed")
    assert (drawn["figure 2"].figure, drawn["figure 3"].figure) == (None, None)
    assert drawn["figure 3"].verdict == "no run"
    table = drawn["table 1"].figure
    assert table
    assert "At 1 of 6 points a metric is undefined." in table.caption
    assert len(table.lines[0].x) == 5


@pytest.mark.slow
def test_a_picture_of_a_run_has_levels(tmp_path: Path) -> None:
    """A figure from a run's report has the listed lines, and printed readings as levels."""
    run = write_run(tmp_path / "single")
    analyse_run(run)
    (experiment,) = read_results([run])
    asked = Redrawn(
        name="figure 1",
        shows="a queue",
        runs=[experiment.id],
        picture="queues",
        lines=["forward"],
        readings=[papers.Reading(line="its top", y=4, error=0.5, how="read off")],
    )
    source = Source("x", "X", figures=(asked, asked.model_copy(update={"picture": "none"})))
    first, second = paper_figures(source, [experiment], lambda result: result.id)
    assert first.figure
    names = [line.name for line in first.figure.lines]
    assert names[0] == "forward queue"
    assert not any(name.startswith("reverse") for name in names)
    assert names[-2:] == ["its top", "its top: precision"]
    assert set(first.figure.lines[-2].y.tolist()) == {4}
    assert second.figure is None


@pytest.mark.slow
def test_a_claim_names_its_figures() -> None:
    """The words "figures 5.5 to 5.8" name each figure of the range; "section 5" names none."""
    assert named_figures("section 3, figure 3.2") == {"figure 3.2"}
    assert named_figures("figures 3.3 and 3.4") == {"figure 3.3", "figure 3.4"}
    assert named_figures("section 5.3, figures 5.9 to 5.11") == {
        "figure 5.9",
        "figure 5.10",
        "figure 5.11",
    }
    assert named_figures("section 5.1, example 1, and table 2") == {"table 2"}
    assert named_figures("sections 4 and 5") == set()


@pytest.mark.slow
def test_a_heading_keeps_its_units() -> None:
    """A figure's name begins with a capital, and its other letters stay as they are."""
    asked = Redrawn(name="figure 2 (1.6 Mbit/s)", shows="W", runs=["x"], picture="cwnd")
    assert asked.heading == "Figure 2 (1.6 Mbit/s)"


@pytest.mark.slow
def test_a_thumbnail_shows_every_point(folders: list[Path]) -> None:
    """A small drawing has a path for each line, inside its frame, without names."""
    figure = _drawn(folders)["figure 1"].figure
    assert figure
    svg = thumbnail(figure)
    assert svg.count("<path") == len(figure.lines) + 1  # a line with dots has two paths
    assert "nan" not in svg
    assert "first" not in svg
    assert "<path" not in thumbnail(replace(figure, lines=[]))


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(PAPERS.glob("*.yml")), ids=lambda path: path.stem)
def test_the_papers_figures_have_runs(path: Path) -> None:
    """Each figure in a paper's file names existing experiments and points."""
    for each in find_paper(path.stem).figures:
        for run in each.runs:
            experiment = run.partition("@")[0]
            assert run == experiment or run in point_names(experiment)


# The last figure of each section, and the last table.
NUMBERED = {
    "abrahamsson-2002": "figure 9",
    "barakat-2000": "figure 7",
    "ge-2011": "figure 5, table 3",
    "kalampoukas-1998": "figure 2.4, figure 3.4, figure 4.1, figure 5.16",
    "zhang-1991": "figure 9",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_every_sentence_has_an_answer(name: str) -> None:
    """A sentence's claim is in an experiment, and each claim and figure has a sentence."""
    paper = find_paper(name)
    files = [experiment_file(path) for path in (EXPERIMENTS / name).glob("*.yml")]
    assert set(paper.claimed) == {
        " ".join(claim.claim.split()) for file in files for claim in load_experiment(file).claims
    }
    places = [each.where for each in paper.untested] + [each.name for each in paper.figures]
    places += [place for found in paper.claimed.values() for each in found for place in each]
    named = re.findall(r"(figure|table)s? ([\d.]+(?:(?:, | and )[\d.]+)*)", str(places))
    said = {f"{kind} {each}" for kind, all_of in named for each in re.split(", | and ", all_of)}
    for last in NUMBERED[name].split(", "):
        start, number = re.fullmatch(r"(.*?)(\d+)", last).groups()  # type: ignore[union-attr]
        assert {f"{start}{each}" for each in range(1, int(number) + 1)} <= said


@pytest.mark.slow
def test_without_captures_a_picture_says_so(folders: list[Path], tmp_path: Path) -> None:
    """If a run has lost its captures, its figure is not drawn, and the page names the command."""
    run = "swept@window=4,acks=delayed"
    figure = {"name": "figure 4", "shows": "a queue", "runs": [run], "picture": "queues"}
    file = {"title": PAPER, "figures": [figure], "untested": []}
    (tmp_path / "papers" / f"{PAPER}.yml").write_text(json.dumps(file))
    write_site(folders, tmp_path / "site", 83)
    said = f"its captures were left out: `twoway run {run}` makes them again"
    assert said in (tmp_path / "site" / PAGE).read_text("utf-8")


@pytest.mark.slow
def test_a_figure_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two figures of one name are an error that names it, and so are two kinds in one figure."""
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    file = {"title": "X", "untested": [], "figures": [FIGURES[1], FIGURES[1]]}
    (tmp_path / "x.yml").write_text(json.dumps(file))
    with pytest.raises(TwowayError, match=r"x.yml: .*figures: figure 2 is there twice"):
        find_paper("x")
    file["figures"] = [{**FIGURES[1], "picture": "queues"}]
    (tmp_path / "x.yml").write_text(json.dumps(file))
    with pytest.raises(TwowayError, match=r"figures.0: .*needs either metrics or picture"):
        find_paper("x")


@pytest.fixture(name="site")
def written(folders: list[Path], tmp_path: Path) -> Path:
    """Write the site for these runs."""
    write_site(folders, tmp_path / "site", 83)
    return tmp_path / "site"


@pytest.mark.slow
def test_figures_begin_on_the_first_screen(
    browser: Any, folders: list[Path], tmp_path: Path
) -> None:
    """Despite long contradictions, 1100 x 900 px show the index's first figures."""
    row = {
        "verdict": "contradicted, on record",
        "contradicted": {"since": "2026-11-24", "why": "too short"},
        "note": "too short " * 20,
    }
    for folder in folders:
        edit_json(folder / VERDICTS, lambda v: [each.update(row) for each in v["predictions"]])
    write_site(folders, tmp_path / "site", 83)
    browser.set_window_size(1100, 900)
    browser.get((tmp_path / "site/index.html").as_uri())
    card = "document.querySelector('.gallery svg').getBoundingClientRect()"
    assert browser.execute_script(f"return innerHeight - {card}.bottom") > 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [1100, 430])
def test_the_index_is_a_gallery(browser: Any, site: Path, width: int) -> None:
    """Each figure is a card that opens it; texts of files stay texts; nothing is cut off."""
    browser.set_window_size(width, 900)
    browser.get((site / "index.html").as_uri())
    cards = browser.find_elements(By.CSS_SELECTOR, ".gallery a")
    assert [card.text.split("\n")[0] for card in cards] == [
        f"{each['name'].capitalize()}: {each['shows']}" for each in FIGURES
    ]
    assert len(browser.find_elements(By.CSS_SELECTOR, ".gallery svg")) == 2
    assert "4 of their figures and tables" in browser.find_element(By.TAG_NAME, "p").text
    differs = browser.find_element(By.CSS_SELECTOR, "details.differs")
    browser.execute_script("arguments[0].open = true", differs)
    cut = "return arguments[0].scrollWidth - arguments[0].clientWidth"
    assert browser.execute_script(cut, differs) == 0
    assert browser.execute_script(cut, browser.find_element(By.TAG_NAME, "html")) == 0
    address = cards[0].get_attribute("href")
    assert address.endswith(f"/{PAGE}#figure-1")


@pytest.mark.slow
def test_a_papers_page_leads_with_its_figures(browser: Any, site: Path) -> None:
    """A page begins with figures and verdicts; a dot opens its run, also after zooming."""
    opened(browser, site / PAGE, 1100)
    assert console(browser) == []
    plots = [each.get_attribute("id") for each in browser.find_elements(By.CSS_SELECTOR, ".plot")]
    assert plots[:2] == ["plot-figure-1", "plot-table-1"]
    titles = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "figure > h3")]
    assert titles[0] == "Figure 1: a <b>line</b> a prediction fails"
    body = browser.find_element(By.TAG_NAME, "body").text
    assert "What it shows is undefined at every point." in body
    assert "None of its runs is among the results: twoway run other" in body
    over = browser.find_element(By.CSS_SELECTOR, "#plot-figure-1 .u-over")
    # The first of three dots and a part of the line before the second are outside of the picture.
    right, down = browser.execute_script(
        """const {plot} = document.getElementById("plot-figure-1");
        plot.element.scrollIntoView({block: "center"});
        const {x, y} = plot.traces[0];
        plot.show({x: [x[1] + 1, x[2] + 1], y: [0, y[2] + 1]});
        const {clientWidth, clientHeight} = plot.chart.over;
        return [plot.chart.valToPos(x[2], "x") - clientWidth / 2,
                plot.chart.valToPos(y[2], "y") - clientHeight / 2]"""
    )
    there = ActionChains(browser).move_to_element_with_offset(over, round(right), round(down))
    there.click().perform()
    WebDriverWait(browser, 20).until(lambda b: "swept@window=16,acks=delayed" in b.current_url)


# Figures of one metric against another.

MATRIX = {
    "control": {"set": ["flows.first.congestion"], "to": ["cubic", "bbr"]},
    "line": {"set": ["profile.forward.rate_mbit"], "to": [1, 50]},
}


def _result(control: str, line: int, values: dict[str, float | None], **asked: Any) -> Result:
    document = manifest()
    document["experiment"] |= {
        "id": f"class@control={control},line={line}",
        "matrix": MATRIX,
        "figures": [{"y": "goodput", "x": "rtt_p95", "for_each": None, **asked}],
    }
    document["point"] = {"control": control, "line": line}
    made = Manifest.model_validate(document)
    units = {"goodput": "Mbit/s", "rtt_p95": "ms"}
    metrics = metrics_of(
        document,
        {name: {"value": v, "unit": units[name.split(".")[0]]} for name, v in values.items()},
    )
    folder = Path(f"{control}-{line}")
    return Result(folder, made, metrics, judge_statements(made, metrics, lambda _run: None))


def _both(number: float) -> dict[str, float | None]:
    return {"goodput.first": number, "rtt_p95.first": 10 * number}


def _link(result: Result) -> str:
    return f"{result.folder}/report.html"


def test_a_figure_for_each_value_of_an_axis() -> None:
    """Each value of the axis has a figure with a dot for each run; a dot links to its run."""
    results = [
        _result(control, line, _both(line + place), for_each="line")
        for line in (1, 50)
        for place, control in enumerate(["cubic", "bbr"])
    ]
    slow, fast = scatters(Experiment("class", tuple(results)), _link)
    assert (slow.id, fast.id) == (
        "class-goodput-against-rtt_p95-1",
        "class-goodput-against-rtt_p95-50",
    )
    assert slow.title == "goodput against rtt p95, line 1"
    assert (slow.x_label, slow.y_label) == ("rtt p95, ms", "goodput, Mbit/s")
    assert [line.name for line in fast.lines] == ["first, control cubic", "first, control bbr"]
    assert [(*line.x, *line.y) for line in fast.lines] == [(500, 50), (510, 51)]
    assert fast.lines[1].links == ("bbr-50/report.html",)
    assert {line.style for line in fast.lines} == {"points"}
    assert [line.colour for line in fast.lines] == [0, 1]


def test_one_figure_of_all_runs() -> None:
    """Without an axis one figure has the dots of all runs, each point with its name."""
    results = [_result("cubic", 1, _both(1)), _result("bbr", 50, _both(2))]
    (figure,) = scatters(Experiment("class", tuple(results)), _link)
    assert figure.title == "goodput against rtt p95"
    assert [line.name for line in figure.lines] == [
        "first, control cubic, line 1",
        "first, control bbr, line 50",
    ]


def test_what_is_not_measured_has_no_dot() -> None:
    """A dot needs both metrics of one connection, and a figure needs a dot."""
    lacking: list[dict[str, float | None]] = [
        {"goodput.first": 1, "rtt_p95.first": None},
        {"goodput.first": None, "rtt_p95.first": 1},
        {"goodput.first": 1, "rtt_p95.second": 1},
    ]
    for values in lacking:
        experiment = Experiment("class", (_result("cubic", 1, values),))
        assert scatters(experiment, _link) == []


# The picture of Barakat and Altman's safe region.

PIPE = 205.0


def _region_result(name: str, main: int, upstream: int, drops: float) -> Result:
    """Make a run with buffers of this size, plus one packet in transmission."""
    limits = {"node1": upstream + 1, "bottleneck": main + 1}
    document = manifest()
    document["experiment"] |= {
        "id": f"barakat-fig5-6@point={name}",
        "matrix": {"point": {"to": ["safe", "step", "lossy"]}},
    }
    document["point"] = {"point": name}
    document["queues"] = [
        {**document["queues"][0], "direction": direction, "limit_packets": limit}
        for direction, limit in limits.items()
    ]
    peak = prediction("window_peak.flow", PIPE + main - 1, printed=PIPE + main)
    document["experiment"]["predictions"] = [peak]
    made = Manifest.model_validate(document)
    metrics = metrics_of(document, {"drops_per_epoch": {"value": drops, "unit": "packets"}})
    return Result(Path(), made, metrics, judge_statements(made, metrics, lambda _run: None))


def test_edges_and_points() -> None:
    """For mu T = 205 the exact region begins at 64.5 packets, the paper's at mu T / 3.

    The region is 205 + B < 2^n + 2B, where 2^n is the power of two from 2B on. It holds from B =
    64.5 on, where that power is 256.
    """
    results = (
        _region_result("safe", 80, 80, 1),
        _region_result("step", 66, 80, 1),
        _region_result("lossy", 80, 50, 7),
    )
    figure = pictures(Experiment("barakat-fig5-6", results))[0]
    exact, paper, safe, lossy = figure.lines
    assert exact.x.min() == exact.y.min() == 64.5
    assert paper.x.min() == 68.5  # the first half-integer above 205/3
    assert dict(zip(paper.x, paper.y, strict=True))[80.0] == pytest.approx((PIPE + 80) / 4)
    assert list(zip(safe.x, safe.y, strict=True)) == [(80, 80), (66, 80)]
    assert list(zip(lossy.x, lossy.y, strict=True)) == [(80, 50)]
