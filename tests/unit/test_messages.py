"""Errors as a Python program sees them, suggestions, and the troubleshooting guide."""

import re
import traceback
from pathlib import Path

import pytest
from support.guides import copy_listings
from support.running import ROOT
from support.warm_command import twoway

from twoway.errors import UsageError
from twoway.messages import suggest

# Suggestions of names that may be meant.

FIELDS = [
    "after_ms",
    "change_s",
    "delay_ms",
    "directions",
    "mtu_bytes",
    "queue_packets",
    "rate_mbit",
]
FIELDS += ["ack_queue", "up_bytes"]


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("duration_sec", ["duration_s", "start_s"], "duration_s"),
        ("rate_kbit", FIELDS, "rate_mbit"),
        ("mtu", FIELDS, "mtu_bytes"),
        ("queue", FIELDS, "queue_packets"),
        ("50mbit", ["dtm-5mbit", "class-50mbit"], "class-50mbit"),
        ("cubic30", ["reno", "cubic"], "cubic"),
        ("vgas", ["vegas"], "vegas"),
        ("distribution", FIELDS, ""),
        ("ack_filter", FIELDS, ""),
        ("mtu_byte", ["up_bytes"], ""),
        ("mut_bytes", ["up_bytes"], ""),
        ("channel", FIELDS, ""),
        ("max_pacing_rate_mbit", FIELDS, ""),
        ("x", FIELDS, ""),
        ("", FIELDS, ""),
    ],
)
def test_only_close_names_are_suggested(name: str, known: list[str], found: str) -> None:
    """A name with more than a third of other letters is not suggested, unless it has all words."""
    assert suggest(name, known) == (f'; did you mean "{found}"?' if found else "")


# The errors that twoway raises, as a Python program sees them.


def test_a_traceback_ends_with_the_hint() -> None:
    """Python prints the hint of an error below its message, and nothing without a hint."""
    for hint, last in (("there are cwnd.up", "hint: there are cwnd.up\n"), ("", "cwn.up: none\n")):
        lines = traceback.format_exception(UsageError("cwn.up: none", hint))
        assert lines[-1].endswith(last)


# The errors in the troubleshooting guide are those that the command prints.

# Adjacent string literals are one text.
SOURCE = re.sub(
    r'"\s*\n\s*f?"',
    "",
    "\n".join(
        path.read_text("utf-8")
        for folder in ("twoway", "vm/guest", "capture-analysis/capture_analysis")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".c")
    ),
)
GUIDE = (ROOT / "docs/guides/troubleshooting.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("written", "mistake"),
    [
        ("duration_s", "durations_s"),
        ("my-line", "my-lines"),
        ("from: h1", "from: h9"),
        ("congestion: cubic", "congestion: cubik"),
    ],
)
def test_mistakes_of_a_file(written: str, mistake: str, tmp_path: Path) -> None:
    """Each mistake in the guide's example file gives the error that the guide prints."""
    copy_listings("own-experiment.md", tmp_path, "my-line.yml", "upload.yml")
    path = tmp_path / "upload.yml"
    path.write_text(path.read_text("utf-8").replace(written, mistake, 1), "utf-8")
    said = twoway("vet", path).stderr.replace(f"{tmp_path}/", "")
    assert any(line in GUIDE.splitlines() for line in said.splitlines() if line)


def test_names_of_nothing(tmp_path: Path) -> None:
    """A missing file and a missing run give the errors that the guide prints."""
    said = twoway("vet", tmp_path / "nofile.yml").stderr.replace(f"{tmp_path}/", "")
    assert said.splitlines()[0] in GUIDE
    said = twoway("report", "nothing", "--results", tmp_path).stderr
    assert said.partition(f" {tmp_path}")[0] in GUIDE


@pytest.mark.parametrize("error", re.findall(r"^\| `([^`]+)` \|", GUIDE, re.MULTILINE))
def test_errors_are_those_of_the_source(error: str) -> None:
    """Each error in the guide's tables is a text of the source, except for numbers and names."""
    said = re.escape(error)
    for varying in (r"\d+", r"\b(?:NAME|FILE|FIELD|VALUE)\b"):
        said = re.sub(varying, ".{1,80}?", said)
    assert re.search(said, SOURCE), f"no source says {error!r}"
