"""How long Chromium takes to open a page, from asking for it until it has drawn and is idle."""

import time
from pathlib import Path

FLAGS = ("headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-sync")
# Two animation frames behind the load event, and then nothing to do: it has drawn.
IDLE = """
const done = arguments[arguments.length - 1];
const idle = () => requestAnimationFrame(() => requestAnimationFrame(
  () => requestIdleCallback(() => done(true))));
if (document.readyState === "complete") idle(); else addEventListener("load", idle);
"""


def seconds_to_open(page: Path) -> float:
    """Open a page in a new browser that is already running."""
    from selenium import webdriver  # noqa: PLC0415 - only where pages are measured

    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.binary_location = "/usr/bin/chromium"
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.get("about:blank")
        began = time.monotonic()
        browser.get(page.as_uri())
        browser.execute_async_script(IDLE)
        return time.monotonic() - began
    finally:
        browser.quit()
