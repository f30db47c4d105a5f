"""The reproduction report: what claims say, which picture they make, and its pages in a browser."""

import json
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.errors import AnalysisError
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from synthetic_run import edit_json, expectation, manifest, metrics_of, write_run

from twoway.contract.metrics import ExpectationRow
from twoway.contract.verdict import Verdict
from twoway.report.claims import Claim, claims, worst_percent
from twoway.report.curves import curves
from twoway.report.papers_site import write_site
from twoway.report.report import analyse_run
from twoway.report.results import BEYOND, read_results

pytestmark = pytest.mark.slow

PAPER = "Zhang, Shenker, Clark, Observations, 1991"
WINDOWS = [4, 8, 16]
MATRIX = {
    "window": {"set": ["flows.first.window_packets"], "to": WINDOWS},
    "acks": {"set": ["stack.acks"], "to": ["every-segment", "delayed"]},
}


def _said(source: str, expected: float, measured: float | None, holds: bool) -> dict[str, Any]:
    return {
        "metric": "efficiency.first",
        "measured": measured,
        "unit": "1",
        "value": expected,
        "tolerance": 0.01,
        "at_least": None,
        "at_most": None,
        "source": source,
        "why": f"{source}'s reason",
        "pass": holds,
    }


def _point(folder: Path, window: int, acks: str) -> Path:
    """A run of one point of a sweep: 10 % above theory, half of the paper's value."""
    run = folder / f"swept@window={window},acks={acks}"
    run.mkdir(parents=True)
    measured = 1.1 * window if window != 16 else None
    document = manifest()
    document["experiment"] |= {
        "id": run.name,
        "title": "A sweep",
        "summary": "By hand.",
        "source": {"paper": PAPER, "where": "figure 1"},
        "matrix": MATRIX,
    }
    document |= {
        "point": {"window": window, "acks": acks},
        "timing": {"wall_s": 2.0, "simulated_s": 10.0, "speed": 5.0},
    }
    expect = [
        _said("theory", window, measured, False),
        _said("paper", 2.2 * window, measured, True),
    ]
    (run / "manifest.json").write_text(json.dumps(document))
    metrics_of(document, {}, expect).write(run / "metrics.json")
    return run


@pytest.fixture(name="folders")
def made(tmp_path: Path) -> list[Path]:
    """A sweep's six points, in no order, and a single run that no paper asks for."""
    points = [
        _point(tmp_path / "results", window, acks)
        for acks in ("delayed", "every-segment")
        for window in reversed(WINDOWS)
    ]
    single = write_run(tmp_path / "single", [expectation("drops_data.forward", 1, 0)])
    analyse_run(single)
    return [*points, single]


def test_results_are_grouped_and_in_the_order_of_the_sweep(folders: list[Path]) -> None:
    """Points stand in the matrix's order, under their experiment, under its paper."""
    single, swept = read_results(folders)
    assert single.paper == BEYOND
    assert swept.paper == PAPER
    assert [dict(result.point) for result in swept.results] == [
        {"window": window, "acks": acks}
        for window in WINDOWS
        for acks in ("every-segment", "delayed")
    ]


def test_claims_gather_all_sources_of_a_number(folders: list[Path]) -> None:
    """A claim is a metric at a point, with each source's difference in per cent."""
    _, swept = read_results(folders)
    found = claims(swept)
    assert len(found) == 6
    first = found[0]
    assert first.where == "window 4, acks every-segment"
    assert first.off_percent("theory") == pytest.approx(10)
    assert first.off_percent("paper") == pytest.approx(-50)
    assert first.off_percent("simulation") is None
    assert not first.holds
    assert found[-1].measured is None
    assert found[-1].off_percent("theory") is None
    assert worst_percent(found, "paper") == pytest.approx(-50)
    row = ExpectationRow.model_validate(_said("theory", 4, 3.0, False) | {"value": 0.0})
    none_expected = {"theory": row}
    dropped = Claim(swept.results[0], "drops_data.left", "packets", 3.0, none_expected)
    assert dropped.off_percent("theory") is None  # 3 is no percentage of 0
    assert worst_percent([dropped], "theory") is None


