"""The page's table of connections: its sentence, and its rows in a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import many_connections
import pytest
from capture_analysis.cli import main
from capture_analysis.one_capture.connections import Connections
from capture_analysis.one_capture.single import measure
from capture_analysis.pages.connections_table import seconds, slowest, summary, sums
from capture_analysis.reading.capture import Capture
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"

MANY = many_connections.mixture(500)


def connections(path: Path, causes: Sequence[str]) -> Connections:
    """Return the table of a capture whose connections have some causes."""
    many_connections.write(path, causes)
    return Connections(measure(Capture(path)))


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        (MANY, "487 of 500 connections are fine; 13 wait for the server, 1.0 s each."),
        (["fine"] * 3, "All 3 connections are fine: none failed or stood still for long."),
        (
            ["fine", "refused", "no answer", "no answer"],
            "1 of 4 connections is fine; 1 was refused; 2 got no answer to their SYNs, 3.0 s each.",
        ),
        (["server", "reset"], "Of 2 connections 1 waits for the server, 1.0 s; 1 was reset before"),
        (["zero window"], "Of 1 connection 1 waits for a shut window, 510 ms."),
    ],
)
def test_headline_says_what_all_connections_do(
    causes: list[str], said: str, tmp_path: Path
) -> None:
    """The headline counts the connections by cause, with the times of those that are not fine."""
    assert summary(connections(tmp_path / "a.pcap", causes)).startswith(said)


def test_the_slowest_is_named(tmp_path: Path) -> None:
    """The connection that failed or stood still for longest is named, with its wait."""
    found = connections(tmp_path / "a.pcap", ["fine", "losses", "server"])
    assert slowest(found) == (
        "The slowest is connection 2, 198.51.100.0:40002 to 192.0.2.1:443: it waits for the "
        "server, 1.0 s from 41 ms on."
    )
    assert slowest(connections(tmp_path / "b.pcap", ["fine"])) == ""
    assert [seconds(each) for each in (0.0512, 0.98, 1.04, 12.4)] == [
        *("51 ms", "980 ms", "1.0 s", "12 s")
    ]


def test_sums_by_service_and_host(tmp_path: Path) -> None:
    """Each service and host has its connections and troubles, those with most trouble first."""
    found = dict(sums(connections(tmp_path / "a.pcap", ["fine", "server", "refused", "fine"])))
    assert [(row["name"], row["connections"], row["trouble"]) for row in found["service"]] == [
        ("port 443", 2, "1 refused, 1 server"),
        ("port 8080", 2, ""),
    ]
    assert [row["name"] for row in found["server"]] == ["192.0.2.1"]
    assert found["service"][1]["connect"] == pytest.approx(0.01)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the page of a capture with 500 connections."""
    folder = tmp_path_factory.mktemp("many")
    many_connections.write(folder / "many.pcap", MANY)
    assert main(["report", str(folder / "many.pcap"), "--output", str(folder / "report")]) == 0
    return folder / "report/report.html"


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 500])
def test_table_in_a_browser(browser: Any, page: Path, width: int) -> None:
    """The slow connections come first; a click sorts, words filter, and few rows are elements."""
    opened(browser, page, width)
    run = browser.execute_script
    rows = """return Array.from(document.querySelectorAll("#finder tbody .cause"),
        (each) => each.textContent)"""
    assert "what makes it slow?" in browser.title
    assert run("return document.querySelector('h1').textContent").startswith("487 of 500")
    assert run(rows)[:14] == ["server"] * 13 + ["fine"]
    assert len(run(rows)) < 100
    run("document.querySelector('#finder th.id button').click()")
    assert run("return document.querySelector('#finder tbody .id').textContent") == "499"
    run(
        "const input = document.querySelector('#finder input'); input.value = '8080 server';"
        "input.dispatchEvent(new Event('input'))"
    )
    assert run("return document.querySelector('#finder .count').textContent") == "4 of 500"
    assert run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert console(browser) == []


@pytest.mark.slow
def test_slowest_connection_is_pictured(page: Path) -> None:
    """The first pictures are the slowest connection's, below the table."""
    text = page.read_text()
    first = text.partition("<section>")[2].partition("</section>")[0]
    assert "<h2>Connection 7:" in first
    assert text.index('id="finder"') < text.index("<section>")
