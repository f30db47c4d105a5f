"""`vet` names programs of an experiment that a guest would not find."""

from pathlib import Path

import pytest
from support.running import SMALL, write_experiment
from support.warm_command import twoway

from twoway.commands.vet import _INSTALL


def test_a_missing_program_is_named_beside_a_missing_file(tmp_path: Path) -> None:
    """`vet` names missing files and missing programs at once."""
    programs = [{"name": "it", "host": "h1", "command": ["no-such-tool"], "files": ["missing"]}]
    path = write_experiment(tmp_path, SMALL | {"programs": programs})
    errors = twoway("vet", path).stderr.splitlines()
    assert errors[0] == f"twoway: {path}: programs.0.files: missing: No such file or directory"
    assert errors[1].startswith(f"twoway: {path}: programs.0.command.0: no-such-tool: no such")


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ({"command": ["true"]}, None),
        ({"command": ["/usr/bin/env", "true"]}, None),
        ({"command": ["./mine.sh"], "files": ["mine.sh"]}, None),
        (
            {"command": ["no-such-tool"]},
            "no-such-tool: no such program in /usr/sbin:/usr/bin:/sbin:/bin",
        ),
        (
            {"command": ["true"], "environment": {"PATH": "/nowhere"}},
            "true: no such program in /nowhere",
        ),
        ({"command": ["/usr/bin/no-such-tool"]}, "/usr/bin/no-such-tool: no such program"),
        ({"command": ["./mine.sh"]}, "./mine.sh: not a program of its `files`"),
        ({"command": ["./words"], "files": ["words"]}, "./words: not a program of its `files`"),
    ],
)
def test_a_program_that_is_not_there_is_named(
    tmp_path: Path, program: dict[str, object], problem: str | None
) -> None:
    """A bare name is searched in PATH, a full path on the machine, and ./NAME in the files."""
    (tmp_path / "mine.sh").write_text("#!/bin/sh\n")
    (tmp_path / "mine.sh").chmod(0o755)
    (tmp_path / "words").write_text("no program\n")
    named = {"name": "it", "host": "h1", **program}
    path = write_experiment(tmp_path, SMALL | {"programs": [named]})
    done = twoway("vet", path)
    assert done.returncode == (2 if problem else 0)
    said = done.stderr.splitlines()
    if problem:
        refused = f"twoway: {path}: programs.0.command.0: {problem}"
        assert said == [refused, "", f"hint: {_INSTALL}"]
    else:
        assert said[-1] == "1 experiment is sound"
