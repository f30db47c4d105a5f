"""A printed report."""

from pathlib import Path
from typing import Any

import pytest
from capture_analysis import serving
from capture_analysis.pages.capture_report import report
from chromium import launched, opened  # noqa: F401 - the fixture "browser"

pytestmark = pytest.mark.slow

EXAMPLE = Path(serving.__file__).with_name("example.pcap.zst")
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
