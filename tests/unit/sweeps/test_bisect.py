"""The questions of `twoway bisect`, over a history of commits that are not built."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.running import SMALL, write_experiment

from twoway.errors import UsageError
from twoway.guest.history import History
from twoway.runs.packetdrill import Trial, Verdict
from twoway.runs.points import load_point
from twoway.sweeps.bisect import Experiment, Ran, Script, Search

SCRIPT = Script(Trial(Path("a.pkt"), "a.pkt", "ipv4"), Path("packetdrill"))


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    """Make a history of ten commits v1 to v10, whose guest is the commit's subject."""
    folder = tmp_path / "linux"
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    (folder / "Kbuild").touch()
    subprocess.run([*git, "add", "Kbuild"], check=True)
    for number in range(1, 11):
        subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", f"v{number}"], check=True)
        subprocess.run([*git, "tag", f"v{number}"], check=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(History, "guest", lambda self, commit, _: self.title(commit).split()[1])
    return History(folder, wide=True)


@pytest.mark.parametrize("passes", [False, True])
def test_a_script_is_asked(history: History, monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    """The first commit is found on which a script fails, or passes, other than on the good one."""
    tried = []

    def attempt(_trial: Trial, guest: Any, *_: Any) -> Verdict:
        tried.append(guest)
        return Verdict("a.pkt ipv4", "late" if (int(guest[1:]) >= 7) != passes else "")

    monkeypatch.setattr("twoway.sweeps.bisect.attempt_trial", attempt)
    found = Search(SCRIPT, history, lambda _: None).find("v1", "v10")
    assert found.title.split()[1] == "v7"
    assert found.sign == ("passes, good fails: late" if passes else "fails: late")
    assert (found.good, found.bad) == (None, None)
    assert len(tried) == len(set(tried)) <= 6
    with pytest.raises(UsageError, match=f"a.pkt ipv4: {'fails' if passes else 'passes'} on both"):
        Search(SCRIPT, history, lambda _: None).find("v1", "v3")


@pytest.mark.parametrize(
    ("value", "is_bad"), [(1.0, False), (1.4, False), (1.6, True), (3.0, True)]
)
def test_a_metric_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float, is_bad: bool
) -> None:
    """A commit is bad if its value is nearer to that of the bad commit; a word must be known."""
    point = load_point(str(write_experiment(tmp_path, SMALL)))
    question = Experiment(point, tmp_path, "goodput.left")
    values = {"good": 1.0, "bad": 2.0, "other": value}
    monkeypatch.setattr("twoway.sweeps.bisect._value", lambda folder, _: values[folder.name])
    verdicts: Any = object()
    good, bad, other = (Ran(Path(name), verdicts) for name in values)
    assert question.sign(good, bad) == "goodput.left"
    assert question.is_bad("goodput.left", good, bad, other) == is_bad
    with pytest.raises(UsageError, match=r"good and bad have the same goodput\.left"):
        question.sign(good, good)
    with pytest.raises(UsageError, match="--question: goodputs: no such difference or metric"):
        Experiment(point, tmp_path, "goodputs")
