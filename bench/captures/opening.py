"""Measure the time that Chromium takes to open a page.

It is measured until the load event, and until the plots are painted.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLAGS = ("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync")
PATIENCE_S = 120
# Runs in the page before its own scripts. A plot is painted two frames after it was drawn; times
# count from the request for the page.
WATCH = """
window.opening = {};
const note = (name) => { window.opening[name] = performance.now() / 1000; };
const painted = (name) => {
  if (name in window.opening) return;
  window.opening[name] = null;
  requestAnimationFrame(() => requestAnimationFrame(() => note(name)));
};
addEventListener("load", () => note("load"));
new MutationObserver(() => {
  if (document.querySelector(".uplot")) painted("first_plot");
  if (document.body && document.body.dataset.plots === "drawn") painted("every_plot");
}).observe(document, {subtree: true, childList: true, attributeFilter: ["data-plots"]});
"""
DONE = """
const times = window.opening;
return times.load && times.first_plot && times.every_plot ? times : null;
"""


@dataclass(frozen=True)
class Opening:
    """Seconds from the request for a page.

    Attributes:
        load: time until its load event.
        first_plot: time until the first plot is painted.
        every_plot: time until all plots are painted.
    """

    load: float
    first_plot: float
    every_plot: float


def open_page(page: Path) -> Opening:
    """Open a page that has plots in a new browser.

    The start of the browser does not count.
    """
    from selenium import webdriver  # noqa: PLC0415 - only where pages are measured
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415

    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.binary_location = "/usr/bin/chromium"
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        browser.get(page.as_uri())
        times: dict[str, Any] = WebDriverWait(browser, PATIENCE_S).until(
            lambda b: b.execute_script(DONE)
        )
        return Opening(**times)
    finally:
        browser.quit()
