"""`twoway why` names the loss that decided a result, where that loss is known."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.guides import listing
from support.running import ROOT, twoway, write_experiment
from support.runs import carry_out

pytestmark = pytest.mark.usefixtures("guest")

TAIL: dict[str, Any] = yaml.safe_load(listing("why.md", "answer.yml"))
METRIC = "completion_time.answer"


def _ask(folder: Path, *words: str) -> Any:
    return twoway("why", "small.yml", "--results", folder / "results", *words, cwd=folder)


def test_the_loss_of_the_last_packet_costs_a_probe(tmp_path: Path) -> None:
    """Without the only loss, an answer is complete after a round trip and its own transmission."""
    path = write_experiment(tmp_path, TAIL)
    folder = carry_out(path, tmp_path / "results")
    done = _ask(tmp_path, "--metric", METRIC, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (event,) = found["events"]
    # The handshake, an ACK and ten segments in frames on the link, and its delay.
    expected_s = 2 * (0.02 + 74e-6) + (66 + 67 + 9 * 1514) / 1e6 + 0.02
    assert event["value"] == pytest.approx(expected_s, abs=3e-6)
    assert event["effect"] == event["value"] - found["value"] < -0.04
    assert event["segment"] == 9
    (sentence,) = found["sentences"]
    assert sentence == (
        f"At 0.040 s the queue forward dropped segment 9 of answer. Without that drop {METRIC} is "
        f"{event['value']:.4g} instead of {found['value']:.4g} s."
    )
    assert sentence in (folder / "why.html").read_text()
    assert sentence in (ROOT / "docs/guides/why.md").read_text()
    # The intervention in the page, in a file, makes the same run.
    asked = [event["intervention"]]
    anew = carry_out(write_experiment(tmp_path, TAIL | {"interventions": asked}), tmp_path / "r")
    table = twoway("report", anew, "--json").stdout
    assert json.loads(table)["metrics"][METRIC]["value"] == event["value"]


def test_what_cannot_be_asked_has_a_sentence(tmp_path: Path) -> None:
    """An unknown metric, a changed experiment and a run with interventions are refused."""
    carry_out(write_experiment(tmp_path, TAIL), tmp_path / "results")
    done = _ask(tmp_path, "--metric", "completion_time.anser")
    assert done.returncode == 2
    assert 'no such metric; did you mean "completion_time.answer"?' in done.stderr
    write_experiment(tmp_path, {**TAIL, "duration_s": 1.5})
    done = _ask(tmp_path)
    assert done.returncode == 2
    assert (
        "the experiment, the kernel or the tools are not those of the run any more" in done.stderr
    )
    drop = [{"drop": {"flow": "answer"}}]
    carry_out(write_experiment(tmp_path, TAIL | {"interventions": drop}), tmp_path / "results")
    done = _ask(tmp_path)
    assert done.returncode == 2
    assert "has interventions" in done.stderr
