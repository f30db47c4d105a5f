"""Table of all connections, which finds those that failed or stood still.

docs/connections.md has the columns and their meaning; clib/life.c finds the waits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capture_analysis.columns import BoolArray, IntArray
from capture_analysis.facts.facts import NEAR
from capture_analysis.flow_table import FlowTable, addresses
from capture_analysis.one_capture import lives
from capture_analysis.one_capture.lives import Life
from capture_analysis.one_capture.single import Measured
from capture_analysis.tracking import Kind

FINE = "fine"
# In the order in which they count: the first that holds is a connection's cause.
CAUSES = (
    *("refused", "no answer", "connect", "cannot tell"),
    *("server", "losses", "zero window", "network", "reset"),
    FINE,
)
# Columns of `_by_wait`.
_CONNECT, _LOSSES, _NETWORK = 0, 2, 4
# A clock that is set forward by as much, or more, is noticed: waits differ by at most this share.
_CLOCK_STEP_S, _ALIKE = 10.0, 0.01
_ENDS = ("refused", "no answer", "reset by client", "reset by server", "closed", "half closed")
_OPEN = "open"


@dataclass(frozen=True)
class Words:
    """A column of words: the number of each row's word in the list of all."""

    number: IntArray
    all: list[str]

    def __getitem__(self, row: int) -> str:
        return self.all[int(self.number[row])]


Numbers = NDArray[np.float64]
Column = Numbers | Words


