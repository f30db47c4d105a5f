"""Traces of the real sender in the scenarios of scripted_receiver.py, played in the guest."""

import json
from pathlib import Path
from typing import Any

from support.runs import kept_in_guest
from twoway.guest.cache import Guest
from twoway.paths import ROOT

Trace = list[dict[str, Any]]


def play_scenarios(guest: Guest, folder: Path, prefix: str) -> dict[str, Trace]:
    """Play the scenarios with a prefix in one boot; return each scenario's steps by name."""
    program = ROOT / "tests/support/guest/scripted_receiver.py"
    kept_in_guest(guest, folder, program, prefix, modules=f"tcp_{prefix}")
    document: dict[str, Trace] = json.loads((folder / "traces.json").read_text())
    return document
