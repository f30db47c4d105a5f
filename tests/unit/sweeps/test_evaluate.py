"""`twoway evaluate` answers a request that no run can follow with a sentence."""

import json
import sys
import time
from typing import Any

import pytest
from support.running import ran

from twoway.backends.uml import Uml
from twoway.sweeps.evaluate import Evaluation, Job, TimeBudgetError, _answered, _at_most, point_for

ROW = "quick/alone@line=20mbit-100ms,buffer=1bdp"
REQUESTS: dict[str, Any] = {
    "must be a JSON object, got list": [],
    "line 1: environment: required": {"control": "bbr"},
    "line 1: colour: unknown field": {"environment": ROW, "colour": "red"},
    "line 1: seed: must be greater than or equal to 1, got 0": {"environment": ROW, "seed": 0},
    "nonsense: no such experiment": {"environment": "nonsense"},
    f"{'x' * 80}: File name too long": {"environment": "x" * 300},
    "3 points; one has a value for each of buffer": {"environment": "quick/alone"},
    "bbrr: no such congestion control": {"environment": ROW, "control": "bbrr"},
    "must register one congestion control": {"environment": ROW, "control": "int x;\n"},
    "profile.directions.forward.rat_mbit: unknown field": {
        "environment": ROW,
        "set": {"profile.forward.rat_mbit": 1},
    },
    'did you mean "goodput.flow"?': {"environment": ROW, "metrics": ["goodput.flwo"]},
    "metrics: x: given twice": {"environment": ROW, "metrics": ["x=1", "x=2"]},
    "expected a closing bracket": {"environment": ROW, "metrics": ["x=sum(goodput.*"]},
    "line 1: environment: title: required": {"environment": {"schema": 1}},
    "line 1: not JSON: a key twice: seed": '{"id": "mine", "seed": 1, "seed": 2}',
}


@pytest.mark.parametrize("words", REQUESTS)
def test_a_wrong_request_gets_a_sentence(words: str) -> None:
    """A request that names nothing sound is answered, with its id, before anything runs."""
    asked = REQUESTS[words]
    if isinstance(asked, dict):
        asked = {"id": "mine", "control": "reno", **asked}
    uml = Uml(guest=None)  # type: ignore[arg-type]
    line = asked if isinstance(asked, str) else json.dumps(asked)
    answer = _answered(Job("line 1", line, uml, 60))
    assert answer["error"]["kind"] == "request"
    assert words in answer["error"]["message"]
    assert answer["id"] == (None if asked == [] else "mine")


def test_a_closed_input_is_refused() -> None:
    """A command without stdin says so, with exit code 2."""
    command = f"{sys.executable} -m twoway.cli evaluate <&-"
    done = ran(["sh", "-c", command])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("twoway: stdin is closed; requests come from it")


def test_a_point_with_statements_runs_on_another_stack() -> None:
    """A request may set fields of an experiment whose file has findings, as the file runs it."""
    point, job = "pendulum@up_mbit=8,control=reno", Job("line 1", "", Uml(guest=None), 60)  # type: ignore[arg-type]
    made = point_for(job, Evaluation(environment=point, set={"stack.preset": "linux"}, seed=None))
    assert made.experiment.stack.is_linux
    assert made.experiment.seeds is None
    assert not made.findings


def test_the_time_is_over_even_if_code_in_c_swallows_it() -> None:
    """An end that comes in a destructor, or becomes another error, ends the run as any other."""

    class Slow:
        def __del__(self) -> None:
            time.sleep(0.1)

    def work(error: type[Exception] | None) -> None:
        with _at_most(0.01):
            Slow()
            if error:
                raise error
            time.sleep(5)

    for error in (TimeoutError, None):
        with pytest.raises(TimeBudgetError, match=r"not finished after 0\.01 s"):
            work(error)
