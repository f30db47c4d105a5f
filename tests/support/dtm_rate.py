"""The rate allocator in tests of DTM channels, as a manifest describes it."""

from typing import Any

RATE: dict[str, Any] = {
    "sample_ms": 100,
    "shift_up": 3,
    "shift_down": 3,
    "margin_slots": 0.75,
    "corridor_slots": 2,
    "rounding": "up",
    "count": "arrivals",
    "hold_on_loss_ms": 0,
    "hold": "estimate",
    "estimate_mbit": 0,
    "grain_kbit": 0,
    "pace": "apart",
}
