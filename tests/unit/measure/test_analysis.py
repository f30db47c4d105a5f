"""What the analysis of a run's folder hands to its metrics."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from synthetic_run import edit_json, write_run

from twoway.measure.analysis import Analysis
from twoway.measure.channel import Slots
from twoway.measure.medium import medium_of
from twoway.theory.medium import Medium


def test_a_link_has_one_rate_until_its_slots_change(tmp_path: Path) -> None:
    """A link at a constant rate has one, and a channel if its slots are set only once."""
    view = Analysis(write_run(tmp_path)).queues["forward"]
    assert view.has_one_rate
    for changes, has_one in (([(0, 4)], True), ([(0, 4), (10, 8)], False)):
        times, slots = np.array(changes).T
        assert replace(view, slots=Slots(times, slots, 0, {})).has_one_rate is has_one


def test_a_run_has_a_medium_if_its_profile_has_one(tmp_path: Path) -> None:
    """The medium is that of the profile's field half_duplex, and none without it."""
    folder = write_run(tmp_path)
    assert medium_of(Analysis(folder).run) is None
    shared = {"gap_us": 2, "turn_packets": 3}
    edit_json(folder / "manifest.json", lambda m: m["profile"].update({"half_duplex": shared}))
    assert medium_of(Analysis(folder).run) == Medium(2000, 3)
