"""Each field of a link alone in a profile: tc accepts it, and its effect on any traffic is exact.

The cases cover the models' fields: a new field, or a new word for one, needs a case.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel
from support.running import measure_points, write_experiment
from support.today import DAY, DAYS, WEEK

from twoway.description.experiment import Profile
from twoway.description.rules import profile_problems
from twoway.links.direction import elements

pytestmark = pytest.mark.usefixtures("guest")

BARE = {"rate_mbit": 8, "delay_ms": 8, "queue_packets": 20}
FLOWS = [
    {"name": "left", "from": "h1", "to": "h2", "congestion": "cubic"},
    {"name": "right", "from": "h2", "to": "h1", "congestion": "cubic"},
]
# Fields that are added to BARE, or replace its own, in the profile's first direction; None removes
# one.
LINKS: dict[str, dict[str, Any]] = {
    "overhead": {"overhead_bytes": -14},
    "cells": {"cell_bytes": 48},
    "cell-headers": {"cell_bytes": 48, "cell_overhead_bytes": 5},
    "policer": {"policer": {"rate_mbit": 4, "burst_bytes": 15140}},
    "mtu": {"mtu_bytes": {"bytes": 1280, "icmp": True}},
    "black-hole": {"mtu_bytes": {"bytes": 1280, "icmp": False}},
    "losses": {"loss": {"percent": 1}},
    "one-in-ten": {"loss": {"every": 10}},
    "losses-by-time": {"loss": {"schedule": [[0, 1], [0.4, 5]], "repeat_s": 0.7}},
    "bursts": {"loss": {"percent": 1, "burst_packets": 3}},
    "jitter": {"impairments": {"jitter_ms": 4}},
    "overtaking": {"impairments": {"jitter_ms": 4, "jitter_reorders": True}},
    "reordering": {"impairments": {"reorder_percent": 1}},
    "copies": {"impairments": {"duplicate_percent": 1}},
    "limits": {"queue_limit": {"schedule": [[0, 20], [0.4, 5]], "repeat_s": 0.7}},
    "delays": {"delay_ms": None, "delay": {"schedule": [[0, 8], [0.4, 20]], "repeat_s": 0.7}},
    **{f"acks-{word}": {"ack_queue": word} for word in ("shared", "own", "priority")},
    **{
        word: {"aqm": word}
        for word in (
            *("drop-tail", "cake", "cake-flowblind", "codel", "pie", "sfq", "fq", "fq_codel"),
            *("fq_pie", "red", "choke"),
        )
    },
    **{
        f"{word}-marks": {"aqm": word, "ecn": True}
        for word in ("codel", "pie", "fq_codel", "fq_pie", "red", "choke")
    },
    **{
        f"{word}-threshold": {"aqm": word, "ecn": True, "mark_above_ms": 3}
        for word in ("codel", "fq_codel")
    },
}
LINKS |= {
    name: {"queue": {"tc": words}}
    for name, words in {
        "any-qdisc": "sfq limit 30",
        "holds": "tbf rate 3mbit burst 3000 limit 30000",
        "tree": "htb default 2\nclass add parent 2: classid 2:1 htb rate 2mbit ceil 8mbit\n"
        "class add parent 2: classid 2:2 htb rate 1mbit ceil 2mbit\n"
        "filter add parent 2: protocol ip u32 match ip dsfield 0xb8 0xfc flowid 2:1",
    }.items()
}
LINKS["table"] = {**dict.fromkeys(BARE), "table": "link.csv"}
LINKS |= {
    name: {"rate_mbit": None, "rate": rate}
    for name, rate in {
        "rates": {"schedule": [[0, 8], [0.4, 2], [0.5, 0], [0.6, 8]], "repeat_s": 0.7},
        "trace": {"mahimahi": "made.mahimahi"},
        "opportunities": {"opportunities": [[1, 1], [5, 3]]},
        "grants": {"grants": {"every_ms": 4, "bytes": 4000}},
    }.items()
}
_FOLLOWS: dict[str, Any] = {"sample_ms": 10, "shift_up": 1, "shift_down": 2, "margin_slots": 1}
_FOLLOWS |= {
    "corridor_slots": 2,
    "hold_on_loss_ms": 5,
    "hold": "estimate",
    "estimate_mbit": 4,
    "pace": "apart",
}
_LEVELS = [{"slots": 8, "up_bytes": 9000}, {"slots": 16, "down_bytes": 3000}]
LINKS |= {
    name: {"rate_mbit": None, "dtm": dtm}
    for name, dtm in {
        "slots": {"slots": 16},
        "frames": {"slots": 16, "framed": True},
        "pool": {"slots": 8, "pool": "bus", "owned_slots": 2},
        **{
            f"follows-{rounding}-{count}": {
                "slots": 16,
                "min_slots": 8,
                "max_slots": 24,
                "change_s": 0.1,
                "signalling_ms": 1,
                "rate": {**_FOLLOWS, "rounding": rounding, "count": count},
            }
            for rounding, count in (
                ("up", "arrivals"),
                ("nearest", "accepted"),
                ("down", "accepted"),
            )
        },
        "small-slots": {
            "slots": 8000,
            "slot_kbit": 1,
            "change_s": 0.1,
            "rate": {
                **_FOLLOWS,
                "margin_slots": 512,
                "corridor_slots": 1024,
                "grain_kbit": 512,
                "pace": "grid",
                "hold": "slots",
            },
        },
        "buffer": {
            "change_s": 0.1,
            "buffer": {
                "high_bytes": 9000,
                "low_bytes": 3000,
                "rise_ms": 5,
                "fall_ms": 20,
                "step_slots": 2,
            },
        },
        "levels": {"change_s": 0.1, "hysteresis": {"levels": _LEVELS}},
        "steps": {"trace": {"steps": [{"after_ms": 300, "slots": 10}]}},
    }.items()
}
# Elements whose pairs are all tried, with queues of each make.
PAIRED = (
    *("policer", "mtu", "black-hole", "fq_codel", "cake", "codel", "pie", "red", "acks-own"),
    *("any-qdisc", "holds", "limits", "rates", "trace", "grants"),
    *("slots", "follows-up-arrivals", "buffer", "half-duplex", "atm", "delays", "losses"),
    *("losses-by-time", "one-in-ten", "jitter", "overtaking", "copies", "reordering"),
)
LINKS["atm"] = {"cell_bytes": 48, "cell_overhead_bytes": 5}
SHARED: dict[str, dict[str, Any]] = {
    "pool": {"pools": {"bus": 16}},
    "half-duplex": {"half_duplex": {"gap_us": 100, "turn_packets": 4}},
}
# Fields that need another kernel; tests/unit/links/test_queue.py and
# experiments/lab/dualpi2.yml have them.
ELSEWHERE = {"directions.aqm=dualpi2"}


def profile_of(*names: str) -> dict[str, Any]:
    """Return the document of a profile with the fields of some cases."""
    shared: dict[str, Any] = {}
    forward = BARE
    for name in names:
        shared, forward = shared | SHARED.get(name, {}), forward | LINKS.get(name, {})
    given = {field: value for field, value in forward.items() if value is not None}
    directions = {"forward": given, "reverse": BARE}
    return {"schema": 1, "title": " and ".join(names), **shared, "directions": directions}


def profiles() -> dict[str, dict[str, Any]]:
    """Return the document of each case's profile."""
    return {name: profile_of(name) for name in (*LINKS, *SHARED)}