class Connections:
    """The connections of a capture by column.

    Attributes:
        columns: by name, a row for each connection; NaN is unknown.
        fine, client_end: shape (n,), True where the cause is FINE; 0 if the source is the client,
            else 1.
        clock_s: the wait of all connections that may be a clock set forward, s; 0 if there is none.
        waited: number of these connections.
    """

    def __init__(self, measured: Measured) -> None:
        self._measured, self._flows = measured, measured.flows
        self._life = measured.tally.lives.values_of(np.arange(len(measured.flows)))
        self._begun_ns = measured.times.right(measured.flows.rows["first_ns"])
        self._first_ns = self._begun_ns.min() if len(self._begun_ns) else 0
        self.client_end = self._clients_end()
        self.columns: dict[str, Column] = {
            **self._ends_of(measured.flows),
            **self._sums(),
            **self._times(),
            **self._waits(),
            "end": self._first_of(_ENDS, self._endings(), _OPEN),
        }
        self.columns["cause"] = self._first_of(CAUSES[:-1], self._troubles(), FINE)
        self.fine = self.words("cause").number == CAUSES.index(FINE)

    def __len__(self) -> int:
        return len(self._life)

    def numbers(self, name: str) -> Numbers:
        """Return a column of numbers."""
        found = self.columns[name]
        assert not isinstance(found, Words)
        return found

    def words(self, name: str) -> Words:
        """Return a column of words."""
        found = self.columns[name]
        assert isinstance(found, Words)
        return found

    def sort_by(self, name: str) -> IntArray:
        """Sort the rows by a column: largest first, words by the alphabet, unknown ones last."""
        found = self.columns[name]
        key = found.number if isinstance(found, Words) else -found
        return np.argsort(key, kind="stable")

    def slowest_first(self) -> IntArray:
        """Sort the rows: failed ones first, then those that stood still for longest."""
        failed = self.words("cause").number < CAUSES.index("connect")
        waited = np.where(self.fine, 0.0, np.nan_to_num(self.numbers("stall")))
        payload = self.numbers("payload")
        return np.lexsort((-payload, -waited, self.fine, ~failed))

    def _has(self, bit: Life, end: IntArray | int = 0) -> BoolArray:
        found: BoolArray = (self._life[:, lives.SEEN] >> end & bit) != 0
        return found

    def _clients_end(self) -> IntArray:
        rows = self._flows.rows
        unasked = rows["source_port"] < rows["destination_port"]
        answered = self._has(Life.ANSWERED)
        unasked = np.where(answered, self._flows.syns_seen()[:, 0], unasked)
        return np.where(self._has(Life.SYN), False, unasked).astype(np.int64)

    def _ends_of(self, flows: FlowTable) -> dict[str, Column]:
        rows, swapped = flows.rows, self.client_end == 1
        hosts, number = addresses(flows)
        ports = np.stack([rows["source_port"], rows["destination_port"]], axis=1).astype(float)
        client, server = self.client_end, 1 - self.client_end
        at = np.arange(len(swapped))
        return {
            "id": at.astype(float),
            "client": Words(number[at, client], hosts),
            "client_port": ports[at, client],
            "server": Words(number[at, server], hosts),
            "server_port": ports[at, server],
        }

    def _sums(self) -> dict[str, Column]:
        tally = self._measured.tally
        directions = np.arange(2 * len(self))
        kinds = tally.kinds.values_of(directions).reshape(len(self), 2, len(Kind))
        payload = tally.new_payload.values_of(directions).reshape(-1, 2).sum(axis=1)
        syns = tally.syns.values_of(directions).reshape(-1, 2)
        again = kinds[:, :, Kind.RETRANSMISSION].sum(axis=1) + np.maximum(syns - 1, 0).sum(axis=1)
        resets = self._has(Life.RST).astype(float) + self._has(Life.RST, 1)
        return {
            "packets": kinds.sum(axis=(1, 2)).astype(float),
            "payload": payload.astype(float),
            "sent_again": again.astype(float),
            "resets": resets,
        }

    def _times(self) -> dict[str, Column]:
        life = self._life
        at = np.arange(len(life))
        asked, answered = (
            life[:, lives.DATA][at, end] for end in (self.client_end, 1 - self.client_end)
        )
        data = self._has(Life.DATA, self.client_end), self._has(Life.DATA, 1 - self.client_end)
        connected = self._has(Life.SYN) & self._has(Life.CONNECTED)
        connected_ns = life[:, lives.SYN] + life[:, lives.CONNECT]
        from_ns = np.where(data[0] & (asked <= answered), asked, connected_ns)
        passes = life[:, lives.TIME].any()
        known = passes & data[1] & ((data[0] & (asked <= answered)) | connected)
        tls = lives.tls_parts(life)
        return {
            **{
                name: np.where(part < 0, np.nan, part / 1e9)
                for name, part in zip(("tls_hello", "tls_finish", "tls_answer"), tls.T, strict=True)
            },
            "start": (self._begun_ns - self._first_ns) / 1e9,
            "time": life[:, lives.TIME] / 1e9,
            "connect": np.where(connected & passes, life[:, lives.CONNECT] / 1e9, np.nan),
            "first_byte": np.where(known, (answered - from_ns) / 1e9, np.nan),
        }

    def _by_wait(self, columns: slice) -> IntArray:
        """Return numbers for: connect, server, losses, zero window, network, client; (n, 6)."""
        at, each = np.arange(len(self)), self._life[:, columns]
        server, client = each[at, 1 - self.client_end], each[at, self.client_end]
        # Without any data no end was asked.
        idle = ~(self._has(Life.DATA) | self._has(Life.DATA, 1))
        client = np.where(idle, np.maximum(server, client), client)
        server = np.where(idle, 0, server)
        return np.column_stack([each[:, 2], server, each[:, 3:], client])

    def _waits(self) -> dict[str, Column]:
        longest, at = self._by_wait(lives.LONGEST), np.arange(len(self))
        kind = longest[:, :-1].argmax(axis=1)
        stall, begun = longest[at, kind], self._by_wait(lives.BEGUN)[at, kind]
        return {
            "stall": stall / 1e9,
            "stall_at": np.where(stall > 0, (begun - self._first_ns) / 1e9, np.nan),
            "stalled": self._by_wait(lives.STALLED)[:, :-1].sum(axis=1) / 1e9,
            "client_wait": longest[:, -1] / 1e9,
        }

    def _endings(self) -> list[BoolArray]:
        resets = [self._has(Life.RST, end) for end in (self.client_end, 1 - self.client_end)]
        closed = [self._has(Life.FIN, end) for end in (0, 1)]
        return [
            *lives.failed_connects(self._life[:, lives.SEEN]),
            *resets,
            closed[0] & closed[1],
            closed[0] | closed[1],
        ]

    def _troubles(self) -> list[BoolArray]:
        longest = self._by_wait(lives.LONGEST)[:, :-1]
        kind = np.where(longest.any(axis=1), longest.argmax(axis=1), -1)
        owed = self._has(Life.DATA, self.client_end)
        owed &= self._has(Life.LAST) != (self.client_end == 0)
        reset = self.numbers("resets") > 0
        # The other direction, or times, would name the cause.
        unknown = (kind > 0) & lives.one_sided(self._life[:, lives.SEEN])
        self.clock_s, stepped = self._clock_step()
        self.waited = int(stepped.sum())
        unknown |= (kind > 0) & stepped
        if not self.numbers("time").any():
            unknown = np.ones(len(self), np.bool_)
        return [
            *lives.failed_connects(self._life[:, lives.SEEN]),
            kind == 0,
            unknown,
            *(kind == each for each in range(1, 5)),
            reset & owed,
        ]

    def _clock_step(self) -> tuple[float, BoolArray]:
        """Find the longest wait, s, and its connections, if it may be a clock set forward.

        All connections in progress then wait at once and alike, and none repairs. There are two or
        more, or one waits for ACKs at its sender, whose timer would have sent its data again.
        """
        waits, begins = self._by_wait(lives.LONGEST), self._by_wait(lives.BEGUN)
        at, kind = np.arange(len(self)), waits.argmax(axis=1)
        wait_s = waits[at, kind] / 1e9
        begin_s = (begins[at, kind] - self._first_ns) / 1e9
        none = 0.0, np.zeros(len(self), np.bool_)
        if not len(self) or wait_s.max() < _CLOCK_STEP_S:
            return none
        longest = int(wait_s.argmax())
        margin = _ALIKE * wait_s[longest]
        start, middle = self.numbers("start"), begin_s[longest] + wait_s[longest] / 2
        mine = (start < middle) & (start + self.numbers("time") > middle)
        alike = (wait_s >= wait_s[longest] - margin) & (kind != _CONNECT) & (kind != _LOSSES)
        alike &= np.abs(begin_s - begin_s[longest]) <= margin
        if not alike[mine].all() or (mine.sum() < 2 and not self._would_repair(longest, kind)):
            return none
        return float(wait_s[mine].min()), mine

    def _would_repair(self, row: int, kind: IntArray) -> bool:
        """Tell whether the tap is at the sender of most data, which waits for the network."""
        payload = self._measured.tally.new_payload.values_of(np.array([2 * row, 2 * row + 1]))
        tap_at = self._measured.facts.tap_at[2 * row + int(payload.argmax())]
        return bool(kind[row] == _NETWORK and tap_at <= NEAR)

    @staticmethod
    def _first_of(names: tuple[str, ...], holds: list[BoolArray], other: str) -> Words:
        number = np.full(len(holds[0]), len(names))
        for at in reversed(range(len(names))):
            number[holds[at]] = at
        return Words(number, [*names, other])
