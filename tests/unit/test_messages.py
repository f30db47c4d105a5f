"""Errors as a Python program sees them, and names that may be meant."""

import traceback

import pytest

from twoway.errors import UsageError
from twoway.messages import meant

# Suggestions of names that may be meant.

FIELDS = [
    "after_ms",
    "change_s",
    "delay_ms",
    "directions",
    "mtu_bytes",
    "queue_packets",
    "rate_mbit",
]
FIELDS += ["ack_queue", "up_bytes"]


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("duration_sec", ["duration_s", "start_s"], "duration_s"),
        ("rate_kbit", FIELDS, "rate_mbit"),
        ("mtu", FIELDS, "mtu_bytes"),
        ("queue", FIELDS, "queue_packets"),
        ("50mbit", ["dtm-5mbit", "class-50mbit"], "class-50mbit"),
        ("cubic30", ["reno", "cubic"], "cubic"),
        ("vgas", ["vegas"], "vegas"),
        ("distribution", FIELDS, ""),
        ("ack_filter", FIELDS, ""),
        ("mtu_byte", ["up_bytes"], ""),
        ("mut_bytes", ["up_bytes"], ""),
        ("channel", FIELDS, ""),
        ("max_pacing_rate_mbit", FIELDS, ""),
        ("x", FIELDS, ""),
        ("", FIELDS, ""),
    ],
)
def test_only_close_names_are_suggested(name: str, known: list[str], found: str) -> None:
    """A name with more than a third of other letters is not suggested, unless it has all words."""
    assert meant(name, known) == (f'; did you mean "{found}"?' if found else "")


# The errors that twoway raises, as a Python program sees them.


def test_a_traceback_ends_with_the_hint() -> None:
    """Python prints the hint of an error below its message, and nothing without a hint."""
    for hint, last in (("there are cwnd.up", "hint: there are cwnd.up\n"), ("", "cwn.up: none\n")):
        lines = traceback.format_exception(UsageError("cwn.up: none", hint))
        assert lines[-1].endswith(last)
