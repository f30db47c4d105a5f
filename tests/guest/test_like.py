"""Searches find what is known: paths by `twoway like`, harm by `twoway hunt`."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.running import LINUX, write_experiment
from support.runs import carry_out
from support.warm_command import twoway

from twoway.errors import UsageError
from twoway.sweeps.hunt import _LINK, GOALS, document_of, free_mbit, values_of
from twoway.sweeps.likeness import Transfer, experiment_like

pytestmark = pytest.mark.usefixtures("guest")


# `twoway like` finds the path and the flows of a capture again, where both are known.


def test_only_a_capture_near_the_sender_shows_the_path() -> None:
    """Round trips seen near the receiver are not the path's; sentences name what nothing shows."""
    trips = {"rtt_min": 30.0, "rtt_p99": 30.0}
    facts = {"bottleneck": None, "segment": None}
    there = Transfer("a > b", True, 0, 100, True, trips, facts)
    back = Transfer("a > b", False, 0, 100, False, {"rtt_min": 0.1, "rtt_p99": 9.0}, facts)
    document, assumed = experiment_like([there, back], "two")
    assert document["profile"]["directions"]["reverse"]["delay_ms"] > 14
    assert "No data show the rate reverse: twice the throughput of a > b." in assumed
    assert "No round trip shows the queue reverse: 100 packets." in assumed
    assert "No window shows the control of t1, t2: cubic." in assumed
    guess = replace(there, facts={"bottleneck": 8.0, "segment": 1448}, guessed=True)
    document, assumed = experiment_like([guess], "guess")
    assert document["profile"]["directions"]["forward"]["rate_mbit"] == 8
    assert "The rate forward is guessed from gaps between packets." in assumed
    pauses = {
        **trips,
        "limited_application": 1.0,
        "throughput": 8.0,
        "goodput": 8.0,
        "data_time": 1,
    }
    for rate_mbit, paced in ((8.1, False), (20.0, True)):
        known = replace(guess, facts={"bottleneck": rate_mbit, "segment": 1448}, guessed=False)
        document, _ = experiment_like([replace(known, metrics=pauses)], "full or not")
        (flow,) = document["flows"]
        assert ("rate_mbit" in flow) is paced
        assert flow["congestion"] == ("cubic" if paced else "bbr")
    _, assumed = experiment_like([there] * 15 + [replace(there, start_s=200)], "many")
    assert "The experiment has the 16 transfers with most data at most." in assumed
    assert "The capture's data take 200 s, the run ends at 120 s." in assumed
    with pytest.raises(UsageError, match="near the data's sender"):
        experiment_like([replace(back, forward=True)], "one")


