"""A queue in tc's own words: any qdisc of the guest's kernel, or a tree, inside any shaper."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plans import planned
from support.running import LINUX, SMALL, problems_of, write_experiment

from twoway.contract.plan import Check, Save
from twoway.links.direction import Direction
from twoway.links.proof import not_proven
from twoway.paths import PROFILES

LINE = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20}
HTB = (
    "htb default 2\n"
    "class add parent 2: classid 2:1 htb rate 6mbit\n"
    "qdisc add parent 2:1 fq_codel\n"
    "filter add parent 2: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 2:1\n"
)
TWO_LIMITS = "prio\nqdisc add parent 2:1 pfifo limit 9\nqdisc add parent 2:2 pfifo limit 9"
OF_R1 = HTB.replace("2:", "1:")
WITHOUT_DEV = "with `qdisc add parent `, `class add parent ` or `filter add parent `"


def with_queue(queue: Any, **fields: Any) -> dict[str, Any]:
    """Return an experiment whose first direction has a queue in tc's words."""
    link = {**LINE, "queue": queue, **fields}
    return {**LINUX, "profile": {"directions": {"forward": link, "reverse": LINE}}}


def test_the_text_that_tc_prints_for_hfsc_is_cut(tmp_path: Path) -> None:
    """The plan's command leaves JSON of an output with `options` of text, as tc's of hfsc."""
    plan = planned(tmp_path, {**with_queue("hfsc default 1"), "kernel": "wide"})
    saved = (each for each in plan.teardown if isinstance(each, Save))
    (run,) = (each.run for each in saved if each.file == "qdisc/r1-after.json")
    said = '[{"kind":"hfsc","options":{default 1 },"qlen":0}]'
    cut = subprocess.run((*run[:4], "echo", said), capture_output=True, check=True)
    assert json.loads(cut.stdout) == [{"kind": "hfsc", "options": {}, "qlen": 0}]


def test_tc_may_warn_of_words_that_it_takes(tmp_path: Path) -> None:
    """Words for which tc warns, as for red without a bandwidth, are no problem."""
    queue = with_queue("red limit 400000 avpkt 1000")
    assert problems_of(write_experiment(tmp_path, queue)) == []


def test_a_tree_stands_inside_the_shaper(tmp_path: Path) -> None:
    """The lines of a tree, as a text or a list, follow its qdisc inside the shaper's class."""
    plans = [planned(tmp_path, with_queue({"tc": each})) for each in (HTB, HTB.splitlines())]
    assert plans[0] == plans[1]
    steps = [step for step in plans[0].setup if isinstance(step, Check) and step.node == "r1"]
    found = [line for step in steps for line in step.stdin if "dev r1-eth1" in line]
    assert found[-4:] == [
        "qdisc add dev r1-eth1 parent 1:1 handle 2: htb default 2",
        "class add dev r1-eth1 parent 2: classid 2:1 htb rate 6mbit",
        "qdisc add dev r1-eth1 parent 2:1 fq_codel",
        "filter add dev r1-eth1 parent 2: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 2:1",
    ]


@pytest.mark.parametrize("node", ["hosts.h1", "routers.r1"])
def test_hosts_and_routers_have_trees(tmp_path: Path, node: str) -> None:
    """A host's or router's tree is at its interfaces that have no queue or delay of a link."""
    kind, name = node.split(".")
    near = {"directions": dict.fromkeys(("forward", "reverse"), LINE | {"delay_ms": 0})}
    given = {kind: {name: {"qdisc": {"tc": OF_R1}}}, "profile": near}
    plan = planned(tmp_path, LINUX | given)
    steps = [step for step in plan.setup if isinstance(step, Check) and step.node == name]
    found = [line for step in steps for line in step.stdin if "htb" in line]
    dev = f"{name}-eth0"
    assert found == [
        f"qdisc replace dev {dev} root handle 1: htb default 2",
        f"class add dev {dev} parent 1: classid 1:1 htb rate 6mbit",
    ]


