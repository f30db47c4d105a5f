"""The answer of `twoway why` in words, and the trace that proves it is of the same run."""

import argparse
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from zstandard import compress

from twoway.commands.report import repeatable_run
from twoway.errors import RunError
from twoway.sweeps.events import Event
from twoway.sweeps.trace import _Table, equal_captures
from twoway.sweeps.why import Answer, Pair, _neighbours

SINGLE = (
    "At 12.305 s the queue forward dropped segment 8121 of download. Without that drop "
    "goodput.download is 6.1 instead of 4.3 Mbit/s; no other event that was tried is worth more "
    "than 0.3."
)
BURST = (
    "From 12.305 to 12.400 s the queue forward dropped 2 packets of download. Without these "
    "goodput.download is 5.3 instead of 4.3 Mbit/s."
)
ELSEWHERE = (
    "3 losses by a manager that cannot mark or whose queue is full, a policer, a channel, or a "
    "link that loses by count cannot be averted: not tried."
)
INTERACT = (
    "The 2 drops of 12.305 to 12.400 s interact: together they are worth 1, and one by one 0.4 "
    "in all."
)
UNKNOWN = "Without 1 of the events goodput.download is not known: their rows say why."
PAIR = (
    "The events of 1.000 s and of 2.000 s interact: together they are worth 0.9, and one by one "
    "0.4 in all."
)


def _event(burst: int, place: int, effect: float | None, **fields: Any) -> Event:
    packets = 1 if place else 2
    return Event(
        time_s=12.305,
        last_s=12.305 if place else 12.4,
        queue="forward",
        packets=packets,
        flow="download",
        segment=8121 if place else None,
        burst=burst,
        place=place,
        interventions=(),
        value=None if effect is None else 4.3 + effect,
        effect=effect,
        **fields,
    )


def _answer(*events: Event, left_out: int = 0, elsewhere: int = 0, pairs: Any = ()) -> Answer:
    return Answer("run", "goodput.download", "Mbit/s", 4.3, events, left_out, elsewhere, pairs)


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        (
            _answer(_event(0, 1, 1.8), _event(1, 1, -0.3), left_out=2, elsewhere=3),
            [SINGLE, "2 more events were not tried.", ELSEWHERE],
        ),
        (_answer(_event(0, 0, 1), _event(0, 1, 0.3), _event(0, 2, 0.1)), [BURST, INTERACT]),
        (
            _answer(_event(0, 0, 1), _event(0, 1, 0.3), _event(0, 2, None, problem="no")),
            [BURST, UNKNOWN],
        ),
        (_answer(_event(0, 1, 1.8), _event(1, 1, -0.3), elsewhere=3), [SINGLE, ELSEWHERE]),
        (
            _answer(_event(0, 1, 0), pairs=(Pair(("1.000 s", "2.000 s"), 0.9, 0.4),)),
            ["No single event changes goodput.download, 4.3 Mbit/s.", PAIR],
        ),
        (_answer(_event(0, 1, 0)), ["No single event changes goodput.download, 4.3 Mbit/s."]),
        (
            _answer(_event(0, 1, 0), left_out=1),
            [
                "No single event that was tried changes goodput.download, 4.3 Mbit/s.",
                "1 more events were not tried.",
            ],
        ),
        (_answer(), ["No event of this run can be averted."]),
    ],
)
def test_the_largest_effect_comes_in_words(answer: Answer, sentences: list[str]) -> None:
    """The largest effect, the largest of the others, interactions, and what was not tried."""
    assert answer.sentences == sentences


def test_pairs_are_neighbours_and_the_closest_come_first() -> None:
    """A burst stands for its losses; the two with the shortest time between them are first."""

    def at(time_s: float, burst: int, place: int) -> Event:
        return replace(_event(burst, place, 0.1), time_s=time_s, last_s=time_s + 0.1)

    early, late, later = at(1, 0, 1), at(5, 1, 0), at(6, 2, 1)
    events = [late, at(5, 1, 1), early, later, replace(at(5.5, 3, 1), effect=None)]
    assert _neighbours(events) == [(late, later), (early, late)]


def test_a_run_of_a_suites_row_is_asked_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """The id on a run's page and on a card, `quick-alone@...`, is that of the row quick/alone."""
    row = "quick-alone@control=bbr,line=20mbit-100ms,buffer=1bdp"
    manifest = SimpleNamespace(experiment=SimpleNamespace(id=row))
    monkeypatch.setattr("twoway.runs.finding.find_run", lambda *_: Path())
    monkeypatch.setattr("twoway.manifest.read_manifest", lambda _: manifest)
    monkeypatch.setattr("twoway.backends.registry.find_backend", lambda *_: None)
    monkeypatch.setattr("twoway.backends.registry.backend_for", lambda *_: None)
    _, point, _ = repeatable_run(argparse.Namespace(results=Path(), kernel=None), row)
    assert point.id == row


# A trace proves that the run with the probe is the run.


def test_a_probe_that_changes_a_byte_has_no_answer(tmp_path: Path) -> None:
    """Equal captures have their SHA-256; one other byte in one of them is an error."""
    runs = tmp_path / "one", tmp_path / "other"
    for run in runs:
        (run / "pcap").mkdir(parents=True)
        (run / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"packets"))
    digest = sha256(b"packets").hexdigest()
    assert equal_captures(*runs, ["h1-eth0"]) == {"h1-eth0": digest}
    (runs[1] / "pcap/h1-eth0.pcap.zst").write_bytes(compress(b"pockets"))
    with pytest.raises(RunError, match=r"h1-eth0: the run with the probe has other packets"):
        equal_captures(*runs, ["h1-eth0"])


def test_a_message_on_no_interface_is_no_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel also frees what no network carries, such as a message of netlink."""
    table = object.__new__(_Table)
    columns = {"interface": [-1, 0, -1], "source": [0, 0, 80], "dest": [0, 0, 0]}
    table._columns = {name: np.array(values) for name, values in columns.items()}
    monkeypatch.setattr(_Table, "_moment", lambda _, row: row["source"])
    found: list[Any] = [*table.moments()]
    assert found == [0, 80]
