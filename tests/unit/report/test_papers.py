"""The reproduction report: the papers' claims, their verdicts, and its pages in a browser."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from support.page_text import page_text
from support.swept_runs import PAPER, WINDOWS, write_points
from support.synthetic_run import edit_json, write_run

from twoway.contract.judge import Verdict
from twoway.contract.verdicts import VERDICTS, ClaimRow, PredictionRow
from twoway.errors import TwowayError
from twoway.report import curves as drawing
from twoway.report import papers
from twoway.report.claims import Claim, Said, Sharpness, claims, predictions, worst_percent
from twoway.report.curves import curves
from twoway.report.papers_site import write_site
from twoway.report.papers_tables import read_numbers
from twoway.report.report import analyse_run
from twoway.report.results import Experiment, read_results

pytestmark = pytest.mark.slow

ON_RECORD = {"since": "2026-11-24", "why": "too short"}


@pytest.fixture(name="folders")
def made(tmp_path: Path) -> list[Path]:
    """Make a sweep's six points, in no order, and a single run without a paper."""
    points = write_points(tmp_path / "results")
    single = write_run(tmp_path / "single")
    analyse_run(single)
    return [*points, single]


@pytest.fixture(name="swept")
def read(folders: list[Path]) -> Experiment:
    """Read the sweep."""
    return read_results(folders)[1]


@pytest.fixture(name="claim")
def claimed(swept: Experiment) -> Claim:
    """Return the only claim about the sweep."""
    (claim,) = claims([swept])
    return claim


def test_results_are_grouped_and_in_the_order_of_the_sweep(folders: list[Path]) -> None:
    """Points are in the matrix's order, grouped by experiment, and those by paper."""
    single, swept = read_results(folders)
    assert single.paper == ""
    assert swept.paper == PAPER
    assert [dict(result.point) for result in swept.results] == [
        {"window": window, "acks": acks}
        for window in WINDOWS
        for acks in ("every-segment", "delayed")
    ]


def test_a_claim_counts_once(claim: Claim) -> None:
    """A claim of the paper counts once, however many metrics and runs have rows for it."""
    assert len(claim.rows) == 12
    assert claim.experiments == ["swept"]


def test_a_claim_is_as_good_as_its_worst_row(claim: Claim) -> None:
    """One unexplained row makes the claim unexplained; without it, the claim agrees."""
    assert claim.verdict is Verdict.UNEXPLAINED  # undefined at one point
    assert claim.worst.row.measured is None
    kept = [said for said in claim.rows if said.row.measured is not None]
    assert {said.row.verdict for said in kept} == {Verdict.AGREES}


def test_the_row_nearest_to_its_bound_is_shown(claim: Claim) -> None:
    """The row shown is the one that misses its bound most, or the nearest to it if none misses."""
    said = next(each for each in claim.rows if each.row.measured == 8.8)

    def bounded(measured: float, **bounds: float) -> Said[ClaimRow]:
        change = {"value": None, "tolerance": None, "verdict": Verdict.AGREES, **bounds}
        return Said(said.result, said.row.model_copy(update={"measured": measured, **change}))

    rows = [bounded(-0.058, at_most=0.0), bounded(-0.034, at_most=0.0), bounded(9, at_least=1.0)]
    shown = replace(claim, rows=rows).worst
    assert (shown.measured, shown.gap) == (-0.034, -0.034)
    between = bounded(7, at_least=5.0, at_most=8.0)
    assert (between.edge, between.gap, between.gap_percent) == (8, -1, -12.5)
    beyond = [bounded(4, at_least=5.0), bounded(2, at_least=5.0)]
    assert replace(claim, rows=beyond).worst.measured == 2


def test_gaps_are_in_units_and_per_cent(swept: Experiment) -> None:
    """A gap is measured minus predicted, in units and per cent; a predicted 0 has no per cent."""
    found = list(predictions(swept))
    delayed = next(said for said in found if said.result.id == "swept@window=8,acks=delayed")
    assert delayed.gap == pytest.approx(0.8)
    assert delayed.gap_percent == pytest.approx(10)
    assert delayed.printed_percent == pytest.approx(100)
    assert worst_percent(found) == pytest.approx(120)
    of_zero = Said(delayed.result, delayed.row.model_copy(update={"value": 0.0}))
    assert of_zero.gap_percent is None
    assert worst_percent([of_zero]) is None


