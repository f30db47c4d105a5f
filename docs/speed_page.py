"""Put what a benchmark printed into docs/speed.md: `make bench KEEP=1` pipes it through this.

speed_page.py BENCHMARK  # copies standard input to standard output
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).with_name("speed.md")


def with_output(page: str, name: str, printed: str) -> str:
    """Return the page's text with the output of one benchmark behind its command."""
    command = f"$ make bench OF={name}\n"
    block = re.compile(
        f"(?<=^```console\n){re.escape(command)}.*?(?=^```$)", re.MULTILINE | re.DOTALL
    )
    return block.sub(lambda _: command + printed.strip("\n") + "\n", page)


if __name__ == "__main__":
    lines = []
    for line in sys.stdin:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    text = with_output(PAGE.read_text(encoding="utf-8"), sys.argv[1], "".join(lines))
    PAGE.write_text(text, encoding="utf-8")
