"""The bench of captures names a command that became slower."""

import instructions


def test_more_instructions_than_last_are_named() -> None:
    """A command with over 1 % more instructions than at the last commit is marked."""
    last = {"older": {"flows": 1, "metrics": 1}, "abc": {"flows": 1000, "metrics": 1000}}
    lines = instructions.compare({"flows": 1010, "metrics": 1011, "match": 5}, last).splitlines()
    assert lines[0].endswith("of abc")
    assert [line.split()[0] for line in lines if line.endswith("SLOWER")] == ["metrics"]
    assert lines[-1].split() == ["match", "0"]
