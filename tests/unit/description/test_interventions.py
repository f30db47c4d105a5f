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
        ({"drop": {"flow": "onne"}}, 'flow: no connection "onne"; did you mean "one"?'),
        ({"drop": {"queue": "up"}}, 'queue: no queue "up"; there are forward, reverse'),
        ({"drop": {"packet": 3}}, "queue: without a flow, one of forward, reverse"),
        (
            {"drop": {"flow": "one", "queue": "reverse", "sequence": 5}},
            "queue: no data of one pass reverse, but forward",
        ),
        ({"drop": {"queue": "forward", "sequence": 5}}, "sequence: needs a flow, got 5 of any"),
        ({"keep": {"flow": "one", "until_s": 1, "packet": 2}}, "packet: not with until_s, got 2"),
        (
            {"keep": {"flow": "one", "from_s": 1, "until_s": 1}},
            "until_s: must be above from_s (1), got 1",
        ),
        ({"drop": {"flow": "one", "from_s": 3}}, "from_s: must be at most duration_s (2), got 3"),
        ({"set": {"host": "h3", "at_s": 1, "sysctls": {}}}, 'host: no host "h3"; there are h1, h2'),
        (
            {"set": {"host": "h1", "at_s": 2, "sysctls": {}}},
            "at_s: must be below duration_s (2), got 2",
        ),
        (
            {"set": {"host": "h1", "at_s": 1, "sysctls": {"net.ipv4.tcp_retries2": 256}}},
            "sysctls.net.ipv4.tcp_retries2: must be a whole number from 0 to 255, got 256",
        ),
        (
            {"limit": {"queue": "up", "packets": 9, "at_s": 1}},
            'queue: no queue "up"; there are forward, reverse',
        ),
        (
            {"control": {"flow": "one", "congestion": "rino", "at_s": 1}},
            'congestion: no control "rino" of the kernel; did you mean "reno"?',
        ),
        (
            {"reorder": {"flow": "one", "until_s": 1, "by_packets": 2}},
            "until_s: not with reorder, got 1",
        ),
        (
            {"window": {"flow": "onne", "packets": 9, "at_s": 1}},
            'flow: no connection "onne"; did you mean "one"?',
        ),
        (
            {"link": {"direction": "up", "rate_mbit": 9, "at_s": 1}},
            'direction: no direction "up"; there are forward, reverse',
        ),
        ({"link": {"direction": "forward", "at_s": 1}}, "0.link: needs a rate_mbit or a delay_ms"),
        (
            {"link": {"direction": "forward", "rate_mbit": 0, "at_s": 1}},
            "with their changes of links: directions.forward.rate.schedule.1: the last rate",
        ),
        ({"read": {"at_s": 1}}, "0.read: needs a flow, or ports"),
        (
            {"resume": {"flow": "one", "at_s": 1, "until_s": 1}},
            "until_s: must be above at_s (1), got 1",
        ),
        ({"start": {"flow": "two", "at_s": 1}}, 'flow: no connection "two"'),
        ({"stop": {"flow": "one", "at_s": 0}}, "at_s: one would start at 0 and stop at 0 s, got 0"),
        ({}, f"0: takes one of {ACTIONS}; got none"),
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
    (found,) = problems_of(write_experiment(tmp_path, {**LINUX, "interventions": [intervention]}))
    places = ("interventions: ", "interventions.", *(f"interventions.0.{k}." for k in intervention))
    assert found.startswith(tuple(f"{place}{problem}" for place in places))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"queue_limit": {"schedule": [[0, 9], [1, 5]]}}, "queue_limit"),
        ({"ack_queue": "own", "loss": {"schedule": [[0, 0.1], [1, 0]]}}, "loss"),
    ],
)
def test_no_later_change_sets_a_rate_back(
    tmp_path: Path, fields: dict[str, Any], field: str
) -> None:
    """A rate that tc changes is refused where another change would write the first rate again."""
    line = {"rate_mbit": 3, "delay_ms": 8, "queue_packets": 9}
    profile = {"directions": {"forward": {**line, **fields}, "reverse": line}}
    change = {"link": {"direction": "forward", "rate_mbit": 2, "at_s": 0.5}}
    asked = {**LINUX, "profile": profile, "interventions": [change]}
    (found,) = problems_of(write_experiment(tmp_path, asked))
    assert found.endswith(f"directions.forward.{field}: each change would set the rate back")


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
    assert problems_of(path) == ([] if kept else [sentence])


@pytest.mark.parametrize(
    ("link", "rate_mbit", "said"),
    [
        ({"rate_mbit": 3}, 1.7, "qdisc change dev r1-eth1 root netem limit 20 rate 1700000bit"),
        (
            {"rate_mbit": 8, "aqm": "codel"},
            9,
            "class change dev r1-eth1 parent 1: classid 1:1 htb rate 9000000bit burst 1 cburst 1",
        ),
        ({"rate_mbit": 8}, 9, None),
        ({"rate_mbit": 3}, 0, "forward must be a drop-tail queue with a rate_mbit at which"),
        (
            {"rate": {"schedule": [[0, 8], [1, 4]], "repeat_s": 2}},
            9,
            "forward needs a rate_mbit, or a rate.schedule that ends",
        ),
    ],
)
def test_tc_changes_a_rate_that_no_table_can(
    tmp_path: Path, link: Any, rate_mbit: float, said: str | None
) -> None:
    """A table of rates must have the same packets before; else tc changes the rate, if it can."""
    links = {"forward": {**LINK, "rate_mbit": None, **link}, "reverse": LINK}
    asked = [{"link": {"direction": "forward", "rate_mbit": rate_mbit, "at_s": 1}}]
    document = {**LINUX, "profile": {"directions": links}, "interventions": asked}
    path = write_experiment(tmp_path, document)
    if found := problems_of(path):
        assert found[0].startswith(f"interventions.0.link.rate_mbit: {said}")
        return
    changes = build_plan(load_point(str(path)), in_kernel=True).changes
    assert said in changes[0].stdin if said else not changes


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
