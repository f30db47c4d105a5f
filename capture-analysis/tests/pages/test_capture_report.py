"""Reports of captures: files in a folder, a page in a browser, single pictures."""

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import capture_analysis
import numpy as np
import packed_page
import pytest
from capture_analysis.cli import main
from capture_analysis.pages import page_template
from capture_analysis.pictures.capture_figures import NAMES
from capture_analysis.pictures.figure import Figure, Line
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.by import By
from traffic_generator import Traffic, write

pytestmark = pytest.mark.slow

PACKETS = 20_000
_OF_PAIR = ["queue", "one-way-delay", "spacing-change"]
# The pictures of a capture without ECN.
UNMARKED = [name for name in NAMES if name != "marks"]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make the two hosts' captures of two-way traffic of four connections, with losses."""
    folder = tmp_path_factory.mktemp("captures")
    near, far = folder / "near.pcap", folder / "far.pcap"
    write(Traffic(4, 0.01, seed=1), PACKETS, {"near": near, "far": far})
    return near, far


@pytest.fixture(scope="module")
def single(captures: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the report of one capture."""
    folder = tmp_path_factory.mktemp("single") / "report"
    assert main(["report", str(captures[0]), "--figures", "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def pair(captures: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the report of both."""
    folder = tmp_path_factory.mktemp("pair") / "report"
    assert main(["report", *map(str, captures), "--output", str(folder)]) == 0
    return folder


def figures(folder: Path) -> list[str]:
    """Return the pictures of a report's page."""
    return list(packed_page.plots((folder / "report.html").read_text()))


def test_report_has_page_document_and_pictures(single: Path) -> None:
    """With --figures a report is a page, capture.json, and each picture as PNG and SVG."""
    assert sorted(path.name for path in single.parent.iterdir()) == ["report"]
    names = sorted(path.name for path in single.iterdir())
    assert names == ["capture.json", "figures", "report.html"]
    saved = sorted(path.name for path in (single / "figures").iterdir())
    assert saved == sorted(f"{name}.{kind}" for name in figures(single) for kind in ("png", "svg"))


def test_figures_are_drawn_when_asked(single: Path, pair: Path) -> None:
    """Without --figures a report is a page and its document, and names no figures."""
    assert sorted(path.name for path in pair.iterdir()) == ["pair.json", "report.html"]
    named = "as PNG and SVG are in"
    assert named not in (pair / "report.html").read_text()
    assert named in (single / "report.html").read_text()


def test_two_busiest_directions_have_pictures(single: Path) -> None:
    """The two directions with the most payload have all pictures."""
    assert figures(single) == [f"{name}{suffix}" for suffix in ("", "-2") for name in UNMARKED]


def test_page_says_what_the_document_does(single: Path) -> None:
    """The page has all of the document's metrics, each name once, the units and the warnings."""
    document = json.loads((single / "capture.json").read_text())
    page = (single / "report.html").read_text()
    flow = document["flows"][0]
    names = [*(flow["forward"] or flow["backward"]), *document["metrics"]]
    for name in names:
        assert page.count(f"<td><code>{name}</code></td>") == 1
    for word in ("Are ACKs compressed?", "How sure is this?", "capture-analysis"):
        assert word in page


def test_wireshark_finds_the_connection(single: Path, captures: tuple[Path, Path]) -> None:
    """The filter beside a connection selects exactly its packets in tshark."""
    flow = json.loads((single / "capture.json").read_text())["flows"][0]
    assert html.escape(flow["wireshark_filter"]) in (single / "report.html").read_text()
    arguments = ["-Y", flow["wireshark_filter"], "-T", "fields", "-e", "frame.number"]
    shown = subprocess.run(
        ["tshark", "-r", captures[0], *arguments], capture_output=True, text=True, check=True
    )
    columns = capture_analysis.read_columns(captures[0])
    mine = columns["frame"][columns["flow"] == flow["id"]]
    assert [int(number) for number in shown.stdout.split()] == mine.tolist()


def test_two_captures_have_their_pictures(pair: Path) -> None:
    """Two captures have pictures of the path between them, and their own document."""
    assert figures(pair) == _OF_PAIR
    document = json.loads((pair / "pair.json").read_text())
    assert document["matched"]["packets"] > PACKETS / 2
    assert "Was it the path or the receiver?" in (pair / "report.html").read_text()


@pytest.mark.parametrize(
    ("name", "plots"), [("single", 2 * len(UNMARKED)), ("pair", len(_OF_PAIR))]
)
@pytest.mark.parametrize("width", [1200, 500])
def test_in_a_browser(
    browser: Any, request: pytest.FixtureRequest, name: str, plots: int, width: int
) -> None:
    """All plots are drawn, nothing is logged, and the page is no wider than the screen."""
    opened(browser, request.getfixturevalue(name) / "report.html", width)
    assert len(browser.find_elements(By.CSS_SELECTOR, ".plot.drawn")) == plots
    assert console(browser) == []
    script = "return [document.documentElement.scrollWidth, window.innerWidth]"
    wide, seen = browser.execute_script(script)
    assert wide <= seen


@pytest.mark.parametrize("together", [False, True])
def test_one_time_axis(browser: Any, single: Path, together: bool) -> None:
    """If the box is checked, zooming one picture over time zooms all of these, and no others."""
    opened(browser, single / "report.html")
    if together:
        browser.find_element(By.ID, "together").click()
    browser.execute_script("document.getElementById('rtt').plot.show({x: [0.25, 0.5]})")
    script = """return Array.from(document.querySelectorAll(".plot"), ({plot}) =>
        [plot.x.label, plot.ranges.x])"""
    shown = browser.execute_script(script)
    zoomed = [title for title, range_ in shown if range_ == [0.25, 0.5]]
    over_time = [title for title, _ in shown if title == "time, s"]
    assert zoomed == (over_time if together else ["time, s"])
    assert len(over_time) > 2
    assert console(browser) == []


def test_box_shares_the_time_axis_at_once(browser: Any, pair: Path) -> None:
    """Checking the box gives all pictures over time the range of the first."""
    opened(browser, pair / "report.html")
    script = """return Array.from(document.querySelectorAll(".plot"),
        ({plot}) => plot).filter((each) => each.x.label === "time, s")
        .map((each) => each.ranges.x.join())"""
    ranges = [set(browser.execute_script(script))]
    browser.find_element(By.ID, "together").click()
    ranges.append(set(browser.execute_script(script)))
    assert [len(each) for each in ranges] == [2, 1]


def test_pictures_say_their_stretch(single: Path, pair: Path) -> None:
    """The caption of each picture over time, and of no other, has the range shown."""
    for folder in (single, pair):
        page = (folder / "report.html").read_text()
        captions = re.findall(r"<figcaption>(.*?)</figcaption>", page, re.DOTALL)
        plots = packed_page.plots(page)
        titles = [each["x"]["label"] for each in plots.values()]
        stretch = re.compile(r"It (shows|opens on) [\d.e-]+ to [\d.e+]+ s")
        assert [bool(stretch.search(each)) for each in captions] == [
            each == "time, s" for each in titles
        ]


def test_data_are_seen_behind_acks(single: Path) -> None:
    """Bars of data are drawn below the line of ACKs, and at least twice as wide."""
    page = (single / "report.html").read_text()
    plots = packed_page.plots(page)
    traces = plots["time-sequence"]["traces"]
    names = [trace["name"] for trace in traces]
    data, acks = names.index("data"), names.index("acknowledged")
    assert data < acks
    assert traces[data]["width"] >= 2 * traces[acks]["width"]


def test_connections_in_one_order(
    single: Path, pair: Path, captures: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Headline, sections, tables, JSON and `flows` list the connections in one order."""
    for folder, document in ((single, "capture.json"), (pair, "pair.json")):
        page = (folder / "report.html").read_text()
        sections = re.findall(r'<h2>Connection (\d+): <span class="ends">(.*?)</span>', page)
        assert re.findall(r'<th class="number">connection (\d+), (.*?)</th>', page) == sections
        assert f"<p>Connection {sections[0][0]}, {sections[0][1]}" in page
        table = page.partition('<table id="connections">')[2]
        rows = re.findall(r'<tr><td class="number">(\d+)</td><td><code>(.*?)</code>', table)
        assert [(flow, name.split(" ")[0]) for flow, name in sections] == rows[: len(sections)]
        listed = [flow["id"] for flow in json.loads((folder / document).read_text())["flows"]]
        assert list(dict.fromkeys(int(flow) for flow, _ in rows)) == listed
    assert main(["flows", str(captures[0])]) == 0
    names = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    flows = json.loads((single / "capture.json").read_text())["flows"]
    assert names == [flow["name"] for flow in flows]


def test_pair_has_filters(pair: Path) -> None:
    """Each connection of two captures has a Wireshark filter that shows it."""
    flow = json.loads((pair / "pair.json").read_text())["flows"][0]
    assert flow["wireshark_filter"].startswith("ip.addr == 10.")
    assert html.escape(flow["wireshark_filter"]) in (pair / "report.html").read_text()


def test_earlier_report_is_replaced(captures: tuple[Path, Path], tmp_path: Path) -> None:
    """A report replaces an earlier one completely."""
    arguments = ["report", str(captures[0]), "--output", str(tmp_path / "report")]
    assert main(arguments) == 0
    (tmp_path / "report" / "old.png").touch()
    assert main(arguments) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["report"]
    names = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert names == ["capture.json", "report.html"]


def test_other_folders_are_left(
    captures: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is no report is not touched."""
    (tmp_path / "thesis.tex").touch()
    assert main(["report", str(captures[0]), "--output", str(tmp_path)]) == 2
    assert "is not an earlier report" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_nothing_is_left_of_a_failure(
    captures: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a picture cannot be drawn, neither a folder nor a part of one is left."""

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("capture_analysis.pictures.plots.save_all", fails)
    words = ["report", str(captures[0]), "--figures", "--output", str(tmp_path / "report")]
    assert main(words) == 2
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs that write one page at once both succeed, and leave the page alone."""
    path, write_text = tmp_path / "page.html", Path.write_text
    figure = Figure("one", "One", "", "x", "y", [Line("a", np.arange(2.0), np.ones(2), "marked")])

    def write_page() -> None:
        page_template.write(path, "figure.html.j2", [figure], name="one", note="")

    def interrupted(partial: Path, text: str, **settings: str) -> int:
        monkeypatch.setattr(Path, "write_text", write_text)
        written = partial.write_text(text, **settings)
        write_page()
        return written

    monkeypatch.setattr(Path, "write_text", interrupted)
    write_page()
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_named_for_the_capture(
    captures: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --output the folder is named after its captures, in the working directory."""
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(captures[0])]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["near-report"]
    assert main(["report", *map(str, captures)]) == 0
    assert (tmp_path / "near-far-report/pair.json").is_file()


def test_warnings_of_a_report_and_of_metrics(
    captures: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Both commands print their warnings, such as of a truncated file, to standard error."""
    monkeypatch.chdir(tmp_path)
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(captures[0].read_bytes()[:-7])
    for command in ("report", "metrics"):
        assert main([command, str(cut)]) == 0
        assert "the capture was cut off" in capsys.readouterr().err


@pytest.mark.parametrize("starts", [True, False])
def test_open_shows_the_page(
    captures: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    starts: bool,
) -> None:
    """With --open a browser shows the page; if no browser starts, a sentence says so."""
    shown: list[str] = []

    def opens(page: str) -> bool:
        shown.append(page)
        return starts

    monkeypatch.setattr("webbrowser.open", opens)
    folder = tmp_path / "report"
    status = main(["report", str(captures[0]), "--output", str(folder), "--open"])
    assert shown == [(folder / "report.html").as_uri()]
    assert status == (0 if starts else 2)
    assert ("no browser could be started" in capsys.readouterr().err) == (not starts)


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_ending_decides_the_format(
    captures: tuple[Path, Path], tmp_path: Path, ending: str
) -> None:
    """A picture's format is that of its file's ending."""
    output = tmp_path / f"picture.{ending}"
    arguments = ["--what", "ack-spacing", "--flow", "1", "--output", str(output)]
    assert main(["plot", str(captures[0]), *arguments]) == 0
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doc"}
    assert output.read_bytes().startswith(begins[ending])


@pytest.mark.parametrize("what", _OF_PAIR)
def test_plot_of_a_pair(captures: tuple[Path, Path], tmp_path: Path, what: str) -> None:
    """Each picture of the path between two captures can be drawn alone."""
    output = tmp_path / "picture.svg"
    paths = [*map(str, captures)]
    assert main(["plot", *paths, "--what", what, "--output", str(output)]) == 0
    assert output.read_bytes().startswith(b"<?xml")


def test_one_captures_options_with_two(
    captures: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two captures, an option for one capture is refused, not ignored."""
    arguments = ["--flow", "0", "--output", str(tmp_path / "x.svg")]
    assert main(["plot", *map(str, captures), *arguments]) == 2
    assert "--flow and --rate-mbit are for one capture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--flow", "99", "--output", "x.png"], "there is no connection 99 that carries data"),
        (["--output", "x.pdf"], "a picture is a .png, .svg or .html"),
        (["--what", "queue", "--output", "x.png"], "there is no picture queue of these"),
    ],
)
def test_plot_that_cannot_be(
    captures: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    complaint: str,
) -> None:
    """A picture that cannot be drawn gives a sentence, and status 2."""
    assert main(["plot", str(captures[0]), *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_standard_input_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A report from a pipe is refused, because it reads its capture twice."""
    assert main(["report", "-"]) == 2
    assert "give a file" in capsys.readouterr().err
