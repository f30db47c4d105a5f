"""Interventions are checked before they run, and reach the plan only of their own runs."""

from pathlib import Path
from typing import Any

import pytest
from support.running import LINUX, problems_of, write_experiment

from twoway.contract.plan import Copy, LoadModule
from twoway.plan.plan import build_plan
from twoway.runs.points import load_point

ACTIONS = (
    "drop, keep, mark, unmark, delay, duplicate, reorder, set, limit, control, window, resume, "
    "read, link, start, stop"
)
KEEP = {"keep": {"flow": "one"}}
LINK = {"rate_mbit": 8, "queue_packets": 20, "delay_ms": 8}


@pytest.mark.parametrize(
    ("intervention", "problem"),
    [
        ({"drop": {"flow": "onne"}}, '0.drop.flow: no connection "onne"; did you mean "one"?'),
        ({"drop": {"queue": "up"}}, '0.drop.queue: no queue "up"; there are forward, reverse'),
        ({"drop": {"packet": 3}}, "0.drop.queue: without a flow, one of forward, reverse"),
        (
            {"drop": {"flow": "one", "queue": "reverse", "sequence": 5}},
            "0.drop.queue: no data of one pass reverse, but forward",
        ),
        (
            {"drop": {"queue": "forward", "sequence": 5}},
            "0.drop.sequence: needs a flow, got 5 of any",
        ),
        (
            {"keep": {"flow": "one", "until_s": 1, "packet": 2}},
            "0.keep.packet: not with until_s, got 2",
        ),
        (
            {"keep": {"flow": "one", "from_s": 1, "until_s": 1}},
            "0.keep.until_s: must be above from_s (1), got 1",
        ),
        (
            {"drop": {"flow": "one", "from_s": 3}},
            "0.drop.from_s: must be at most duration_s (2), got 3",
        ),
        (
            {"set": {"host": "h3", "at_s": 1, "sysctls": {}}},
            '0.set.host: no host "h3"; there are h1, h2',
        ),
        (
            {"set": {"host": "h1", "at_s": 2, "sysctls": {}}},
            "0.set.at_s: must be below duration_s (2), got 2",
        ),
        (
            {"set": {"host": "h1", "at_s": 1, "sysctls": {"net.ipv4.tcp_retries2": 256}}},
            "0.set.sysctls.net.ipv4.tcp_retries2: must be a whole number from 0 to 255, got 256",
        ),
        (
            {"limit": {"queue": "up", "packets": 9, "at_s": 1}},
            '0.limit.queue: no queue "up"; there are forward, reverse',
        ),
        (
            {"control": {"flow": "one", "congestion": "rino", "at_s": 1}},
            '0.control.congestion: no control "rino" of the kernel; did you mean "reno"?',
        ),
        (
            {"reorder": {"flow": "one", "until_s": 1, "by_packets": 2}},
            "0.reorder.until_s: not with reorder, got 1",
        ),
        (
            {"window": {"flow": "onne", "packets": 9, "at_s": 1}},
            '0.window.flow: no connection "onne"; did you mean "one"?',
        ),
        (
            {"link": {"direction": "up", "rate_mbit": 9, "at_s": 1}},
            '0.link.direction: no direction "up"; there are forward, reverse',
        ),
        ({"link": {"direction": "forward", "at_s": 1}}, "0.link: needs a rate_mbit or a delay_ms"),
        (
            {"link": {"direction": "forward", "rate_mbit": 0, "at_s": 1}},
            "with their changes of links: directions.forward.rate.schedule.1: the last rate",
        ),
        ({"read": {"at_s": 1}}, "0.read: needs a flow, or ports"),
        (
            {"resume": {"flow": "one", "at_s": 1, "until_s": 1}},
            "0.resume.until_s: must be above at_s (1), got 1",
        ),
        ({"start": {"flow": "two", "at_s": 1}}, '0.start.flow: no connection "two"'),
        (
            {"stop": {"flow": "one", "at_s": 0}},
            "0.stop.at_s: one would start at 0 and stop at 0 s, got 0",
        ),
        (
            {},
            f"0: takes one of {ACTIONS}; got none",
        ),
        (
            {"drop": {"flow": "one"}, "keep": {"flow": "one"}},
            f"0: takes one of {ACTIONS}; got drop, keep",
        ),
    ],
)
def test_a_mistake_has_a_sentence(
    tmp_path: Path, intervention: dict[str, Any], problem: str
) -> None:
    """An intervention in what the experiment does not have is named with field and value."""
    path = write_experiment(tmp_path, {**LINUX, "interventions": [intervention]})
    (found,) = problems_of(str(path))
    assert found.startswith((f"interventions.{problem}", f"interventions: {problem}"))


