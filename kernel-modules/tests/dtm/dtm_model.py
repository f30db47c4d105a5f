"""sch_dtm's channels in user space: the kernel's own headers, compiled into a shared library."""

import ctypes
from collections import defaultdict
from collections.abc import Sequence
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_int32,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from user_space import MODULES, compile_for_user_space

CAUSES = ("allocator", "denied", "reclaimed", "operator", "start", "granted", "left")
ALLOCATORS = {"static": 0, "rate": 1, "buffer": 2, "hysteresis": 3, "trace": 4}
MAX_SLOTS = 65535


class Level(Structure):
    """struct dtm_level."""

    _fields_ = (("slots", c_uint32), ("up_bytes", c_uint32), ("down_bytes", c_uint32))


class Step(Structure):
    """struct dtm_step."""

    _fields_ = (("after_ns", c_uint64), ("slots", c_uint32))


class Config(Structure):
    """struct dtm_config, with room for all steps."""

    _fields_ = (
        ("calls", c_void_p),
        *((name, c_uint32) for name in ("limit", "limit_bytes")),
        ("overhead", c_int32),
        *((name, c_uint8) for name in ("allocator", "framed", "rounding", "count", "pace", "hold")),
        *((name, c_uint64) for name in ("change_ns", "signalling_ns", "sample_ns", "hold_ns")),
        *((name, c_uint64) for name in ("estimate", "rise_ns", "fall_ns")),
        *((name, c_uint32) for name in ("initial", "min_slots", "max_slots", "owned")),
        *((name, c_uint32) for name in ("margin", "corridor", "high", "low", "step")),
        *((name, c_uint32) for name in ("slot_rate", "grain", "n_levels", "n_steps")),
        *((name, c_uint8) for name in ("shift_up", "shift_down")),
        ("pool", c_char * 16),
        ("levels", Level * 32),
        ("steps", Step * 1024),
    )


class State(Structure):
    """struct model_state: a channel, and its pool."""

    _fields_ = (
        *((name, c_uint64) for name in ("samples", "denied", "estimate", "work")),
        *((name, c_uint32) for name in ("slots", "target", "used")),
    )


class _Event(Structure):
    _fields_ = (
        ("time", c_uint64),
        *((name, c_uint32) for name in ("channel", "from_", "to", "wanted", "cause")),
    )


@dataclass(frozen=True)
class Event:
    """One reallocation, as the kernel reports it."""

    time_ns: int
    channel: int
    before: int
    after: int
    wanted: int
    cause: str


def config(
    allocator: str = "static",
    levels: Sequence[tuple[int, int, int]] = (),
    steps: Sequence[tuple[int, int]] = (),
    **settings: Any,
) -> Config:
    """Return a configuration: the kernel's defaults with the given settings.

    Args:
        allocator: its name.
        levels: slots, and bytes up to the next and down to the last level, of each.
        steps: ns since the one before and slots of each.
        settings: fields of Config.
    """
    values = {
        "n_levels": len(levels),
        "levels": (Level * 32)(*(Level(*each) for each in levels)),
        "n_steps": len(steps),
        "steps": (Step * 1024)(*(Step(*each) for each in steps)),
        "initial": 20,
        "limit": 1000,
        "min_slots": 1,
        "max_slots": MAX_SLOTS,
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
        "slot_rate": 512_000,
        **settings,
    }
    return Config(allocator=ALLOCATORS[allocator], **values)


def build(folder: Path) -> Path:
    """Compile the model; return the library."""
    flags = ("-O2", "-Wno-unused-parameter", "-Wno-sign-compare")
    kernel = [MODULES / "dtm/dtm_core.c", MODULES / "dtm/dtm_service.c"]
    kernel += sorted(MODULES.glob("dtm/dtm_alloc_*.c"))
    model = Path(__file__).with_suffix(".c")
    return compile_for_user_space(folder / "dtm_model.so", *flags, model, *kernel)


