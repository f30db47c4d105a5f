"""A page of pictures in a real browser: it draws few points of many, and every one when zoomed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.pages import page_template
from capture_analysis.pictures.figure import Figure, Line
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = pytest.mark.slow

PACKETS = 300_000
MEGABYTE = 1_000_000
# Runs in the page before its own scripts: notes the plots in the order in which they are drawn.
ORDER = """
window.order = [];
new MutationObserver(() => {
  for (const plot of document.querySelectorAll(".js-plotly-plot"))
    if (!window.order.includes(plot.id)) window.order.push(plot.id);
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["class"]});
"""


@pytest.fixture(scope="module")
def figures() -> list[Figure]:
    """Of 300 000 packets with jitter: a time-sequence graph, spacings and a distribution."""
    rng = np.random.default_rng(4)
    time_ns = np.cumsum(rng.integers(1_000, 200_000, PACKETS))
    x, seq = time_ns / 1e9, np.arange(0.0, 1448 * PACKETS, 1448)
    gap_ms = np.diff(time_ns, prepend=0) / 1e6
    sequence = [
        Line("data", x, seq, "spans", 0, top=seq + 1448),
        Line("R", x[::50_000], seq[::50_000], "letters", 1, letter="R"),
        Line("acknowledged", x, np.maximum(seq - 100_000, 0), "steps", 2),
    ]
    gaps = [Line("gaps", x, gap_ms, "points")]
    bars = [Line("some", np.arange(3.0), np.ones(3), "bars")]
    return [
        Figure("sequence", "Sequence", "", "time, s", "bytes", sequence),
        Figure("zoomed", "The same, zoomed", "", "time, s", "bytes", sequence),
        Figure("view", "From 3 s to 4 s", "", "time, s", "bytes", sequence[2:], view=(3.0, 4.0)),
        Figure("spacing", "Spacing", "", "time, s", "ms", gaps, log_y=True),
        Figure("zoomed-spacing", "Spacing, zoomed", "", "time, s", "ms", gaps, log_y=True),
        Figure("bars", "Bars", "", "", "", bars),
    ]


@pytest.fixture(scope="module")
def page(figures: list[Figure], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of them."""
    path = tmp_path_factory.mktemp("page") / "figures.html"
    page_template.write(path, "figure.html.j2", figures, name="a > b", note="")
    return path


@pytest.fixture(scope="module")
def shown(browser: Any, page: Path) -> Any:
    """The browser with the page, of whose figures each is zoomed by one test at most."""
    opened(browser, page)
    return browser


def drawn(browser: Any, figure: str) -> list[dict[str, Any]]:
    """The traces of a figure as they are drawn now, nulls left out."""
    script = """return document.getElementById(arguments[0]).data.map((trace) => ({
        x: Array.from(trace.x).filter((v) => v !== null),
        y: Array.from(trace.y).filter((v) => v !== null), text: trace.text}))"""
    found: list[dict[str, Any]] = browser.execute_script(script, figure)
    return found


def zoom(browser: Any, figure: str, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Show a part of a figure, as a drag does, and wait until it is drawn anew."""
    browser.execute_script(
        """const element = document.getElementById(arguments[0]);
        element.dataset.drawn = "no";
        element.once("plotly_restyle", () => { element.dataset.drawn = "yes"; });
        Plotly.relayout(element, {"xaxis.range": arguments[1], "yaxis.range": arguments[2]});""",
        figure,
        x,
        y,
    )
    WebDriverWait(browser, 30).until(
        lambda b: b.find_element(By.ID, figure).get_attribute("data-drawn") == "yes"
    )


def test_page_is_small(page: Path) -> None:
    """The library and 300 000 packets in four traces take less than 8 MB."""
    assert page.stat().st_size < 8 * MEGABYTE


def test_page_opens_in_silence(browser: Any, page: Path) -> None:
    """Opened as a file every plot is drawn, nothing is logged, and no network is asked for."""
    opened(browser, page)
    assert console(browser) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plot.js-plotly-plot")) == 6
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        m["params"]["request"]["url"].split(":")[0]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {"file", "data"}


def test_what_is_in_sight_is_drawn_first(browser: Any, page: Path) -> None:
    """A page opened at a picture draws that one first, and then the others."""
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ORDER})
    browser.get("about:blank")  # another fragment of one page would not load it
    opened(browser, page, fragment="#spacing")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    drawn_one_by_one = browser.execute_script("return window.order")
    assert drawn_one_by_one[0] == "spacing"
    assert len(drawn_one_by_one) == 6


def test_few_points_of_many(shown: Any) -> None:
    """Seen as a whole, 300 000 points are drawn as a few thousand, from the first to the last."""
    data, letters, steps = drawn(shown, "sequence")
    (gaps,) = drawn(shown, "spacing")
    assert max(len(trace["x"]) for trace in (data, steps, gaps)) <= 6000
    assert steps["y"][-1] == 1448 * (PACKETS - 1) - 100_000
    assert data["y"][-1] == 1448 * PACKETS
    assert len(letters["x"]) == 6
    assert set(letters["text"]) == {"R"}


def test_zoom_refines_to_packets(shown: Any, figures: list[Figure]) -> None:
    """Zoomed in, each packet in sight is drawn with its exact time and sequence numbers."""
    line = figures[0].lines[0]
    first, last = 123_456, 123_466
    x = (float(line.x[first]), float(line.x[last]))
    zoom(shown, "zoomed", x, (float(line.y[first]), float(line.highest()[last])))
    data, letters, _ = drawn(shown, "zoomed")
    rows = slice(first, last + 1)
    assert data["x"] == np.repeat(line.x[rows], 2).tolist()
    assert data["y"] == np.stack((line.y[rows], line.highest()[rows]), 1).ravel().tolist()
    assert letters["x"] == []


def test_zoom_into_points(shown: Any, figures: list[Figure]) -> None:
    """Of points on a logarithmic axis all in sight are drawn, and no other."""
    line = figures[3].lines[0]
    x, y = (float(line.x[1000]), float(line.x[2000])), (0.01, 0.1)
    zoom(shown, "zoomed-spacing", x, (np.log10(y[0]), np.log10(y[1])))
    inside = (line.x >= x[0]) & (line.x <= x[1]) & (line.y >= y[0]) & (line.y <= y[1])
    (gaps,) = drawn(shown, "zoomed-spacing")
    assert len(gaps["x"]) > 100
    assert gaps["x"] == line.x[inside].tolist()
    assert gaps["y"] == line.y[inside].tolist()


def test_figure_opens_on_its_view(shown: Any) -> None:
    """A figure with a view opens on it; a double-click shows everything."""
    script = "return document.getElementById('view').layout.xaxis.range.map(Number)"
    assert shown.execute_script(script) == [3, 4]
    assert max(drawn(shown, "view")[0]["x"]) < 4.001
    shown.execute_script("document.getElementById('view').emit('plotly_doubleclick')")
    WebDriverWait(shown, 30).until(lambda b: max(drawn(b, "view")[0]["x"]) > 25)


def test_digits_are_shown(shown: Any) -> None:
    """A point's text has nanoseconds and bytes."""
    script = "return document.getElementById('sequence').data.map((t) => t.hovertemplate)"
    assert shown.execute_script(script)[0] == "%{x:,.9~f}<br>%{y:,.0~f}"


def test_bars_are_drawn_unchanged(shown: Any) -> None:
    """Bars are drawn as they are."""
    assert drawn(shown, "bars")[0]["x"] == [0, 1, 2]
