"""A page of pictures in a real browser: few points are drawn, and after zooming each one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_analysis.pages import page_template
from capture_analysis.pages.capture_report import report
from capture_analysis.pictures.figure import Figure, Line
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

pytestmark = pytest.mark.slow


PACKETS = 300_000
MEGABYTE = 1_000_000
# Runs in the page before its own scripts, and records the plots in the order of drawing.
ORDER = """
window.order = [];
new MutationObserver(() => {
  for (const plot of document.querySelectorAll(".plot.drawn"))
    if (!window.order.includes(plot.id)) window.order.push(plot.id);
}).observe(document, {subtree: true, attributes: true, attributeFilter: ["class"]});
"""


@pytest.fixture(scope="module")
def figures() -> list[Figure]:
    """Make a time-sequence graph, spacings and a distribution of 300 000 packets with jitter."""
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
        Figure("hovered", "The same, hovered", "", "time, s", "bytes", sequence[2:]),
        Figure("view", "From 3 s to 4 s", "", "time, s", "bytes", sequence[2:], view=(3.0, 4.0)),
        Figure("spacing", "Spacing", "", "time, s", "ms", gaps, log_y=True),
        Figure("zoomed-spacing", "Spacing, zoomed", "", "time, s", "ms", gaps, log_y=True),
        Figure("bars", "Bars", "", "", "", bars),
    ]


@pytest.fixture(scope="module")
def page(figures: list[Figure], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a page of these figures."""
    path = tmp_path_factory.mktemp("page") / "figures.html"
    page_template.write(path, "figure.html.j2", figures, name="a > b", note="")
    return path


@pytest.fixture(scope="module")
def shown(browser: Any, page: Path) -> Any:
    """Return a browser with the page; at most one test zooms each of its figures."""
    opened(browser, page)
    return browser


def drawn(browser: Any, figure: str) -> list[dict[str, Any]]:
    """Return the traces of a figure as currently drawn, without nulls."""
    script = """return document.getElementById(arguments[0]).plot.shown.map((trace) => ({
        x: Array.from(trace.x).filter((v) => v !== null),
        y: Array.from(trace.y).filter((v) => v !== null), text: trace.text}))"""
    found: list[dict[str, Any]] = browser.execute_script(script, figure)
    return found


def zoom(browser: Any, figure: str, x: tuple[float, float], y: tuple[float, float]) -> None:
    """Zoom a figure to a range, as a drag does."""
    script = "document.getElementById(arguments[0]).plot.show({x: arguments[1], y: arguments[2]})"
    browser.execute_script(script, figure, x, y)


def test_page_is_small(page: Path) -> None:
    """The library and four traces of 300 000 packets take less than 6 MB."""
    assert page.stat().st_size < 6 * MEGABYTE


def test_page_opens_in_silence(browser: Any, page: Path) -> None:
    """A page opened from a file draws every plot, logs nothing, and uses no network."""
    opened(browser, page)
    assert console(browser) == []
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plot.drawn")) == 7
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {
        m["params"]["request"]["url"].split(":")[0]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    }
    assert asked <= {"file", "data"}


def test_what_is_in_sight_is_drawn_first(browser: Any, page: Path) -> None:
    """A page opened at a picture draws this one first, and then the others."""
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ORDER})
    browser.get("about:blank")  # without this a new fragment would not load the page again
    opened(browser, page, fragment="#spacing")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    drawn_one_by_one = browser.execute_script("return window.order")
    assert drawn_one_by_one[0] == "spacing"
    assert len(drawn_one_by_one) == 7


def test_few_points_of_many(shown: Any) -> None:
    """In full view 300 000 points are drawn as a few thousand, from the first to the last."""
    data, letters, steps = drawn(shown, "sequence")
    (gaps,) = drawn(shown, "spacing")
    assert max(len(trace["x"]) for trace in (data, steps, gaps)) <= 6000
    assert steps["y"][-1] == 1448 * (PACKETS - 1) - 100_000
    assert data["y"][-1] == 1448 * PACKETS
    assert len(letters["x"]) == 6
    assert set(letters["text"]) == {"R"}


def test_zoom_refines_to_packets(shown: Any, figures: list[Figure]) -> None:
    """After zooming in, each visible packet has its exact time and sequence numbers."""
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
    """On a logarithmic axis exactly the visible points are drawn."""
    line = figures[4].lines[0]
    x, y = (float(line.x[1000]), float(line.x[2000])), (0.01, 0.1)
    zoom(shown, "zoomed-spacing", x, y)
    inside = (line.x >= x[0]) & (line.x <= x[1]) & (line.y >= y[0]) & (line.y <= y[1])
    (gaps,) = drawn(shown, "zoomed-spacing")
    assert len(gaps["x"]) > 100
    assert gaps["x"] == line.x[inside].tolist()
    assert gaps["y"] == line.y[inside].tolist()