@pytest.mark.parametrize("ip", [4, 6])
def test_an_application_keeps_its_pace(tmp_path: Path, ip: int) -> None:
    """A flow that its application limits sends at its rate, and finds no queue, as in its capture.

    Its gaps are the application's, and no guess at the link's rate. IP has the capture's version.
    """
    path = {"rate_mbit": 8, "delay_ms": 15, "queue_packets": 100}
    flow = {
        "name": "one",
        "from": "h1",
        "to": "h2",
        "congestion": "cubic",
        "rate_mbit": 1,
        "ip": ip,
    }
    links = {"directions": {"forward": path, "reverse": path}}
    document = {**LINUX, "profile": links, "flows": [flow], "duration_s": 2, "warm_up_s": 0}
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    capture = run / "pcap/h1-eth0.pcap.zst"
    done = twoway("like", capture, "--results", "results", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The application limits t1: a constant rate." in done.stderr
    found = yaml.safe_load((tmp_path / "like.yml").read_text())
    assert found["flows"][0]["rate_mbit"] == pytest.approx(1, rel=0.01 if ip == 4 else 0.02)
    assert found["flows"][0].get("ip", 4) == ip
    rows = {row[1]: row[2:] for row in json.loads(done.stdout)["rows"]}
    for name, agree in (("goodput", 0.02), ("segments", 0.02), ("rtt_median", 0.2)):
        theirs, ours = rows[name]
        assert ours == pytest.approx(theirs, rel=agree)


def test_a_capture_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    """No file, no capture and no folder for the experiment end with code 2, and leave no file."""
    (tmp_path / "text.pcap").write_text("this file is no capture at all")
    for words, said in (
        (("none.pcap",), "none.pcap: cannot be read: No such file"),
        (("text.pcap",), "text.pcap: neither pcap nor pcapng"),
    ):
        done = twoway("like", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert said in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["text.pcap"]


BACK = {"rate_mbit": 20, "delay_ms": 15, "queue_packets": 100}


@pytest.mark.parametrize(
    ("forward", "congestion", "agree", "median"),
    [
        ({"rate_mbit": 8, "delay_ms": 15, "queue_packets": 30}, "cubic", 0.02, 0.05),
        # BBR begins its cycle of probes at random.
        ({"rate_mbit": 8, "delay_ms": 15, "queue_packets": 30}, "bbr", 0.02, 0.1),
        (
            {"rate_mbit": 20, "delay_ms": 15, "queue_packets": 200, "loss": {"percent": 1}},
            "reno",
            1,
            0.05,
        ),
    ],
    ids=["queue", "bbr", "random-loss"],
)
def test_a_known_path_is_found(
    tmp_path: Path, forward: dict[str, Any], congestion: str, agree: float, median: float
) -> None:
    """Rate, delay, and queue or loss are the capture's; its run has the capture's metrics."""
    document = {
        **LINUX,
        "profile": {"directions": {"forward": forward, "reverse": BACK}},
        "flows": [{"name": "one", "from": "h1", "to": "h2", "congestion": congestion}],
        "duration_s": 2,
        "warm_up_s": 0,
    }
    run = carry_out(write_experiment(tmp_path, document), tmp_path / "results")
    capture = run / "pcap/h1-eth0.pcap.zst"
    done = twoway("like", capture, "--results", "results", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    link = yaml.safe_load((tmp_path / "like.yml").read_text())["profile"]["directions"]["forward"]
    assert link["rate_mbit"] == forward["rate_mbit"]
    assert link["delay_ms"] == pytest.approx(forward["delay_ms"], abs=0.03)
    if loss := forward.get("loss"):
        assert link["loss"]["percent"] == pytest.approx(loss["percent"], abs=0.5)
    else:
        assert link["queue_packets"] == pytest.approx(forward["queue_packets"], abs=1)
    rows = {row[1]: row[2:] for row in json.loads(done.stdout)["rows"]}
    for name, rel in (("rtt_min", 0.05), ("rtt_median", median), ("goodput", agree)):
        theirs, ours = rows[name]
        assert ours == pytest.approx(theirs, rel=rel)
    again = twoway("like", capture, "--results", "results", cwd=tmp_path)
    assert again.returncode == 2
    assert "like.yml: exists already" in again.stderr


# Finds of `twoway hunt`: settings in which a control is known to do badly.

BESIDE = {"rival": "cubic", "rival_start_s": 0}


@pytest.mark.long
@pytest.mark.parametrize(
    ("control", "goal", "fields"),
    [
        ("bbr", "harms", {**BESIDE, "queue_bdp": 0.5, "seconds": 4}),
        ("vegas", "starves", {**BESIDE, "queue_bdp": 4, "delay_ms": 20, "seconds": 10}),
        ("reno", "shrew", {"every_s": 0.25, "for_ms": 100, "seconds": 8}),
        ("reno", "locks", {"dtm": True, "delay_ms": 40, "queue_bdp": 0.1, "seconds": 16}),
    ],
)
def test_known_settings_are_finds(
    tmp_path: Path, control: str, goal: str, fields: dict[str, Any]
) -> None:
    """BBR beside CUBIC at half a BDP, Vegas beside CUBIC, the shrew, and a locked DTM channel.

    Sources: Hock, Bless and Zitterbart 2017; Mo et al. 1999; Kuzmanovic and Knightly 2003;
    Abrahamsson et al. 2002.
    """
    setting = {name: values[0] for name, values in _LINK.items()} | fields
    text = yaml.safe_dump(document_of(control, setting, "known"), sort_keys=False)
    assert len(text) < 1000
    (tmp_path / "known.yml").write_text(text)
    values = values_of(carry_out(tmp_path / "known.yml", tmp_path / "results"))
    assert GOALS[goal].badness(values, free_mbit(setting)) > GOALS[goal].limit
