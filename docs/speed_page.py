"""Put what benchmarks printed into docs/speed.md: `make bench KEEP=1` calls it."""

import re
from pathlib import Path

PAGE = Path(__file__).with_name("speed.md")
KEPT = PAGE.parents[1] / "bench/kept"
_BLOCK = re.compile(
    r"(?<=^```console\n)\$ make bench OF=(\w+)\n.*?(?=^```$)", re.MULTILINE | re.DOTALL
)


def page() -> str:
    """Return the page's text with the last output of each benchmark behind its command."""
    return _BLOCK.sub(_read_printed, PAGE.read_text(encoding="utf-8"))


def _read_printed(block: re.Match[str]) -> str:
    printed = (KEPT / f"{block[1]}.txt").read_text(encoding="utf-8").strip("\n")
    return f"$ make bench OF={block[1]}\n{printed}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
