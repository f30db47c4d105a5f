"""A browser for tests of pages: headless Chromium with its console kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

_FLAGS = (
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "no-first-run",
    "disable-quic",
)


@pytest.fixture(name="browser", scope="module")
def launched() -> Iterator[Any]:
    """Return Chromium, with the network requests of its pages in its log."""
    options = webdriver.ChromeOptions()
    for flag in _FLAGS:
        options.add_argument(f"--{flag}")
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService("/usr/bin/chromedriver")
    )
    try:
        yield driver
    finally:
        driver.quit()


def opened(browser: Any, page: Path, width: int = 1200, fragment: str = "") -> None:
    """Open a page at a width and wait until all plots are drawn or it reports an error."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.set_window_size(width, 900)
    browser.get(page.as_uri() + fragment)
    done = "return document.body.dataset.plots === 'drawn' || !document.all.problem?.hidden"
    WebDriverWait(browser, 60).until(lambda b: b.execute_script(done))


def console(browser: Any) -> list[str]:
    """Return the page's log."""
    return [entry["message"] for entry in browser.get_log("browser")]