def test_curves_overlay_measured_predicted_and_printed(swept: Experiment) -> None:
    """A family of metrics is a figure over the longest axis, without undefined points."""
    (figure,) = curves(swept)
    assert figure.x_label == "window, packets"
    lines = {line.name: line for line in figure.lines if line.name}
    of = "first, acks delayed, "
    assert lines[f"{of}measured"].x.tolist() == WINDOWS
    assert lines[f"{of}predicted"].y.tolist() == WINDOWS
    assert lines[f"{of}paper's formula"].y.tolist() == [2 * window for window in WINDOWS]
    assert lines[f"{of}paper"].y.tolist() == pytest.approx([1.1 * window for window in WINDOWS])
    assert lines["first, acks every-segment, measured"].x.tolist() == [4, 8]


def test_words_on_an_axis_are_not_joined(swept: Experiment) -> None:
    """Words on an axis are names of points without a line; numbers are joined by a line."""
    assert drawing.axis_names(swept, "window") == ()
    assert drawing.axis_names(swept, "acks") == ("every-segment", "delayed")
    for axis, style in (("window", "marked"), ("acks", "points")):
        _, lines = drawing.said_lines(swept, axis, ["efficiency"], lambda result: result.id)
        assert {line.style for line in lines if line.name.endswith("measured")} == {style}


