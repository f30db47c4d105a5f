"""A folder that is no repository of the kernel's source."""

import subprocess
from pathlib import Path

import pytest
from support.warm_command import twoway


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("gone", "--source: {source}: no such folder"),
        ("plain", "--source: {source}: git rev-parse: fatal: not a git repository"),
        ("other", "HEAD: {source} has no kernel in this commit"),
    ],
)
def test_a_source_that_is_none(
    source: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`bisect` names a source that is no kernel's repository, and leaves the cache empty."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    git = "git -c user.name=t -c user.email=t@example.org"
    for words in ("init --quiet", "commit --quiet --allow-empty --message x"):
        subprocess.run([*git.split(), *words.split()], cwd=tmp_path / "other", check=True)
    ends = ("--source", tmp_path / source, "--good", "HEAD", "--bad", "HEAD")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = twoway("bisect", "kalampoukas-5.2", *ends)
    assert done.returncode == 2
    assert sentence.format(source=tmp_path / source) in done.stderr
    assert not list((tmp_path / "cache/twoway").glob("history/*"))
