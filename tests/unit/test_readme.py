"""README, pictures and figures of speed: fresh, and a command that became slower is named."""

import re
from pathlib import Path

import instructions
import pytest
from pictures import ASSETS, all_drawn_pictures
from support.running import ROOT, ran

from twoway import __version__

README = (ROOT / "README.md").read_text(encoding="utf-8")
SPEED = (ROOT / "docs/speed.md").read_text(encoding="utf-8")


def test_readme_is_short() -> None:
    """README has 120 to 150 lines."""
    assert 120 <= len(README.splitlines()) <= 150


def test_pictures_follow_the_readers_scheme() -> None:
    """The pages show each picture of docs/assets; all its colours have a light and a dark value."""
    shown = {
        (page.parent / name).resolve()
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown == set(ASSETS.glob("*.svg"))
    for path in shown:
        light, _, rest = path.read_text(encoding="utf-8").partition("@media (prefers-color-scheme:")
        dark, _, drawing = rest.partition("</style>")
        used = set(re.findall(r"var\((--[\w-]+)\)", drawing))
        assert used == _variables(light) == _variables(dark), path
        assert not re.search(r"(fill|stroke)[:=\s\"]+#", drawing), path


def _variables(style: str) -> set[str]:
    return set(re.findall(r"(--[\w-]+): #", style))


def test_pictures_without_runs_are_fresh() -> None:
    """Each picture that needs no run equals the output of `make pictures` byte for byte."""
    for name, svg in all_drawn_pictures().items():
        assert (ASSETS / name).read_bytes() == svg, f"{name}: `make pictures` draws another"


@pytest.mark.parametrize("seconds", re.findall(r"(\d+\.\d+) s\b", README))
def test_times_are_those_of_the_page_on_speed(seconds: str) -> None:
    """A time that README prints is in docs/speed.md."""
    assert re.search(rf"(?<![\d.]){re.escape(seconds)}(?: \([^()]*\))? s\b", SPEED)


def test_the_release_is_cited() -> None:
    """CITATION.cff, the newest release in CHANGELOG and the command have one version."""
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert re.findall(r"^## \[(\d[^]]*)\] - (\S+)", changes, re.MULTILINE)[0] == (
        __version__,
        *re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE),
    )


def test_the_changelog_names_the_commit_of_a_release() -> None:
    """A release names its commit, which has the release's version; later changes are above it."""
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, release = re.findall(r"^## \[([^]]+)\]", changes, re.MULTILINE)
    commit = re.findall(r"^The first release: the commit `(\w+)`", changes, re.MULTILINE)[0]
    argv = ["git", "show", f"{commit}:CITATION.cff"]
    released = ran(argv, check=True, cwd=ROOT).stdout
    assert unreleased == "Unreleased"
    assert f"\nversion: {release}\n" in released


# Kept counts of instructions name a command that became slower.

TABLE = "commit\tcommand\tinstructions\nold\tflows\t1\nabc\tflows\t1000000\nabc\tmetrics\t1000000\n"


def test_what_lost_more_than_a_tenth_is_named(tmp_path: Path) -> None:
    """A command with over a tenth more instructions than the last commit kept is named."""
    (tmp_path / "kept").write_text(TABLE)
    found = {"flows": 1_100_000, "metrics": 1_100_001, "match": 5_000_000}
    lines = instructions.compare(found, *instructions.read_last(tmp_path / "kept")).splitlines()
    assert [line.split() for line in lines] == [
        ["instructions,", "millions", "abc", "now", "ratio"],
        ["flows", "1", "1", "1.100"],
        ["metrics", "1", "1", "1.100"],
        ["match", "nan", "5", "nan"],
        ["lost", "more", "than", "a", "tenth:", "metrics"],
    ]


def test_a_commit_that_is_kept_is_the_last(tmp_path: Path) -> None:
    """Counts of a commit are added below earlier ones, which stay."""
    table = tmp_path / "kept"
    table.write_text(TABLE)
    instructions.keep(table, {"flows": 7}, "new")
    assert table.read_text() == TABLE + "new\tflows\t7\n"
    assert instructions.read_last(table) == ("new", {"flows": 7})


def test_without_a_loss_nothing_is_named() -> None:
    """Fewer instructions, or a table without rows, name no command."""
    assert "lost" not in instructions.compare({"flows": 9}, "abc", {"flows": 10})
    assert "lost" not in instructions.compare({"flows": 9}, "", {})