def test_figure_opens_on_its_view(shown: Any) -> None:
    """A figure with a view opens on it, and a double-click shows everything."""
    script = "return document.getElementById('view').plot.ranges.x"
    assert shown.execute_script(script) == [3, 4]
    assert max(drawn(shown, "view")[0]["x"]) < 4.001
    plot = shown.find_element(By.CSS_SELECTOR, "#view .u-over")
    ActionChains(shown).scroll_to_element(plot).double_click(plot).perform()
    WebDriverWait(shown, 30).until(lambda b: max(drawn(b, "view")[0]["x"]) > 25)


def test_digits_are_shown(shown: Any, figures: list[Figure]) -> None:
    """The point nearest to the mouse is shown with nanoseconds and bytes."""
    line = figures[0].lines[2]
    time_s, number = float(line.x[1000]), float(line.y[1000])
    zoom(shown, "hovered", (time_s - 1e-3, time_s + 1e-3), (number - 3000, number + 3000))
    plot = shown.find_element(By.CSS_SELECTOR, "#hovered .u-over")
    ActionChains(shown).scroll_to_element(plot).move_to_element(plot).perform()
    tip = "return document.querySelector('#hovered .tip').textContent"
    exact = f"{time_s:.9f}".rstrip("0")
    assert shown.execute_script(tip) == f"acknowledged\n{exact}\n{number:,.0f}"


def test_bars_are_drawn_unchanged(shown: Any) -> None:
    """Bars are drawn unchanged."""
    assert drawn(shown, "bars")[0]["x"] == [0, 1, 2]


def test_keys_move_a_plot(browser: Any, page: Path) -> None:
    """For a focused plot, + halves its ranges, - doubles them, arrows move, Home shows all."""
    opened(browser, page)
    plot = browser.find_element(By.ID, "spacing")
    script = "return document.getElementById('spacing').plot.ranges.x"
    first = browser.execute_script(script)
    width = first[1] - first[0]
    for key, expected in (
        ("+", [first[0] + width / 4, first[1] - width / 4]),
        (Keys.ARROW_RIGHT, [first[0] + width * 3 / 8, first[1] - width / 8]),
        ("-", [first[0] + width / 8, first[1] + width / 8]),
        (Keys.HOME, first),
    ):
        plot.send_keys(key)
        assert browser.execute_script(script) == pytest.approx(expected, rel=1e-6)


def test_an_address_opens_on_what_was_seen(browser: Any, page: Path) -> None:
    """The address after a zoom opens the page at that range; an invalid one opens all."""
    opened(browser, page)
    first = browser.execute_script("return document.getElementById('sequence').plot.ranges.x")
    zoom(browser, "sequence", (1.0, 2.0), (0.0, 5e7))
    address = browser.execute_script("return location.hash")
    assert address == "#sequence:1,2,0,50000000"
    for fragment, seen in (
        (address, [1, 2]),
        ("#sequence:2,1,x,5", first),
        ("#none:1,2,3,4", first),
    ):
        browser.get("about:blank")
        opened(browser, page, fragment=fragment)
        ranges = browser.execute_script("return document.getElementById('sequence').plot.ranges.x")
        assert ranges == seen
        assert console(browser) == []


@pytest.mark.parametrize("log", [False, True])
def test_values_that_differ_by_rounding_are_equal(browser: Any, tmp_path: Path, log: bool) -> None:
    """If an axis's values differ only in the last digit, they are drawn as equal."""
    ends = np.array([1 - 2**-53, 1.0])
    found = []
    for y in (ends, np.ones(2)):
        lines = [Line("share", np.arange(2.0), y, "marked")]
        equal = Figure("equal", "Equal", "", "time, s", "", lines, log_y=log)
        path = tmp_path / "equal.html"
        page_template.write(path, "figure.html.j2", [equal], name="equal", note="")
        opened(browser, path)
        assert console(browser) == []
        script = "return document.getElementById('equal').plot.ranges.y"
        found.append(browser.execute_script(script))
    (low, high), alike = found
    assert [low, high] == pytest.approx(alike, rel=1e-12)
    assert high / low > 1.01


