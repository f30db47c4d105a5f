"""Limits on times: only whole nanoseconds decide, whatever a fraction is in binary."""

import copy
import math
import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from support.running import SMALL

from twoway.description.experiment import Experiment, Profile
from twoway.description.placement import setting_problems
from twoway.description.reading import validate_document
from twoway.description.rules import experiment_problems, profile_problems
from twoway.description.traffic.film import Film
from twoway.errors import SpecError
from twoway.links.timetable import Second

# A field with such an end is a time; a number per second is none.
_TIME = re.compile(r"(?<!per)_(s|ms|us)$")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
_QUEUE = {"queue_packets": 50, "delay_ms": 10}
_LINK = {**_QUEUE, "rate_mbit": 8}
_ENDS = {"from": "h1", "to": "h2"}
_FLOW = {**_ENDS, "congestion": "cubic", "start_s": 0, "stop_s": 0}
# Stands for a time that must be a whole number.
_WHOLE = -1
# Rates with which five seconds are as much as the product accepts.
EXPERIMENT: dict[str, Any] = {
    **SMALL,
    "stack": {"rto_min_ms": _WHOLE},
    "flows": [
        {**_FLOW, "name": "plain", "socket": {"user_timeout_ms": _WHOLE}},
        {**_FLOW, "name": "film", "film": {"mean_mbit": 1, "frames_per_s": 3000}},
        {**_FLOW, "name": "visits", "transfers": {"per_s": 100, "mean_bytes": 1000}},
    ],
    "datagrams": [
        {
            **_ENDS,
            "name": "voice",
            "rate_mbit": 576,
            "packet_bytes": 36,
            "start_s": 0,
            "stop_s": 0,
            "on_off": {"mean_on_s": 0, "mean_off_s": 0},
        }
    ],
    "programs": [{"name": "web", "host": "h1", "command": ["true"], "start_s": 0, "stop_s": 0}],
    "observe": {"tcp_info_ms": 0},
    "interventions": [
        {"drop": {"flow": "plain", "from_s": 0, "until_s": 0}},
        {"set": {"host": "h1", "sysctls": {}, "at_s": 0}},
        {"delay": {"flow": "plain", "packet": 1, "by_ms": 0}},
        {"link": {"direction": "forward", "delay_ms": 0, "at_s": 0}},
    ],
    "start_jitter_ms": 0,
    "duration_s": 0,
    "warm_up_s": 0,
}
_DTM = {"change_s": 0, "signalling_ms": 0}
PROFILE: dict[str, Any] = {
    "schema": 1,
    "title": "every field with a time",
    "half_duplex": {"gap_us": 0},
    "directions": {
        "plain": {**_LINK, "delay_ms": 0, "mark_above_ms": 0, "impairments": {"jitter_ms": 0}},
        "lossy": {**_LINK, "loss": {"schedule": [[0, 0], [0, 100], [0, 0]], "repeat_s": 0}},
        "stepped": {**_QUEUE, "rate": {"schedule": [[0, 8], [0, 1], [0, 8]], "repeat_s": 0}},
        "granted": {**_QUEUE, "rate": {"grants": {"every_ms": 0, "bytes": 1500}}},
        "moved": {
            "rate_mbit": 8,
            "queue_packets": 50,
            "delay": {"schedule": [[0, 10], [0, 20]], "repeat_s": 0},
        },
        "followed": {**_QUEUE, "dtm": {**_DTM, "rate": {"sample_ms": 0, "hold_on_loss_ms": 0}}},
        "backlogged": {**_QUEUE, "dtm": {**_DTM, "buffer": {"rise_ms": 0, "fall_ms": 0}}},
        "traced": {**_QUEUE, "dtm": {**_DTM, "trace": {"steps": [{"after_ms": 0, "slots": 4}]}}},
    },
}


def _fields(annotation: Any, name: str = "") -> Iterator[str]:
    """Find the names of fields with a time in a model and in all models below it."""
    if annotation == Second:
        yield name
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for each, field in annotation.model_fields.items():
            if _TIME.search(each):
                yield each
            yield from _fields(field.annotation, each)
    elif get_origin(annotation) is Annotated:
        yield from _fields(get_args(annotation)[0], name)
    else:
        for part in get_args(annotation):
            yield from _fields(part, name)


