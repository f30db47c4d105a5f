"""The searches of `twoway hunt` and `twoway bisect`, without a guest."""

import argparse
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import SMALL, write_experiment

from twoway.commands import hunt as command
from twoway.errors import UsageError
from twoway.guest.history import History
from twoway.runs.packetdrill import Trial, Verdict
from twoway.runs.points import load_point
from twoway.sweeps import hunt
from twoway.sweeps.bisect import Experiment, Ran, Script, Search
from twoway.sweeps.sweep import Work

# A control that takes all where a queue is short: the goal `harms`.
SIMPLEST = {"rate_mbit": 8, "delay_ms": 10, "loss_percent": 0, "rival": "cubic", "rival_start_s": 0}


def _is_short(document: Any) -> bool:
    link = document["profile"]["directions"]["forward"]
    return bool(link["queue_packets"] < 1 + link["rate_mbit"] * link["delay_ms"] / 8 / 1.514)


@pytest.fixture(name="tried")
def _tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Answer for runs without a guest, and list their experiments."""
    tried: list[Any] = []

    def values(document: Any) -> dict[str, float]:
        tried.append(document)
        return {"mine": 7.0, "other": 0.1 if _is_short(document) else 7.0, "silence_s": 0.1}

    monkeypatch.setattr(hunt, "_written", lambda _, document: document)
    monkeypatch.setattr(hunt, "run_experiment", lambda document, *_: document)
    monkeypatch.setattr(hunt, "values_of", values)
    monkeypatch.setattr(hunt, "identity", lambda document, _: json.dumps(document))
    return tried


def _hunted(folder: Path, seed: int) -> tuple[Any, int]:
    work: Any = Work("harms", None, None, folder)  # type: ignore[arg-type]
    return hunt._search("bbr", seed, math.inf, work)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_find_is_the_simplest_one(tmp_path: Path, tried: list[Any], seed: int) -> None:
    """Every field has its first value but the queue; the run is the shortest; the file is small."""
    (setting, badness), runs = _hunted(tmp_path, seed)
    assert setting == {**SIMPLEST, "queue_bdp": 0.5, "seconds": 4}
    assert badness == pytest.approx(7 / 7.1)
    assert runs == len(tried)
    text = yaml.safe_dump(hunt.document_of("bbr", setting, "bbr harms"), sort_keys=False)
    assert len(text) < 1000
    assert "loss" not in text


def test_a_second_search_goes_on(tmp_path: Path, tried: list[Any]) -> None:
    """The same seed makes no run again, even after a line that a killed search cut short."""
    first, _ = _hunted(tmp_path, 1)
    tried.clear()
    with (tmp_path / "hunt.jsonl").open("a") as kept:
        kept.write('{"identity": "1')
    assert _hunted(tmp_path, 1) == (first, 0)
    assert not tried


@pytest.mark.parametrize("text", ["10", "0m", "25h", "m", "-3s"])
def test_a_budget_has_a_unit(text: str) -> None:
    """A budget is a whole number of seconds, minutes or hours, up to a day."""
    assert command.budget("10m") == 600
    with pytest.raises(Exception, match="must be as 30s, 10m or 2h"):
        command.budget(text)


def test_an_unknown_control_has_a_sentence(tmp_path: Path) -> None:
    """A control that no experiment can name is bad usage, before any run."""
    asked: Any = hunt.Hunt("cubicc", None, tmp_path, tmp_path, 1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^cubicc: not to be hunted: congestion: no control "):
        hunt.hunt(asked, 1, 1)


def test_without_hypothesis_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is an extra: without it the command says what to install."""
    monkeypatch.setattr("twoway.commands.hunt.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="hunt needs Hypothesis"):
        command.run(argparse.Namespace())


# Bisections: their questions, over a history of commits that are not built.


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
