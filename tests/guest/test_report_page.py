"""Pages in a real browser: a run's report and a sweep's page, its tables, and refusals."""

import re
from base64 import b64decode
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any
from urllib.parse import unquote

import pyarrow.csv
import pyarrow.parquet
import pytest
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from support.running import write_experiment
from support.warm_command import twoway

from twoway.api import Sweep, load

# report.html in a real browser: it draws, it zooms, and its console stays empty.


@pytest.fixture
def report(small_run: Path) -> Path:
    """The page of a small run with one claim."""
    return small_run / "report.html"


def _range(browser: Any) -> list[float]:
    found = browser.execute_script("return document.getElementById('queues').plot.ranges.x")
    return [float(value) for value in found]


def test_page_draws_and_zooms_without_a_word_on_the_console(browser: Any, report: Path) -> None:
    """Every plot is drawn, a drag zooms into the queue plot, and nothing is logged."""
    opened(browser, report, 1200)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plot.drawn")) == 8
    before = _range(browser)
    plot = browser.find_element(By.CSS_SELECTOR, "#queues .u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    drag = ActionChains(browser).move_to_element_with_offset(plot, -100, 0).click_and_hold()
    drag.move_by_offset(120, 0).move_by_offset(40, 0).release().perform()
    WebDriverWait(browser, 10).until(lambda b: _range(b) != before)
    after = _range(browser)
    assert before[0] < after[0] < after[1] < before[1]
    assert console(browser) == []


def test_page_fits_a_phone(browser: Any, report: Path) -> None:
    """At phone width the page never scrolls sideways; wide tables scroll inside it."""
    opened(browser, report, 500)
    wide, seen = browser.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert wide <= seen
    assert console(browser) == []


def test_page_says_what_the_run_found(browser: Any, report: Path) -> None:
    """Verdict, fidelity and provenance tables are filled, and the topology is drawn."""
    opened(browser, report, 1200)
    text = browser.find_element(By.TAG_NAME, "body").text
    assert "1 claim: agrees" in text
    for element in ("#claims tr", "#fidelity tr", "#metrics tr", "svg.topology .bottleneck"):
        assert browser.find_elements(By.CSS_SELECTOR, element), element


def test_one_flow_in_all_pictures(browser: Any, report: Path) -> None:
    """The list of flows hides the traces of every other flow, and those of no flow stay."""
    opened(browser, report, 1200)
    shown = """const {traces, hidden} = document.getElementById(arguments[0]).plot;
        return traces.filter((_, n) => !hidden.has(n)).map(({name}) => name);"""
    every = browser.execute_script(shown, "cwnd")
    flows = Select(browser.find_element(By.ID, "flow"))
    for flow, others in (("left", "right"), ("right", "left")):
        flows.select_by_visible_text(flow)
        left = [name for name in every if not name.startswith(others)]
        assert browser.execute_script(shown, "cwnd") == left != every
        assert "forward queue" in browser.execute_script(shown, "queues")
    flows.select_by_visible_text("all")
    assert browser.execute_script(shown, "cwnd") == every
    assert console(browser) == []


# A sweep's page in a real browser, its tables, and refusals.

# A program of every second point fails.
SWEEP: dict[str, Any] = {
    "schema": 1,
    "title": "Buffers <b>and</b> programs",
    "topology": {"name": "two_node"},
    "profile": "access-8mbit",
    "flows": [{"name": "up", "from": "h2", "to": "h1", "congestion": "reno"}],
    "programs": [{"name": "check", "host": "h1", "command": ["true"]}],
    "duration_s": 3,
    "warm_up_s": 1,
    "matrix": {
        "buffer": {"set": ["profile.reverse.queue_packets"], "to": [5, 10, 20]},
        "exit": {"set": ["programs.check.exit_code"], "to": [0, 1]},
    },
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a sweep in which half of the points failed."""
    folder = tmp_path_factory.mktemp("swept")
    experiment = write_experiment(folder, SWEEP).rename(folder / "small.yaml")
    done = twoway("sweep", experiment, "--results", folder / "results", "--metric", "queue_p95")
    assert done.returncode == 1
    assert f"report: {folder}/results/{experiment.stem}/index.html" in done.stderr
    return folder / "results" / experiment.stem


@pytest.mark.usefixtures("guest")
def test_the_page_has_figures_and_a_row_a_point(browser: Any, results: Path) -> None:
    """The requested metric is drawn first, failed points are named, and nothing is logged."""
    opened(browser, results / "index.html")
    assert console(browser) == []
    plots = [each.get_attribute("id") for each in browser.find_elements(By.CSS_SELECTOR, ".plot")]
    assert plots[0] == f"{results.name}-queue_p95"
    assert len(browser.find_elements(By.CSS_SELECTOR, "table.filtered tbody tr")) == 3
    assert len(browser.find_elements(By.CSS_SELECTOR, "li.bad")) == 3
    assert browser.find_element(By.TAG_NAME, "h1").text == "Buffers <b>and</b> programs"
    assert browser.find_element(By.CSS_SELECTOR, ".verdict").text == (
        "3 of 6 points are as their files say"
    )


@pytest.mark.usefixtures("guest")
def test_the_table_sorts_and_filters(browser: Any, results: Path) -> None:
    """A click on a heading sorts its numbers, a second one reverses; words hide other rows."""
    opened(browser, results / "index.html")
    column = """return Array.from(
        document.querySelectorAll("table.filtered tbody tr:not([hidden])"),
        (row) => row.cells[0].textContent)"""
    title = browser.find_element(By.CSS_SELECTOR, "table.filtered thead th")
    for order in (["5", "10", "20"], ["20", "10", "5"]):
        browser.execute_script("arguments[0].click()", title)
        assert browser.execute_script(column) == order
    browser.find_element(By.ID, "filter").send_keys("zzz")
    assert browser.execute_script(column) == []


@pytest.mark.usefixtures("guest")
def test_a_dot_opens_its_run(browser: Any, results: Path) -> None:
    """A click on a dot of a figure opens the page of its point's run."""
    opened(browser, results / "index.html")
    _click_second_dot(browser)
    there = f"{results.name}@buffer=10,exit=0"
    WebDriverWait(browser, 20).until(lambda b: unquote(b.current_url).find(there) > 0)


@pytest.mark.usefixtures("guest")
def test_every_point_has_a_page_and_captures(results: Path, tmp_path: Path) -> None:
    """Each point's run has a report; a run without its captures is named and made again."""
    there = tmp_path / "results"
    copytree(results.parent, there, symlinks=True)
    runs = sorted(there.glob("*@buffer=*/2*/manifest.json"))
    assert [(run.parent / "report.html").is_file() for run in runs] == [True] * 3
    rmtree(runs[0].parent / "pcap")
    done = twoway("sweep", results.parents[1] / f"{results.name}.yaml", "--results", there)
    assert f"not kept: {runs[0].parent}: missing or changed since the run: pcap" in done.stderr
    assert done.stderr.count("(kept)") == 2
    assert len([*there.glob("*exit=0/2*/pcap")]) == 3


def _click_second_dot(browser: Any) -> None:
    over = browser.find_element(By.CSS_SELECTOR, ".plot .u-over")
    right, down = browser.execute_script(
        """const {plot} = document.querySelector(".plot");
        plot.element.scrollIntoView({block: "center"});
        const [x, y] = [plot.traces[0].x[1], plot.traces[0].y[1]];
        const {clientWidth, clientHeight} = plot.chart.over;
        return [plot.chart.valToPos(x, "x") - clientWidth / 2,
                plot.chart.valToPos(y, "y") - clientHeight / 2]"""
    )
    there = ActionChains(browser).move_to_element_with_offset(over, round(right), round(down))
    there.click().perform()


@pytest.mark.usefixtures("guest")
def test_a_shared_sweep_is_one_file(browser: Any, results: Path, tmp_path: Path) -> None:
    """A shared file has page, tables and runs: a dot opens its run's page, `load` the runs."""
    file = tmp_path / "sweep.html"
    done = twoway("share", results.name, "--results", results.parent, "--to", file)
    assert done.returncode == 0, done.stderr
    opened(browser, file)
    table = browser.find_element(By.CSS_SELECTOR, "a[download='points.csv']").get_attribute("href")
    assert b64decode(table.partition(",")[2]) == (results / "points.csv").read_bytes()
    _click_second_dot(browser)
    WebDriverWait(browser, 20).until(lambda b: b.current_url.startswith("blob:"))
    WebDriverWait(browser, 20).until(lambda b: f"{results.name}@buffer=10" in b.title)
    assert console(browser) == []
    loaded = load(file)
    assert isinstance(loaded, Sweep)
    assert list(loaded.runs) == [f"{results.name}@buffer={n},exit=0" for n in (5, 10, 20)]


@pytest.mark.usefixtures("guest")
def test_the_tables_have_units(results: Path) -> None:
    """points.csv and points.parquet have the same rows; units are in the header and the schema."""
    table = pyarrow.parquet.read_table(results / "points.parquet")
    assert table["buffer"].to_pylist() == [5, 10, 20]
    assert table.schema.field("goodput.up").metadata == {b"unit": b"Mbit/s"}
    rows = pyarrow.csv.read_csv(results / "points.csv")
    assert rows["goodput.up [Mbit/s]"].to_pylist() == table["goodput.up"].to_pylist()


@pytest.mark.usefixtures("guest")
def test_the_page_is_the_same_whenever_it_is_written(results: Path) -> None:
    """The page has no time of day, so a sweep with kept runs writes the same bytes."""
    assert not re.search(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", (results / "index.html").read_text())


@pytest.mark.usefixtures("guest")
def test_an_unknown_metric_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """--metric with an unknown name lists all names, and makes no run."""
    experiment = write_experiment(tmp_path, SWEEP)
    done = twoway("sweep", experiment, "--results", tmp_path / "results", "--metric", "nosuch")
    assert done.returncode == 2
    assert "--metric: nosuch: no such metric" in done.stderr
    assert "goodput" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("guest")
def test_watching_a_single_run_is_refused(tmp_path: Path) -> None:
    """--watch writes a sweep's page, so a single run is refused, and nothing runs."""
    experiment = write_experiment(tmp_path, {**SWEEP, "matrix": {}})
    done = twoway("run", experiment, "--results", tmp_path / "results", "--watch")
    assert done.returncode == 2
    assert f"--watch: writes a sweep's page, and {experiment} is one point" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("verb", ["run", "sweep"])
def test_a_metric_of_a_single_run_is_refused(tmp_path: Path, verb: str) -> None:
    """--metric draws a sweep's points, so a single run is refused, and nothing runs."""
    experiment = write_experiment(tmp_path, {**SWEEP, "matrix": {}})
    done = twoway(verb, experiment, "--results", tmp_path / "results", "--metric", "goodput")
    assert done.returncode == 2
    assert f"--metric: goodput: needs a sweep, and {experiment} is one point" in done.stderr
    assert not (tmp_path / "results").exists()