@pytest.mark.parametrize(
    ("manager", "ecn", "kept"),
    [
        ({"aqm": "sfq"}, False, False),
        ({"aqm": "fq_codel"}, False, True),
        ({"aqm": "fq_codel"}, True, False),
        ({"aqm": "fq_codel", "ecn": True}, True, True),
        ({"aqm": "cake"}, True, True),
    ],
)
def test_a_manager_keeps_what_it_can_mark(
    tmp_path: Path, manager: dict[str, Any], ecn: bool, kept: bool
) -> None:
    """A manager keeps a packet by a mark; it must be able to mark, and mark no other packet."""
    links = {"forward": {**LINK, **manager}, "reverse": LINK}
    document = {**LINUX, "profile": {"directions": links}, "stack": {"preset": "linux", "ecn": ecn}}
    path = write_experiment(tmp_path, document | {"interventions": [{"keep": {"flow": "one"}}]})
    sentence = (
        "interventions.0.keep.queue: forward has a manager that cannot mark a packet instead of "
        "dropping it"
    )
    assert problems_of(str(path)) == ([] if kept else [sentence])


@pytest.mark.parametrize(
    "link",
    [
        {"rate_mbit": 3},  # netem rounds times at such a rate
        {"rate_mbit": 8, "aqm": "codel"},
        {"rate": {"schedule": [[0, 8], [1, 4]], "repeat_s": 2}},
    ],
)
def test_a_rate_changes_where_a_table_has_the_same_packets(tmp_path: Path, link: Any) -> None:
    """The rate of a link is refused if a table of rates would have other packets before."""
    links = {"forward": {**LINK, "rate_mbit": None, **link}, "reverse": LINK}
    asked = [{"link": {"direction": "forward", "rate_mbit": 9, "at_s": 1}}]
    document = {**LINUX, "profile": {"directions": links}, "interventions": asked}
    (found,) = problems_of(str(write_experiment(tmp_path, document)))
    assert found.startswith("interventions.0.link.rate_mbit: forward must be a drop-tail queue")


@pytest.mark.parametrize(
    ("loss", "marks"), [({"percent": 1}, 1), ({"every": 9}, 0), ({"schedule": [[0, 0], [1, 5]]}, 0)]
)
def test_a_link_marks_where_it_loses_at_random_alone(
    tmp_path: Path, loss: dict[str, Any], marks: int
) -> None:
    """The option `ecn` of netem, which `keep` needs, is beside a loss by chance alone."""
    links = {"forward": {**LINK, "loss": loss}, "reverse": LINK}
    document = {**LINUX, "profile": {"directions": links}, "interventions": [KEEP]}
    plan = build_plan(load_point(str(write_experiment(tmp_path, document))), in_kernel=True)
    lines = [line for step in plan.setup for line in getattr(step, "stdin", ())]
    assert sum(line.endswith(" ecn") for line in lines) == marks


def test_a_queue_without_a_link_behind_it_keeps_a_packet(tmp_path: Path) -> None:
    """The queues before a channel have no delay behind them, where else a loss would be kept."""
    channel = {"topology": {"name": "dtm_two_flows"}, "profile": "dtm-two-flows"}
    flow = {"name": "one", "from": "h1", "to": "h3", "congestion": "reno"}
    asked = {**LINUX, **channel, "flows": [flow], "interventions": [{"keep": {"flow": "one"}}]}
    plan = build_plan(load_point(str(write_experiment(tmp_path, asked))), in_kernel=True)
    assert "keep/" in str(plan.setup[-1])


def test_the_plan_differs_in_the_module_alone(tmp_path: Path) -> None:
    """Steps for an intervention come after all others of the set-up, and of the teardown."""
    plain = build_plan(load_point(str(write_experiment(tmp_path, LINUX))), in_kernel=True)
    asked = {**LINUX, "interventions": [{"drop": {"flow": "one", "from_s": 1.5, "packet": 2}}]}
    plan = build_plan(load_point(str(write_experiment(tmp_path, asked))), in_kernel=True)
    *setup, module = plan.setup
    *teardown, outcome = plan.teardown
    assert (*setup,) == plain.setup
    assert (*teardown,) == plain.teardown
    assert isinstance(module, LoadModule)
    assert isinstance(outcome, Copy)
    assert module.run[2:] == ("rules=drop/r1-eth1/1/40001/5001/0/946684831500000000/0/2/-",)
    assert outcome.file == "interventions.txt"
    assert plan.guest_only == ("interventions",)
