"""`twoway hunt` finds the simplest setting that does badly, and takes up what it has."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from twoway.commands import hunt as command
from twoway.errors import UsageError
from twoway.sweeps import hunt
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
