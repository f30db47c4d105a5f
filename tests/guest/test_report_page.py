"""report.html in a real browser: it draws, it zooms, and its console stays empty."""

from pathlib import Path
from typing import Any

import pytest
from chromium import console, launched, opened  # noqa: F401 - the fixture "browser"
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait


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


def test_page_is_self_contained(report: Path) -> None:
    """The page loads nothing from any file or host."""
    page = report.read_text(encoding="utf-8")
    head, _, rest = page.partition("<script>")
    tail = rest.rpartition("<script>")[2]
    for part in (head, tail):
        assert 'src="' not in part
        assert '<link rel="stylesheet"' not in part
