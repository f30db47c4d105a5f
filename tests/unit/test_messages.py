"""Suggestions of names that may be meant."""

import pytest

from twoway.messages import meant

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
