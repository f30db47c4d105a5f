"""The listings of guides, as a reader copies them."""

import re
import subprocess
from pathlib import Path

from support.running import ROOT


def listing(guide: str, name: str) -> str:
    """Return the first code block of a guide after the name of its file, such as `page.yml`."""
    text = (ROOT / "docs/guides" / guide).read_text("utf-8").partition(f"`{name}`")[2]
    (block,) = re.findall(r"\n```\w+\n(.*?)```", text, re.DOTALL)[:1]
    return str(block)


def copy_listings(guide: str, folder: Path, *names: str) -> None:
    """Write files of a guide into a folder."""
    for name in names:
        (folder / name).write_text(listing(guide, name), "utf-8")


def carry_out_lines(guide: str, program: str, folder: Path) -> None:
    """In a folder, run each terminal line of a guide that starts this program."""
    text = (ROOT / "docs/guides" / guide).read_text("utf-8")
    lines = re.findall(rf"^\$ ({program} .*)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        subprocess.run(["sh", "-c", line], cwd=folder, check=True, capture_output=True)
