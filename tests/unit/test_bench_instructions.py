"""Kept counts of instructions name a command that became slower."""

from pathlib import Path

import instructions

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