def pairs() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the document of each pair's profile; two values of one field are no pair."""
    found = {}
    for first, second in itertools.combinations(PAIRED, 2):
        one, other = (LINKS.get(name, {}) for name in (first, second))
        if all(one[field] == other[field] for field in one.keys() & other):
            found[first, second] = profile_of(first, second)
    return found


def fields(kind: Any, at: str = "") -> Iterator[str]:
    """List the paths of all fields of a type, with each allowed word of a field of words."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            yield from fields(field.annotation, f"{at}.{field.alias or name}".lstrip("."))
    elif get_origin(kind) is Literal:
        yield from (f"{at}={word}" for word in get_args(kind))
    elif inner := get_args(kind):
        for each in inner:
            yield from fields(each, at)
    else:
        yield at


def given(value: Any, at: str = "") -> Iterator[str]:
    """List the paths in a document as `fields` does, each without and with its value."""
    yield from (at, f"{at}={value}")
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from given(each, f"{at}.{name}".lstrip("."))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from given(each, at)


def test_each_field_of_a_link_has_a_case() -> None:
    """Each field of a profile, and each of its words, has a case; each element is in pairs."""
    assert elements().keys() <= {field for name in PAIRED for field in LINKS.get(name, {})}
    # Names of directions and pools are not fields.
    unnamed = [
        profile | {kind: [*profile.get(kind, {}).values()] for kind in ("directions", "pools")}
        for profile in profiles().values()
    ]
    found = {path for profile in unnamed for path in given(profile)}
    assert set(fields(Profile)) - found == ELSEWHERE


def shell(name: str, host: str, script: str, **fields: Any) -> dict[str, Any]:
    """Describe a program that is a line of shell."""
    return {"name": name, "host": host, "command": ["sh", "-c", script], **fields}


# The fields of an experiment for each kind of traffic. Datagrams of 4000 bytes are fragments.
TRAFFIC: dict[str, dict[str, Any]] = {
    "flows": {"flows": FLOWS},
    "transfers": {
        "flows": [
            {**each, "transfer": {"bytes": 150_000}, "connect": "at-start", "start_s": at_s}
            for at_s, each in enumerate(FLOWS)
        ]
    },
    "datagrams": {
        "datagrams": [
            {"name": "call", "from": "h1", "to": "h2", "packet_bytes": 200, "rate_mbit": 0.1},
            {"name": "film", "from": "h1", "to": "h2", "rate_mbit": 9, "arrivals": "poisson"},
            {"name": "back", "from": "h2", "to": "h1", "rate_mbit": 3},
        ]
    },
    "tcp-program": {
        "programs": [
            shell("server", "h2", "exec socat -u TCP-LISTEN:80,fork SYSTEM:cat", exit_code=None),
            shell(
                "client",
                "h1",
                "head -c 300000 /dev/zero | socat -u - TCP:h2:80; exec sleep 9",
                start_s=0.1,
                exit_code=None,
            ),
        ]
    },
    "udp-program": {
        "programs": [
            shell("server", "h2", "exec socat -u UDP-RECV:9 -", exit_code=None),
            shell(
                "client", "h1", "head -c 80000 /dev/zero | socat -b 4000 -u - UDP:h2:9", start_s=0.1
            ),
        ]
    },
    "ping": {
        "programs": [shell("ping", "h1", "exec ping -i 0.03 h2", start_s=0.1, exit_code=None)]
    },
}


# The date chooses a kind, and a seventh of the links, for `make test`; `make check` has all.
TODAY = [*TRAFFIC][(DAYS * WEEK + DAY) % len(TRAFFIC)]
KINDS = [(TODAY, DAYS), *(pytest.param(kind, 1, marks=pytest.mark.long) for kind in TRAFFIC)]


def run_links(
    tmp_path: Path, links: Mapping[str, Mapping[str, Any]], traffic: str
) -> dict[str, Any]:
    """Run an experiment with a kind of traffic on each of some links; return what was measured."""
    for name, profile in links.items():
        (tmp_path / f"link-{name}.yml").write_text(yaml.safe_dump(profile))
    (tmp_path / "made.mahimahi").write_text("1\n1\n3\n7\n")
    table = (
        "time_s,rate_mbit,delay_ms,loss_percent,queue_packets\n0,8,8,1,20\n0.4,2,9.000001,5,10\n"
    )
    (tmp_path / "link.csv").write_text(table)
    document = {
        "schema": 1,
        "title": "Fields of a link",
        "summary": "For tests.",
        "topology": {"name": "two_node"},
        "profile": f"link-{next(iter(links))}",
        "stack": {"ecn": True},
        **TRAFFIC[traffic],
        "duration_s": 1.5,
        "warm_up_s": 0.5,
        "matrix": {"link": {"set": ["profile"], "to": {n: f"link-{n}" for n in links}}},
    }
    found = measure_points(write_experiment(tmp_path, document), tmp_path / "results")
    assert sorted(found) == sorted(f"small@link={name}" for name in links)
    return found


@pytest.mark.parametrize(("traffic", "every"), KINDS)
def test_each_field_of_a_link_runs_alone(tmp_path: Path, traffic: str, every: int) -> None:
    """With one field beside rate, delay and limit every check holds, whoever sends the packets."""
    links = dict([*profiles().items()][DAY % every :: every])
    if traffic == "udp-program":  # whose fragments a router cuts again, which no capture follows
        links.pop("mtu", None)
    found = run_links(tmp_path, links, traffic)
    fidelity = [row for document in found.values() for row in document["fidelity"]]
    assert [row for row in fidelity if row["verdict"] != "pass"] == []


def is_refused(profile: Mapping[str, Any]) -> bool:
    """Tell whether a profile may not have its elements."""
    return bool(profile_problems(Profile.model_validate(profile)))


# The date chooses a seventh of the pairs for `make test`; `make check` has all.
@pytest.mark.parametrize(
    "day", [pytest.param(day, marks=[pytest.mark.long] * (day != DAY)) for day in range(DAYS)]
)
def test_each_pair_of_elements_runs_bare(tmp_path: Path, day: int) -> None:
    """With any two elements beside rate, delay and limit every check holds."""
    allowed = [each for each in pairs().values() if not is_refused(each)][day::DAYS]
    links = {f"pair-{number}": each for number, each in enumerate(allowed)}
    found = run_links(tmp_path, links, "flows")
    odd = [
        (each["title"], row)
        for name, each in links.items()
        for row in found[f"small@link={name}"]["fidelity"]
        if row["verdict"] != "pass"
    ]
    assert odd == []