class Link:
    """A link with up to 1024 channels; all its events and departures are kept.

    Only one can be used at a time: the library has the state of one link, which a new one resets.

    Args:
        library: from build().
        slots: number of slots of the link.
    """

    def __init__(self, library: Path, slots: int = MAX_SLOTS) -> None:
        self._lib = ctypes.CDLL(str(library))
        for name in ("join", "arrive", "is_consistent", "reconfigure"):
            getattr(self._lib, f"model_{name}").restype = c_bool
        self._lib.model_slot_ns.restype = c_uint64
        self.events: list[Event] = []
        self.departures: defaultdict[int, list[int]] = defaultdict(list)
        # ctypes frees objects that no Python variable refers to.
        self._on_event = ctypes.CFUNCTYPE(None, POINTER(_Event))(self._keep_event)
        self._on_departure = ctypes.CFUNCTYPE(None, c_uint32, c_uint64, c_uint32)(
            lambda channel, time, _: self.departures[channel].append(time)
        )
        self._lib.model_reset(slots, self._on_event, self._on_departure)

    def _keep_event(self, pointer: "ctypes._Pointer[_Event]") -> None:
        e = pointer.contents
        self.events.append(Event(e.time, e.channel, e.from_, e.to, e.wanted, CAUSES[e.cause]))

    def join(self, channel: int, settings: Config, now_ns: int = 0) -> bool:
        """Add a channel; return False if the pool cannot guarantee its slots."""
        self.advance(now_ns)
        return bool(self._lib.model_join(channel, ctypes.byref(settings), c_uint64(now_ns)))

    def leave(self, channel: int, now_ns: int) -> None:
        """Remove a channel."""
        self.advance(now_ns)
        self._lib.model_leave(channel, c_uint64(now_ns))

    def arrive(self, channel: int, now_ns: int, link_bytes: int, *, late: bool = False) -> bool:
        """Offer a packet; return False if it is dropped.

        Args:
            channel: which.
            now_ns: the time, not before the earlier calls.
            link_bytes: the packet's size.
            late: True if packets that were sent before have not been looked at.
        """
        if not late:
            self.advance(now_ns)
        return bool(self._lib.model_arrive(channel, c_uint64(now_ns), link_bytes))

    def set_slots(self, channel: int, now_ns: int, slots: int, *, late: bool = False) -> None:
        """Set the operator's `slots`; see arrive() for `late`."""
        if not late:
            self.advance(now_ns)
        self._lib.model_set_slots(channel, c_uint64(now_ns), slots)

    def reconfigure(
        self, channel: int, settings: Config, now_ns: int, *, restart: bool = False, slots: int = 0
    ) -> bool:
        """Make the operator's change; return False if the pool cannot guarantee the new slots."""
        self.advance(now_ns)
        return bool(
            self._lib.model_reconfigure(
                channel, ctypes.byref(settings), c_uint64(now_ns), restart, slots
            )
        )

    def advance(self, now_ns: int) -> None:
        """Let time pass; each packet leaves when it has been sent."""
        self._lib.model_advance(c_uint64(now_ns))

    def poll(self, now_ns: int) -> None:
        """Poll the channels, for the first time since the last call: sent packets leave."""
        self._lib.model_poll(c_uint64(now_ns))

    def is_consistent(self) -> bool:
        """Tell whether the pool's counts and queues agree with its members."""
        return bool(self._lib.model_is_consistent())

    def state(self, channel: int = 0) -> State:
        """Return what a channel has and wants, and what its pool has done.

        `used` is the slots in use, and `work` the number of events, and of estimates made one by
        one rather than skipped.
        """
        found = State()
        self._lib.model_look(channel, ctypes.byref(found))
        return found

    def slots(self, *channels: int) -> list[int]:
        """Return the slots that each channel holds."""
        return [self.state(channel).slots for channel in channels]

    def slot_ns(self, channel: int, now_ns: int) -> int:
        """Return the integral of the slots over time."""
        self.advance(now_ns)
        return int(self._lib.model_slot_ns(channel, c_uint64(now_ns)))

    def changes(self, channel: int) -> list[tuple[int, int]]:
        """Return times and slots of a channel's reallocations."""
        return [
            (e.time_ns, e.after)
            for e in self.events
            if e.channel == channel and e.before != e.after and e.before
        ]