def test_words_on_an_axis(browser: Any, tmp_path: Path) -> None:
    """Words at x = 0, 1 and so on name the points, and are slanted if there is no room."""
    names = tuple(f"algorithm {n}" for n in range(8))
    lines = [Line("delay", np.arange(8.0), np.arange(8.0, 16), "points")]
    figure = Figure("words", "Words", "", "aqm", "delay, ms", lines, x_names=names)
    path = tmp_path / "words.html"
    page_template.write(path, "figure.html.j2", [figure], name="words", note="")
    found = []
    for width in (1200, 500):
        opened(browser, path, width)
        script = """const {axes} = document.getElementById('words').plot.chart;
            return [axes[0]._values, axes[0]._rotate !== 0]"""
        found.append(browser.execute_script(script))
        assert console(browser) == []
    assert found == [[list(names), False], [list(names), True]]
    plot = browser.find_element(By.CSS_SELECTOR, "#words .u-over")
    browser.execute_script("document.getElementById('words').plot.show({x: [0, 2], y: [8, 10]})")
    ActionChains(browser).scroll_to_element(plot).move_to_element(plot).perform()
    tip = "return document.querySelector('#words .tip').textContent"
    assert browser.execute_script(tip) == "delay\nalgorithm 1\n9"


def test_zoom_ends_where_numbers_end(browser: Any, page: Path) -> None:
    """A zoom between two neighbouring numbers is refused, and the plot stays."""
    opened(browser, page)
    script = "return document.getElementById('spacing').plot.ranges"
    before = browser.execute_script(script)
    zoom(browser, "spacing", (1.0, 1 + 2**-52), (1.0, 1 + 2**-52))
    assert browser.execute_script(script) == before
    assert console(browser) == []


def test_a_trace_is_hidden_by_its_name(browser: Any, page: Path) -> None:
    """A click on a name in the legend hides its trace, and another click shows it."""
    opened(browser, page)
    name = browser.find_element(By.CSS_SELECTOR, "#sequence li button")
    hidden = "return document.getElementById('sequence').plot.hidden.size"
    for expected in (1, 0):
        browser.execute_script("arguments[0].click()", name)
        assert browser.execute_script(hidden) == expected


def test_the_page_is_dark_and_its_print_light(browser: Any, page: Path) -> None:
    """In dark mode the page is dark, and its print is light."""
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    opened(browser, page)
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(paper) == "rgb(20, 24, 30)"
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert browser.execute_script(paper) == "rgb(255, 255, 255)"
    assert console(browser) == []


def test_the_library_is_the_published_one() -> None:
    """The script is uPlot 1.6.32 as on npm, with its licence beside it."""
    folder = Path(page_template.__file__).parent / "templates/uplot"
    digest = hashlib.sha256((folder / "uPlot.iife.min.js").read_bytes()).hexdigest()
    assert digest == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
    assert "MIT License" in (folder / "LICENSE").read_text()


# Load something from elsewhere, and return the rule by which the browser refuses it.
REFUSED = """
const [kind, done] = arguments;
document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
const elsewhere = "http://127.0.0.1:9/x";
if (kind === "fetch") fetch(elsewhere).catch(() => {});
else {
  const made = document.createElement(kind);
  if (kind === "form") made.action = elsewhere;
  else if (kind === "base" || kind === "link") made.href = elsewhere;
  else made.src = elsewhere;
  if (kind === "link") made.rel = "stylesheet";
  document.body.append(made);
  if (kind === "form") made.submit();
}
"""


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("img", "img-src"),
        ("script", "script-src-elem"),
        ("iframe", "frame-src"),
        ("link", "style-src-elem"),
        ("form", "form-action"),
        ("base", "base-uri"),
        ("fetch", "connect-src"),
    ],
)
def test_a_page_loads_nothing_from_elsewhere(
    browser: Any, page: Path, kind: str, rule: str
) -> None:
    """The browser refuses a page's script to load or send anything, if one got into the page."""
    browser.get(page.as_uri())
    assert browser.execute_async_script(REFUSED, kind) == rule


# A printed report.

EXAMPLE = Path(__file__).with_name("example.pcap.zst")
# Width of a printed A4 page without its margins, in px at 96 per inch; with them 793 px.
PAPER_PX = 720
# The tables and canvases that do not fit, in a page whose pictures were drawn for a window. Before
# a script ends, as before a print, no ResizeObserver runs.
WIDE = """
document.body.style.width = arguments[0] + "px";
return [...document.querySelectorAll("table, canvas")]
  .filter((each) => each.getBoundingClientRect().width > arguments[0])
  .map((each) => each.tagName);
"""
SHOWN = "return document.querySelector(arguments[0]).checkVisibility()"


@pytest.fixture(scope="module")
def printed(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a browser with the example's report as it is printed."""
    folder = tmp_path_factory.mktemp("report")
    opened(browser, report(EXAMPLE, folder / "report"))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    return browser


def test_tables_and_pictures_fit_the_paper(printed: Any) -> None:
    """Tables, and pictures drawn for a window of 1200 px, are at most as wide as the paper."""
    assert printed.execute_script(WIDE, PAPER_PX) == []


@pytest.mark.parametrize("control", ["#together", ".plot nav"])
def test_controls_are_not_printed(printed: Any, control: str) -> None:
    """The box for one time axis, and a picture's buttons, are not printed."""
    assert not printed.execute_script(SHOWN, control)
