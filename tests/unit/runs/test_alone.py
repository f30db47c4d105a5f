"""Two commands that run the same points."""

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from twoway.runs import run


def test_a_second_command_says_that_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A point that another command runs is waited for, and the command says so once."""
    (tmp_path / "small").mkdir()
    held = os.open(tmp_path / "small", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    said: list[str] = []

    def hear(text: str) -> None:
        said.append(text)
        fcntl.flock(held, fcntl.LOCK_UN)

    monkeypatch.setattr(run, "say", hear)
    point: Any = SimpleNamespace(id="small")
    with run.alone(point, tmp_path):
        assert said == [
            f"another command runs points into {tmp_path}: waiting for it, its runs are kept"
        ]
    with run.alone(point, tmp_path):
        assert len(said) == 1