@pytest.mark.parametrize(
    ("words", "holds"),
    [
        ("sfq limit 60", False),
        ("fq", False),
        ("fq maxrate 2mbit", True),
        ("red limit 60000 avpkt 1000 bandwidth 8mbit", False),
        ("prio\nqdisc add parent 2:1 cake bandwidth 2mbit", True),
        ("tbf rate 4mbit burst 3000 limit 90000", True),
        ("prio\nqdisc add parent 2:1 handle 3: pfifo limit 5", False),
        ("prio\nqdisc add parent 2:1 handle 3: netem delay 5ms", True),
        (HTB, True),
    ],
)
def test_a_queue_that_may_hold_packets_is_not_proven(words: str, holds: bool) -> None:
    """Only a queue of qdiscs that have a packet as long as one waits is checked for lateness."""
    found = not_proven({"down": Direction.model_validate({**LINE, "queue": {"tc": words}})})
    expected = ["whether packets leave as soon as the link is free (down)"] * holds
    assert [each.what for each in found] == expected


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (with_queue("hhf limit 100"), "queue: the guest's kernel has no qdisc hhf; "),
        (
            with_queue({"tc": ["prio", {"filter add parent 2": "protocol ip"}]}),
            "queue.tc: YAML takes a line with `: ` for a mapping: write",
        ),
        (
            with_queue("tc qdisc add dev eth0 root sfq"),
            "queue.tc: must begin with a qdisc's name, without `tc qd",
        ),
        (
            with_queue({"tc": "prio\nqdisc add parent 2:1 fq_codl"}),
            "queue: the guest's kernel has no qdisc fq_codl; did you",
        ),
        (
            with_queue({"tc": "prio\nfilter add parent 2: protocol ip nosuch"}),
            "queue: the guest's kernel has no filter nosuch; it has mat",
        ),
        (with_queue({"tc": "sfq limt 60"}), "queue.tc: 'sfq limt 60': tc says What is \"limt\"?"),
        (
            LINUX | {"routers": {"r1": {"qdisc": {"tc": OF_R1.replace("6mbit", "6mbyte")}}}},
            "routers.r1.qdisc.tc: 'class add parent 1: classid 1:1 htb rate 6mbyte': tc says Ill",
        ),
        (
            LINUX | {"routers": {"r1": {"qdisc": "fq"}}},
            "routers.r1.qdisc: each interface of r1 has a link's queue or delay; `queue: {tc",
        ),
        (LINUX | {"hosts": {"h1": {"qdisc": "tbf"}}}, "hosts.h1.qdisc.tc: 'tbf': tc says"),
        (
            with_queue({"tc": "prio\nqdisc add dev eth0 parent 2:1 pfifo"}),
            f"queue.tc: line 2 must begin {WITHOUT_DEV}",
        ),
        (with_queue({"tc": ""}), "queue.tc: must be words of tc"),
        (with_queue({}), "queue.tc: required"),
        (
            with_queue(None, aqm="red", queue_packets=5),
            "aqm: red with a limit of 5 packets: tc says tc_red_eval",
        ),
        (
            with_queue(None, aqm="cake", queue_limit={"schedule": [[0, 50]]}),
            "queue_limit: must change a limit of packets, and cake has",
        ),
        (
            with_queue(None, aqm="sfq", queue_limit={"schedule": [[0, 20]]}),
            "queue_limit: must change a limit of packets, and Linux can",
        ),
        (
            with_queue({"tc": "red limit 60000 avpkt 1000"}, queue_limit={"schedule": [[0, 50]]}),
            "queue_limit: must change a limit of packets, and tc's wor",
        ),
        (
            with_queue({"tc": TWO_LIMITS}, queue_limit={"schedule": [[0, 50]]}),
            "queue_limit: must change a limit of packets, and tc's wor",
        ),
        (with_queue({"tc": "sfq"}, aqm="codel"), "queue: a link has one queue"),
        (with_queue({"tc": "sfq"}, ecn=True), "ecn: the words of queue.tc decide"),
        (
            with_queue({"tc": "sfq"}, mark_above_ms=3),
            "mark_above_ms: codel and fq_codel have a threshold, got qu",
        ),
    ],
)
def test_a_mistake_in_tcs_words(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    """A qdisc that the kernel lacks, or tc cannot read, is refused before a run, with field."""
    found = problems_of(write_experiment(tmp_path, fields))
    named = (problem, f"profile.directions.forward.{problem}")
    assert any(each.startswith(named) for each in found), found


def test_no_theory_covers_tcs_words(tmp_path: Path) -> None:
    """A prediction of a link with a queue in tc's words is refused."""
    fields = with_queue({"tc": "sfq"}) | {"stack": {"preset": "papers"}, "theory": "policing"}
    predicted = [{"metric": "policed.forward", "value": "theory", "tolerance": 0, "why": "w"}]
    found = problems_of(write_experiment(tmp_path, fields | {"predictions": predicted}))
    assert any("no theory covers a queue in tc's own words" in each for each in found), found


# A managed queue that the guest's kernel does not have yet.


@pytest.mark.parametrize("kernel", [None, "guest", "wide", "6.1", "newest"])
def test_dualpi2_takes_the_newest_kernel(tmp_path: Path, kernel: str | None) -> None:
    """dualpi2 is refused on the guest's own kernel, with a hint at the kernel that has it."""
    profile = yaml.safe_load((PROFILES / "access-8mbit.yml").read_text())
    profile["directions"]["forward"]["aqm"] = "dualpi2"
    (tmp_path / "dual.yml").write_text(yaml.safe_dump(profile))
    found = problems_of(write_experiment(tmp_path, {**SMALL, "profile": "dual", "kernel": kernel}))
    if kernel == "newest":
        assert found == []
        return
    assert found[0].endswith(
        "directions.forward.aqm: dualpi2 came with Linux 6.17: an experiment with "
        f"`kernel: newest` may have it, got kernel {kernel or 'guest'}"
    )
