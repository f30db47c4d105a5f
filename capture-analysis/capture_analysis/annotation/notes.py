"""Notes on packets: their words, and their form as comments of a pcapng file."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from capture_analysis import waiting_times as waits
from capture_analysis.columns import IntArray
from capture_analysis.overriding import override
from capture_analysis.tracking import Repair

# Each note takes 32 bytes, and twice that while they are sorted.
MOST_NOTES = 4_000_000
# A cause besides those of waiting_times: without a handshake the receiver's window is unknown.
SOME_WINDOW = waits.CAUSES
# A value besides those of Repair: the packet filled a hole, either late or sent again.
LATE = len(Repair)

_WAITS = {
    waits.APPLICATION: "the application had nothing to send",
    waits.RECOVERY: "losses were being repaired",
    waits.RECEIVER: "the receiver's window was full",
    waits.CONGESTION: "the congestion window was full",
    waits.ACKS: "ACKs were held on their path",
    waits.BUFFER: "the send buffer was empty",
    waits.SHUT: "the receiver's window was shut (zero window)",
    waits.NAGLE: "small data waited for an ACK (Nagle's algorithm)",
    waits.PAUSE: "the application had nothing to send",
    SOME_WINDOW: "a window was full",
}
_REPAIRS = {
    Repair.NONE: "retransmission",
    Repair.SPURIOUS: "retransmission, spurious: all of it had been acknowledged",
    Repair.TIMEOUT: "retransmission by time-out",
    Repair.FAST: "retransmission by RACK or duplicate ACKs: ACKs reported a gap",
    Repair.OTHER: "retransmission by a tail loss probe, or by ACKs that the capture lacks",
    LATE: "late data: a hole is filled",
}
_COMMENT = 1  # pcapng's code of the option
_PADDING = 4


class Note(IntEnum):
    """The kinds of notes, and the two numbers of each."""

    BUNCH = 0
    """On the first ACK: number of ACKs; data packets directly before them."""
    IDLE = 1
    """On the data that ends it: ns; a cause of waiting_times, or SOME_WINDOW."""
    AGAIN = 2
    """On data that was sent before: a value of Repair, NONE if unknown, or LATE; 0."""
    QUEUE = 3
    """On the ACK that shows it: round trip, and its minimum, ns."""
    NO_QUEUE = 4
    """On the ACK that shows it: round trip, and its minimum, ns."""


def say(note: Note, first: int, second: int) -> str:
    """Write a note and its numbers in words."""
    match note:
        case Note.BUNCH:
            plural = "" if second == 1 else "s"
            ahead = f" behind {second} data packet{plural}" if second else ""
            return f"bunch of {first} ACKs{ahead}"
        case Note.IDLE:
            return f"idle {_ms(first)} ms: {_WAITS[second]}"
        case Note.AGAIN:
            return _REPAIRS[first]
        case Note.QUEUE:
            added = f"round trip {_ms(first)} ms, {_ms(first - second)} ms above the least"
            return f"queue starts: {added}"
        case Note.NO_QUEUE:
            return f"queue is empty: round trip {_ms(first)} ms"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3g}" if ns < 1e9 else f"{ns / 1e6:.0f}"


@dataclass(frozen=True)
class Places:
    """The packets of several notes; columns of shape (k,).

    Attributes:
        direction: 2 * flow + half of the data.
        frame: number of the frame with the note.
        other: number of the frame at the other end: a bunch's last ACK, the data before an idle
            time (-1 if there are none); otherwise the same as `frame`.
        time_ns: time of the frame with the note.
    """

    direction: IntArray
    frame: IntArray
    other: IntArray
    time_ns: IntArray


class Notebook(Protocol):
    """Takes the notes that a Finder finds."""

    def add(self, note: Note, places: Places, first: IntArray, second: IntArray | int) -> None:
        """Take notes of one kind, with the two numbers of each."""


class Notes(Notebook):
    """Notes of a capture by frame, at most MOST_NOTES.

    Attributes:
        full: True if there were more notes, which are left out.
    """

    def __init__(self, most: int = MOST_NOTES) -> None:
        self.full = False
        self._most, self._count = most, 0
        self._parts: list[IntArray] = []

    def __len__(self) -> int:
        return self._count

    @override
    def add(self, note: Note, places: Places, first: IntArray, second: IntArray | int) -> None:
        columns = np.broadcast_arrays(places.frame, int(note), first, second)
        rows = np.stack(columns, axis=1).astype(np.int64)
        kept = rows[: self._most - self._count]
        self.full |= len(kept) < len(rows)
        self._count += len(kept)
        if len(kept):
            self._parts.append(kept)

    def by_frame(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each frame that has notes, ascending, with their words."""
        if not self._parts:
            return
        rows = np.concatenate(self._parts)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        number = 0
        words: list[str] = []
        for row in rows:
            frame, note, first, second = row.tolist()
            if frame != number and words:
                yield number, words
                words = []
            number = frame
            words.append(say(Note(note), first, second))
        yield number, words


def option(text: str, order: str) -> bytes:
    """Encode a comment as an option of a pcapng block; order is struct's "<" or ">"."""
    octets = text.encode()
    padding = -len(octets) % _PADDING
    return struct.pack(f"{order}HH", _COMMENT, len(octets)) + octets + bytes(padding)