def test_curves_overlay_measured_theory_and_paper(folders: list[Path]) -> None:
    """A family makes one figure over the longest axis; an undefined number makes no point."""
    _, swept = read_results(folders)
    (figure,) = curves(swept)
    assert figure.x_label == "window"
    lines = {line.name: line for line in figure.lines if line.name}
    assert sorted(lines) == [
        f"first, acks {acks}, {what}"
        for acks in ("delayed", "every-segment")
        for what in ("measured", "paper", "theory")
    ]
    assert lines["first, acks delayed, measured"].x.tolist() == [4, 8]
    assert lines["first, acks delayed, theory"].y.tolist() == WINDOWS


def test_document_has_every_claim_and_verdict(folders: list[Path], tmp_path: Path) -> None:
    """papers.json is what is returned: per claim the measurement, and per source the difference."""
    document = write_site(folders, tmp_path / "site")
    assert json.loads((tmp_path / "site/papers.json").read_text()) == document
    paper, beyond = document["papers"]
    assert (paper["title"], paper["claims"], paper["hold"]) == (PAPER, 6, 0)
    (swept,) = paper["experiments"]
    assert (swept["pass"], swept["speed"], swept["command"]) == (False, 5.0, "twoway run swept")
    point = swept["points"][0]
    assert (tmp_path / "site" / point["run"]).is_dir()
    (claim,) = point["claims"]
    assert claim["expected"]["theory"]["off_percent"] == pytest.approx(10)
    assert beyond["experiments"][0]["pass"] is True


def test_claims_that_cannot_be_told(folders: list[Path], tmp_path: Path) -> None:
    """A claim that a run's clock cannot tell neither holds nor differs, and the page says so."""
    for folder in folders[:-1]:
        edit_json(
            folder / "metrics.json",
            lambda m: [row.update({"pass": False, "supported": False}) for row in m["expect"]],
        )
    _, swept = read_results(folders)
    assert not any(claim.verdict is not Verdict.CANNOT_TELL for claim in claims(swept))
    write_site(folders, tmp_path / "site")
    page = (tmp_path / "site/zhang-1991.html").read_text(encoding="utf-8")
    assert "6 of 6 claims cannot be told" in page
    assert ">FAIL<" not in page


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
    """The site on these runs."""
    write_site(folders, tmp_path / "site")
    return tmp_path / "site"


@pytest.mark.parametrize("width", [1200, 390])
def test_pages_in_a_browser(browser: Any, site: Path, width: int) -> None:
    """Index and pages load on a desk and on a phone, draw every plot, log nothing, do not spill."""
    browser.set_window_size(width, 900)
    browser.get((site / "index.html").as_uri())
    links = browser.find_elements(By.CSS_SELECTOR, "#papers a")
    assert [link.text for link in links] == [PAPER, BEYOND]
    for link in [each.get_attribute("href") for each in links]:
        page = site / link.rpartition("/")[2]
        opened(browser, page, width)
        assert browser.find_elements(By.CSS_SELECTOR, ".js-plotly-plot")
        assert console(browser) == []
        spill = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(spill) == 0


def test_a_long_legend_takes_no_room(browser: Any, site: Path) -> None:
    """On a phone a legend of six lines is below the axis's label, and the plot as high as any."""
    opened(browser, site / "zhang-1991.html", 390)
    below, height, rows = browser.execute_script(
        """
        const plot = document.querySelector(".js-plotly-plot");
        const box = (name) => plot.querySelector(name).getBoundingClientRect();
        return [
          box(".legend").top - box(".xtitle").bottom,
          box(".nsewdrag").height,
          plot.querySelectorAll(".legend .traces").length,
        ];
        """
    )
    assert rows == 6
    assert below >= 0
    assert height > 200


def test_edited_runs_are_read_anew(folders: list[Path], tmp_path: Path) -> None:
    """A second report replaces the first, with what the runs say then."""
    write_site(folders, tmp_path / "site")
    edit_json(folders[0] / "metrics.json", lambda m: m["expect"][0].update({"pass": True}))
    document = write_site(folders, tmp_path / "site")
    assert document["papers"][0]["hold"] == 1