def test_an_axis_of_decades_is_logarithmic(
    swept: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An axis from 4 to 16 is linear; with a limit of a factor of four it is logarithmic."""
    assert [figure.log_x for figure in curves(swept)] == [False]
    monkeypatch.setattr(drawing, "_DECADES", 4)
    assert [figure.log_x for figure in curves(swept)] == [True]


def test_document_and_tables_have_every_number(folders: list[Path], tmp_path: Path) -> None:
    """papers.json is the document; tables have a line for each claim, point and paper."""
    document = write_site(folders, tmp_path / "site", 83)
    assert json.loads((tmp_path / "site/papers.json").read_text()) == document
    paper, beyond = document["papers"]
    assert (paper["title"], paper["claims"], paper["differs, unexplained"]) == (PAPER, 1, 1)
    assert (paper["predictions"], paper["kept"]) == (6, 0)
    assert (paper["forms"]["digits"]["claims"], paper["forms"]["words"]["claims"]) == (1, 0)
    (swept,) = paper["experiments"]
    assert (swept["pass"], swept["speed"], swept["command"]) == (False, 5.0, "twoway run swept")
    assert (tmp_path / "site" / swept["points"][0]["run"]).is_dir()
    assert beyond["experiments"][0]["pass"] is True
    summary = (tmp_path / "site/summary.json").read_text()
    papers = [json.loads(line.rstrip(",")) for line in summary.splitlines() if '"title"' in line]
    assert papers == json.loads(summary)["papers"]
    (numbers,) = (tmp_path / "site/numbers").glob("zhang*.jsonl")
    for path, count in ((tmp_path / "site/claims.csv", 1), (tmp_path / "site/predictions.csv", 6)):
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert rows[0]["point"].startswith("swept@window=")
        assert "" in {row["measured"] for row in rows}
    lines = [json.loads(line) for line in numbers.read_text().splitlines()]
    assert {line.pop("git") for line in lines} == {"0" * 12}
    assert sum(len(line) - 1 for line in lines) == 12
    assert lines[0]["point"].startswith("swept@window=")
    assert any(None in line.values() for line in lines)
    assert read_numbers(numbers.parent) == {line.pop("point"): line for line in lines}


def test_a_claim_counts_by_paper_and_by_the_strictest_form(
    folders: list[Path], tmp_path: Path
) -> None:
    """claims.csv has paper and form; a claim with a number and a formula is a printed number."""
    for run in folders[:-1]:
        edit_json(run / VERDICTS, lambda v: v["claims"][0].update({"formula": True}))
    write_site(folders, tmp_path / "site", 83)
    with (tmp_path / "site/claims.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["paper"], row["form"]) == (PAPER, "digits")
    for run in folders[:-1]:
        edit_json(run / VERDICTS, lambda v: v["claims"][1].update({"formula": True}))
    document = write_site(folders, tmp_path / "site", 83)
    assert document["papers"][0]["verdicts"][0]["form"] == "formula"


def test_a_number_that_is_not_comparable_is_no_agreement(claim: Claim) -> None:
    """A claim with rows that agree and one that is not comparable is not comparable."""
    agrees = next(said for said in claim.rows if said.row.verdict is Verdict.AGREES)
    untold = Said(agrees.result, agrees.row.model_copy(update={"verdict": Verdict.NOT_COMPARABLE}))
    assert replace(claim, rows=[agrees, untold]).verdict is Verdict.NOT_COMPARABLE
    worse = Said(agrees.result, agrees.row.model_copy(update={"verdict": Verdict.UNEXPLAINED}))
    assert replace(claim, rows=[untold, worse]).verdict is Verdict.UNEXPLAINED


def test_what_differs_is_one_click_away(folders: list[Path], tmp_path: Path) -> None:
    """The index counts unexplained differences, and lists them before the experiments."""
    write_site(folders, tmp_path / "site", 83)
    index = page_text(tmp_path / "site/index.html")
    first = index.index("Differs, unexplained: 1 of 1 claims of ")
    assert index.rindex("<details", 0, first) > 0
    assert first < index.index("furthest off")
    assert "differs, unexplained" in index[first:]


def test_contradicted_predictions_stand_before_claims(folders: list[Path], tmp_path: Path) -> None:
    """The index begins with recorded contradictions; papers.json counts them."""
    row = {"verdict": "contradicted, on record", "contradicted": ON_RECORD, "note": "too short"}
    edit_json(folders[0] / VERDICTS, lambda v: v["predictions"][0].update(row))
    document = write_site(folders, tmp_path / "site", 83)
    assert [paper["contradicted"] for paper in document["papers"]] == [1, 0]
    index = page_text(tmp_path / "site/index.html")
    summary = "<summary>Contradicted predictions: 1 of 6 of "
    assert index.count(f'<details class="differs">{summary}') == 1
    first = index.index(summary)
    assert first < index.index("2026-11-24") < index.index("too short")
    assert index.index("too short") < index.index("Differs, unexplained: ")


def test_what_is_predicted_of_the_testbed_is_fidelity(folders: list[Path], tmp_path: Path) -> None:
    """Predictions of the testbed are counted as checks of fidelity, in a table of their own."""
    edit_json(folders[0] / VERDICTS, lambda v: v["predictions"][0].update({"of_testbed": True}))
    document = write_site(folders, tmp_path / "site", 83)
    paper, _ = document["papers"]
    names = ("predictions", "testbed_checks", "testbed_checks_kept")
    assert [paper[name] for name in names] == [5, 1, 0]
    assert "5 predictions: FAIL; 1 testbed check: FAIL" in paper["experiments"][0]["headline"]
    rows = {
        name: list(csv.DictReader((tmp_path / "site" / name).read_text().splitlines()))
        for name in ("predictions.csv", "fidelity.csv")
    }
    assert [len(each) for each in rows.values()] == [5, 1]
    points = next((tmp_path / "site").glob("zhang*-points.html")).read_text()
    assert "1 checks of the testbed" in points


def test_sharpness_is_the_share_of_a_tolerance_that_is_used(swept: Experiment) -> None:
    """The index counts exact predictions, bounds, loose tolerances, and misses of the formula."""
    row = next(iter(predictions(swept))).row

    def of(measured: float, tolerance: float | None, **more: float | None) -> PredictionRow:
        said = {"value": 10.0, "printed": None, **more}
        return row.model_copy(update={"measured": measured, "tolerance": tolerance, **said})

    found = Sharpness.from_rows(
        [
            of(10, 0, printed=9),
            of(10.5, 2, printed=10.4),
            of(10.5, 1, printed=9),
            of(10.001, 1),
            of(11, None, value=None, at_least=10.0),
        ]
    )
    assert (found.exact, found.bounds, found.slack, found.median) == (1, 1, 1, 0.25)
    assert (found.printed, found.printed_fails) == ([False, True, False], 2)


def test_a_part_is_not_the_whole(folders: list[Path], tmp_path: Path) -> None:
    """The index says how many of all experiments it shows."""
    write_site(folders, tmp_path / "site", 83)
    index = page_text(tmp_path / "site/index.html")
    assert "Experiments shown here: 2 of 83." in index


def test_a_paper_has_a_title_and_what_is_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paper's file has its title and untested claims; without a file the title is the name."""
    monkeypatch.setattr(papers, "PAPERS", tmp_path)
    monkeypatch.setattr(papers, "ROOT", tmp_path)
    assert papers.find_paper("Somebody, 2000").title == "Somebody, 2000"
    untested = [{"claim": "It rains.", "where": "section 1", "why": "no sky"}]
    (tmp_path / "x-1.yml").write_text(json.dumps({"title": "X, 1", "untested": untested}))
    found = papers.find_paper("x-1")
    assert (found.title, found.untested[0].why) == ("X, 1", "no sky")
    for entry, message in (
        ("{claim: y}", "untested.0.where: Field required"),
        ("{claim: y, where: z}", "untested.0: Value error, needs either why or run"),
        ("{claim: y, where: z, why: a, run: b}", "needs either why or run"),
    ):
        (tmp_path / "x-1.yml").write_text(f"title: X\nuntested: [{entry}]")
        with pytest.raises(TwowayError, match=rf"x-1.yml: .*{message}"):
            papers.find_paper("x-1")


def test_no_run(tmp_path: Path) -> None:
    """A folder that is no analysed run is named."""
    with pytest.raises(AnalysisError, match=f"{tmp_path}: no manifest.json: not a finished run"):
        read_results([tmp_path])


def test_a_run_without_metrics(tmp_path: Path) -> None:
    """A damaged metrics.json is named, and not taken for a result."""
    run = write_run(tmp_path / "single", [])
    analyse_run(run)
    (run / "metrics.json").write_text("{")
    with pytest.raises(AnalysisError, match=r"metrics.json: "):
        read_results([run])


@pytest.fixture(name="site")
def written(folders: list[Path], tmp_path: Path) -> Path:
    """Write the site for these runs."""
    write_site(folders, tmp_path / "site", 83)
    return tmp_path / "site"


@pytest.mark.parametrize("width", [1200, 390])
def test_pages_in_a_browser(browser: Any, site: Path, width: int) -> None:
    """Index and pages load on desktop and phone, draw every plot, log nothing, do not overflow."""
    browser.set_window_size(width, 900)
    browser.get((site / "index.html").as_uri())
    links = browser.find_elements(By.CSS_SELECTOR, "#papers a")
    assert [link.text for link in links] == [PAPER, "Beyond the papers"]
    for link in [each.get_attribute("href") for each in links]:
        page = site / link.rpartition("/")[2]
        opened(browser, page, width)
        assert browser.find_elements(By.CSS_SELECTOR, ".plot.drawn")
        assert console(browser) == []
        spill = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(spill) == 0


def test_the_table_of_counts_fits(browser: Any, folders: list[Path], tmp_path: Path) -> None:
    """In a window of 1100 px the index's table of counts, with its longest words, fits."""
    row = {"verdict": "contradicted, on record", "contradicted": ON_RECORD, "note": "too short"}
    edit_json(folders[0] / VERDICTS, lambda v: v["predictions"][0].update(row))
    missing = {"verdict": Verdict.NO_RUN.value}
    for folder in folders[:-1]:
        edit_json(folder / VERDICTS, lambda v: [each.update(missing) for each in v["claims"]])
    write_site(folders, tmp_path / "site", 83)
    browser.set_window_size(1100, 900)
    browser.get((tmp_path / "site/index.html").as_uri())
    assert "other run missing" in browser.find_element(By.ID, "papers").text
    box = "document.getElementById('papers').parentElement"
    assert browser.execute_script(f"return {box}.scrollWidth - {box}.clientWidth") == 0


def test_a_long_legend_takes_no_room(browser: Any, site: Path) -> None:
    """On a phone a legend of 16 lines is below the axis's label, and the plot keeps its height."""
    opened(browser, site / "zhang-shenker-clark-observations-1991.html", 390)
    below, height, rows = browser.execute_script(
        """
        const plot = document.querySelector(".plot.drawn");
        const box = (name) => plot.querySelector(name).getBoundingClientRect();
        return [
          box("ul").top - box(".u-wrap").bottom,
          box(".u-over").height,
          plot.querySelectorAll("li").length,
        ];
        """
    )
    assert rows == 16
    assert below >= 0
    assert height > 200


def test_edited_runs_are_read_anew(folders: list[Path], tmp_path: Path) -> None:
    """A second report replaces the first, with the runs' new results."""
    before = write_site(folders, tmp_path / "site", 83)["papers"][0]["kept"]
    edit_json(folders[0] / VERDICTS, lambda v: v["predictions"][0].update({"verdict": "pass"}))
    assert write_site(folders, tmp_path / "site", 83)["papers"][0]["kept"] == before + 1
