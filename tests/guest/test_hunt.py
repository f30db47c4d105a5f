"""Finds of `twoway hunt`: settings in which a control is known to do badly."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.runs import carry_out

from twoway.sweeps.hunt import _LINK, GOALS, document_of, free_mbit, values_of

pytestmark = [pytest.mark.usefixtures("guest"), pytest.mark.long]

BESIDE = {"rival": "cubic", "rival_start_s": 0}


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