def _times(document: Any, name: str = "") -> Iterator[tuple[Any, Any, str]]:
    """List the places of times in a document: container, key and unit."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        field = key if isinstance(key, str) else name
        if isinstance(value, dict) or (isinstance(value, list) and field != "command"):
            yield from _times(value, field)
        elif found := _TIME.search(field):
            yield document, key, found[1]
        elif field == "schedule" and key == 0:
            yield document, key, "s"


@pytest.mark.parametrize(("model", "document"), [(Experiment, EXPERIMENT), (Profile, PROFILE)])
def test_no_field_with_a_time_is_left_out(model: type[BaseModel], document: Any) -> None:
    """The documents of the next test have every field with a time that the models have."""
    here = {key if isinstance(key, str) else "schedule" for _, key, _ in _times(document)}
    assert {*_fields(model)} == here


def _answer(document: dict[str, Any]) -> list[str]:
    """Check an experiment's file or a profile's, and return the sentences without values."""
    try:
        if "directions" in document:
            profile = validate_document("", document, Profile)
            experiment = validate_document("", {**SMALL, "duration_s": 0.4}, Experiment)
            found = profile_problems(profile) + setting_problems(profile, experiment)
        else:
            found = experiment_problems(validate_document("", document, Experiment), ())
    except SpecError as error:
        found = list(error.problems)
    return [re.sub(r"got .*", "", each) for each in found]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from([EXPERIMENT, PROFILE]),
    st.integers(3, 90_000),
    st.lists(st.sampled_from([0, 1, 2, 3, 5000, 5001]), min_size=40, max_size=40),
    st.randoms(use_true_random=False),
)
def test_only_whole_nanoseconds_decide(
    given_document: dict[str, Any], first_ms: int, later_ms: list[int], chance: Any
) -> None:
    """A time and its neighbours in binary, which are the same ns, get the same answer.

    All times are whole ms, a few ms or five seconds apart, so that they often equal a limit.
    """
    document = copy.deepcopy(given_document)
    places = [*_times(document)]
    for (container, key, unit), later in zip(places, later_ms, strict=False):
        # Most times in ms have limits of a second.
        ms = first_ms + later if unit == "s" else first_ms % 500 + later % 5000
        container[key] = ms if container[key] == _WHOLE else round(ms / 1e3 / _SECONDS[unit], 3)
    answer = _answer(document)
    for container, key, _ in chance.sample(places, 8):
        exact = container[key]
        if isinstance(exact, int):
            continue
        for neighbour in (math.nextafter(exact, math.inf), math.nextafter(exact, 0)):
            container[key] = neighbour
            assert _answer(document) == answer, (key, exact)
        container[key] = exact


def _loss_of_one_ms(start_ms: int) -> list[str]:
    schedule = [[0, 0], [start_ms / 1e3, 100], [(start_ms + 1) / 1e3, 0]]
    link = {**_LINK, "loss": {"schedule": schedule}}
    return _answer({"schema": 1, "title": "x", "directions": {"only": link}})


def test_a_share_may_last_one_ms_from_any_ms_on() -> None:
    """A share of exactly 1 ms is accepted at every whole ms; one of 0.999 ms is refused."""
    assert [ms for ms in range(1, 5000) if _loss_of_one_ms(ms)] == []
    link = {**_LINK, "loss": {"schedule": [[0, 0], [2.001, 100], [2.002 - 1e-6, 0]]}}
    (problem,) = _answer({"schema": 1, "title": "x", "directions": {"only": link}})
    assert problem == "directions.only.loss.schedule: each value must last at least 1 ms, "


def test_a_film_has_a_frame_for_each_whole_interval() -> None:
    """A film from 0.1 s to 0.3 s with ten frames a second has two frames, as 0.2 s has."""
    flow = {**_FLOW, "name": "film", "film": {"mean_mbit": 1, "frames_per_s": 10}}
    fields = {**SMALL, "duration_s": 1, "flows": [{**flow, "start_s": 0.1, "stop_s": 0.3}]}
    experiment = validate_document("", fields, Experiment)
    film, span = Film(mean_mbit=1, frames_per_s=10), experiment.span(experiment.flows[0])
    assert len(film.frame_bytes(span)) == 2
