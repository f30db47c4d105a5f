"""sch_dtm's channels in user space: the kernel's own headers, compiled into a shared library."""

import ctypes
import subprocess
from ctypes import POINTER, Structure, c_bool, c_int32, c_uint8, c_uint32, c_uint64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAUSES = ("allocator", "denied", "reclaimed", "operator", "start")
ALLOCATORS = {"static": 0, "rate": 1, "buffer": 2, "hysteresis": 3, "trace": 4}


class Level(Structure):
    """struct tc_dtm_level."""

    _fields_ = (("slots", c_uint32), ("up_bytes", c_uint32), ("down_bytes", c_uint32))


class Step(Structure):
    """struct tc_dtm_step."""

    _fields_ = (("after_us", c_uint32), ("slots", c_uint32))


class Config(Structure):
    """struct dtm_config, with the kernel's defaults."""

    _fields_ = (
        *((name, c_uint64) for name in ("change_ns", "signalling_ns", "sample_ns", "hold_ns")),
        *((name, c_uint64) for name in ("estimate", "rise_ns", "fall_ns")),
        *((name, c_uint32) for name in ("slots", "limit", "limit_bytes")),
        ("overhead", c_int32),
        *((name, c_uint32) for name in ("min_slots", "max_slots", "margin", "corridor")),
        *((name, c_uint32) for name in ("high", "low", "step", "pool", "owned")),
        *((name, c_uint32) for name in ("n_levels", "n_steps")),
        *((name, c_uint8) for name in ("allocator", "shift_up", "shift_down")),
        *((name, c_uint8) for name in ("rounding", "count", "framed")),
        ("levels", Level * 32),
        ("steps", Step * 256),
    )


class _Event(Structure):
    _fields_ = (
        ("time", c_uint64),
        *((name, c_uint32) for name in ("channel", "from_", "to", "wanted", "cause")),
    )


@dataclass(frozen=True)
class Event:
    """One reallocation, as the kernel tells it."""

    time_ns: int
    channel: int
    before: int
    after: int
    wanted: int
    cause: str


def config(allocator: str = "static", **settings: Any) -> Config:
    """A configuration: the kernel's defaults but for the settings given."""
    values = {
        "slots": 20,
        "limit": 1000,
        "min_slots": 1,
        "max_slots": 8192,
        "change_ns": 10**9,
        "sample_ns": 10**8,
        "shift_up": 3,
        "shift_down": 3,
        "margin": 750,
        "corridor": 2000,
        "high": 30000,
        "low": 3000,
        "rise_ns": 10**7,
        "fall_ns": 10**8,
        "step": 1,
        **settings,
    }
    return Config(allocator=ALLOCATORS[allocator], **values)


def build(folder: Path) -> Path:
    """Compile the model; the library."""
    library = folder / "dtm_model.so"
    subprocess.run(
        f"cc -O2 -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Werror -shared -fPIC "
        f"-I {HERE}/userspace -I {HERE.parent} -o {library} {HERE}/userspace/dtm_model.c".split(),
        check=True,
    )
    return library


class Link:
    """A link with up to eight channels; all that happens is kept in events and departures.

    One at a time: the library has the state of one link, which a new one resets.

    Args:
        library: from build().
        slots: of the link.
    """

    def __init__(self, library: Path, slots: int = 8192) -> None:
        self._lib = ctypes.CDLL(str(library))
        self._lib.model_join.restype = c_bool
        self._lib.model_arrive.restype = c_bool
        self._lib.model_slot_ns.restype = c_uint64
        self._lib.model_samples.restype = c_uint64
        self._lib.model_denied.restype = c_uint64
        self.events: list[Event] = []
        self.departures: list[list[int]] = [[] for _ in range(8)]
        # ctypes drops what Python no longer holds.
        self._on_event = ctypes.CFUNCTYPE(None, POINTER(_Event))(self._keep_event)
        self._on_departure = ctypes.CFUNCTYPE(None, c_uint32, c_uint64, c_uint32)(
            lambda channel, time, _: self.departures[channel].append(time)
        )
        self._lib.model_reset(slots, self._on_event, self._on_departure)

    def _keep_event(self, pointer: "ctypes._Pointer[_Event]") -> None:
        e = pointer.contents
        self.events.append(Event(e.time, e.channel, e.from_, e.to, e.wanted, CAUSES[e.cause]))

    def join(self, channel: int, settings: Config, now_ns: int = 0) -> bool:
        """Add a channel; False if the pool cannot guarantee it what it wants."""
        return bool(self._lib.model_join(channel, ctypes.byref(settings), c_uint64(now_ns)))

    def leave(self, channel: int, now_ns: int) -> None:
        """Remove a channel."""
        self._lib.model_leave(channel, c_uint64(now_ns))

    def arrive(self, channel: int, now_ns: int, link_bytes: int) -> bool:
        """Offer a packet; False if it is dropped."""
        return bool(self._lib.model_arrive(channel, c_uint64(now_ns), link_bytes))

    def set_slots(self, channel: int, now_ns: int, slots: int) -> None:
        """The operator's change."""
        self._lib.model_set_slots(channel, c_uint64(now_ns), slots)

    def advance(self, now_ns: int) -> None:
        """Let time pass."""
        self._lib.model_advance(c_uint64(now_ns))

    def slots(self, channel: int) -> int:
        """Slots that a channel holds."""
        return int(self._lib.model_slots(channel))

    def used(self) -> int:
        """Slots in use, as the pool counts them."""
        return int(self._lib.model_used())

    def samples(self, channel: int) -> int:
        """Estimates a channel has made."""
        return int(self._lib.model_samples(channel))

    def denied(self, channel: int) -> int:
        """Requests of a channel that the pool did not meet in full."""
        return int(self._lib.model_denied(channel))

    def slot_ns(self, channel: int, now_ns: int) -> int:
        """Slots held, integrated over time."""
        return int(self._lib.model_slot_ns(channel, c_uint64(now_ns)))

    def changes(self, channel: int) -> list[tuple[int, int]]:
        """Times and slots of a channel's reallocations."""
        return [
            (e.time_ns, e.after)
            for e in self.events
            if e.channel == channel and e.before != e.after and e.before
        ]
