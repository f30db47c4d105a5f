"""The tables of tdc/ in the form of the kernel's tdc."""

import json
import subprocess
import sys

import pytest
import tdc_table
from tdc_table import expand, read_table

RUN = "$TC qdisc add dev $DUMMY root handle 1: dtm max 8"
MADE = ["$IP link add dev $DUMMY type dummy", "$IP link set dev $DUMMY up"]


def test_a_row_becomes_a_case_of_tdc() -> None:
    """A row's case begins with a device and expects success, the text in tc's output, once."""
    row = {"case": "d7ff The most slots", "kind": "change", "run": RUN, "shows": "max 8 "}
    assert expand("dtm", row) == {
        "id": "d7ff",
        "name": "The most slots",
        "category": ["qdisc", "dtm", "change"],
        "setup": MADE,
        "cmdUnderTest": RUN,
        "expExitCode": "0",
        "verifyCmd": "$TC qdisc show dev $DUMMY",
        "matchPattern": "max 8 ",
        "matchCount": "1",
        "teardown": ["$IP link del dev $DUMMY"],
    }


@pytest.mark.parametrize(("by", "code"), [("Error", "2"), ("dtm", "1")])
def test_a_refusal_keeps_the_error(by: str, code: str) -> None:
    """A refused command writes its error to a file, exits with 2 if the kernel refuses, else 1."""
    row = {"case": "d7ff Too many slots", "run": RUN, "refused": f"^{by}: no$"}
    case = expand("dtm", row)
    assert case["category"] == ["qdisc", "dtm", "refusal"]
    assert (case["cmdUnderTest"], case["expExitCode"]) == (f"{RUN} 2> said", code)
    assert (case["verifyCmd"], case["matchPattern"]) == ("cat said", f"^{by}: no$")


def test_short_rows() -> None:
    """A list is a row; `pool`, `add`, `change` and `options` stand for commands and JSON."""
    made, changed = (
        f"$TC qdisc {verb} dev $DUMMY root handle 1: dtm" for verb in ("add", "change")
    )
    no = {
        "case": "d7ff No",
        "before": [made],
        "run": f"{changed} max 8",
        "refused": r"^Error: no\.$",
    }
    assert expand("dtm", {"d7ff No": ["", "max 8", "no"]}) == expand("dtm", no)
    short = {"case": "d7ff A pool", "pool": 8, "add": "pool bus", "options": {"max": 8}}
    case = expand("dtm", {**short, "values": {"slots": 8}})
    assert expand("dtm", {"d7ff A pool": [8, "pool bus", {"max": 8}, {"slots": 8}]}) == case
    assert case["setup"] == [*MADE, "$DTM pool add bus slots 8"]
    assert case["cmdUnderTest"] == f"{made} pool bus"
    assert case["matchJSON"] == [{"kind": "dtm", "handle": "1:", "options": {"max": 8}, "slots": 8}]
    assert case["teardown"] == ["$IP link del dev $DUMMY", "$DTM pool del bus"]


def test_rows_with_other_qdiscs() -> None:
    """`classes` are qdiscs below a prio, the last is the case; `others` are on devices."""
    row = {"case": "d7ff Two", "classes": ["max 8", "max 9"], "values": {"slots": 9}}
    case = expand("dtm", row)
    prio, first = case["setup"][2:]
    assert prio == "$TC qdisc add dev $DUMMY root handle 9: prio bands 3"
    assert first == "$TC qdisc add dev $DUMMY parent 9:1 handle 11: dtm max 8"
    assert case["cmdUnderTest"] == "$TC qdisc add dev $DUMMY parent 9:2 handle 12: dtm max 9"
    assert case["verifyCmd"].endswith(" handle 12:")
    assert case["matchJSON"] == [{"kind": "dtm", "handle": "12:", "slots": 9}]
    case = expand("medium", {"case": "7aff Two", "others": ["d7"], "add": "number 7", "shows": "7"})
    made = "$TC qdisc add dev d7 root handle 1: medium number 7 rate 8Mbit gap 100us turn 4"
    assert case["setup"] == [*MADE, *(words.replace("$DUMMY", "d7") for words in MADE), made]
    assert case["teardown"] == ["$IP link del dev d7", "$IP link del dev $DUMMY"]


def test_a_row_may_set_any_field_of_tdc() -> None:
    """Commands of `before` follow the device, and a row's field of tdc replaces the usual one."""
    own = {"teardown": ["$DTM pool del bus"], "verifyCmd": "$DTM pool show -j"}
    row = {"case": "d7ff A pool", "before": ["$DTM pool add bus"], "run": RUN, "json": [{}], **own}
    case = expand("dtm", row)
    assert case["setup"] == [*MADE, "$DTM pool add bus"]
    assert case["matchJSON"] == [{}]
    assert {name: case[name] for name in own} == own


@pytest.mark.parametrize("qdisc", ["dtm", "medium", "timetable"])
def test_a_case_has_the_fields_of_tdc_alone(qdisc: str) -> None:
    """Each case of a table has tdc's fields, no other, and an id and a name of its own."""
    cases = read_table(qdisc)
    patterns = expand(qdisc, {"case": "", "run": "", "shows": ""}).keys()
    values = expand(qdisc, {"case": "", "run": "", "json": []}).keys()
    assert [case for case in cases if case.keys() not in (patterns, values)] == []
    for field in ("id", "name"):
        assert len({case[field] for case in cases}) == len(cases)


def test_the_program_prints_a_table_as_tdc_reads_it() -> None:
    """`python tdc_table.py medium` prints the cases of sch_medium as JSON."""
    argv = [sys.executable, tdc_table.__file__, "medium"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == read_table("medium")
