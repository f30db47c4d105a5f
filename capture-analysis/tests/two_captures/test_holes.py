"""Packets lost on the path or missed by a capture, by evidence of ACKs and retransmissions."""

import numpy as np
import pytest
from capture_analysis.tracking import Kind
from capture_analysis.two_captures.holes import Holes
from capture_analysis.two_captures.match_rows import Rows
from capture_analysis.two_captures.matching import FOREVER
from capture_analysis.two_captures.packets_between import (
    A_TO_B,
    ABSENT,
    B_TO_A,
    CROSSING,
    Crossings,
)

WRAP = 1 << 32


def crossing(first_ns: int, second_ns: int, seq: int, **values: int) -> Rows:
    """Make a data packet, by default of 100 bytes."""
    row = np.zeros(1, dtype=CROSSING)
    row["first_ns"], row["second_ns"], row["seq"] = first_ns, second_ns, seq % WRAP
    row["payload_bytes"], row["kind"], row["flags"] = 100, Kind.NEW_DATA, 16
    for name, value in values.items():
        row[name] = value
    return row


def ack(time_ns: int, number: int, flow: int = 0) -> Rows:
    """Make a pure ACK of the other half that passes the receiver's tap at a time."""
    return crossing(
        time_ns,
        time_ns + 10,
        1,
        ack=number % WRAP,
        payload_bytes=0,
        kind=Kind.ACK,
        half=1,
        flow=flow,
    )


def decided(forward: list[Rows], backward: list[Rows]) -> tuple[int, int]:
    """Return how many data packets count as lost and as missed, for any steps of input."""
    nothing = np.zeros(0, dtype=CROSSING)
    lost = missed = 0
    holes = Holes()
    for ahead, back in zip(
        [*forward, nothing], [*backward, *[nothing] * len(forward)], strict=False
    ):
        arrived = ahead[ahead["second_ns"] != ABSENT]
        found = holes.add(
            Crossings(A_TO_B, ahead, arrived, FOREVER), Crossings(B_TO_A, back, back, FOREVER)
        )
        lost, missed = lost + len(found[0]), missed + len(found[1])
    return lost + len(holes.finish()), missed


def together(*rows: Rows) -> Rows:
    """Join several packets."""
    return np.concatenate(rows)


NOTHING = np.zeros(0, dtype=CROSSING)


@pytest.mark.parametrize("base", [1000, WRAP - 150])
def test_data_sent_again_were_lost(base: int) -> None:
    """If the second tap sees the bytes later, before any ACK, the first packet was lost."""
    first = together(crossing(0, ABSENT, base), crossing(1, 11, base + 100))
    again = together(crossing(50, 60, base, kind=Kind.RETRANSMISSION))
    assert decided([first, again], [NOTHING, ack(61, base + 200)]) == (1, 0)


@pytest.mark.parametrize("base", [1000, WRAP - 150])
def test_acknowledged_unseen_data_were_missed(base: int) -> None:
    """If an ACK covers bytes that the second tap never saw, its capture missed them."""
    data = together(
        crossing(0, 10, base - 100), crossing(1, ABSENT, base), crossing(2, 12, base + 100)
    )
    assert decided([data], [ack(20, base + 200)]) == (0, 1)
    assert decided([data, NOTHING], [NOTHING, ack(20, base + 200)]) == (0, 1)


def test_what_comes_first_decides() -> None:
    """A spurious retransmission after the ACK leaves a missed packet missed."""
    data = crossing(0, ABSENT, 1000)
    again = crossing(30, 40, 1000, kind=Kind.RETRANSMISSION)
    assert decided([together(data, again)], [ack(20, 1100)]) == (0, 1)
    assert decided([together(data, again)], [ack(50, 1100)]) == (1, 0)


def test_without_evidence_it_is_lost() -> None:
    """Data neither sent again nor fully acknowledged counts as lost."""
    assert decided([crossing(0, ABSENT, 1000)], [NOTHING]) == (1, 0)
    assert decided([crossing(0, ABSENT, 1000)], [ack(20, 1099)]) == (1, 0)


def test_connections_are_apart() -> None:
    """ACKs and data of another connection with equal numbers are no evidence."""
    data = together(crossing(0, ABSENT, 1000), crossing(5, 15, 1000, flow=1))
    assert decided([data], [ack(20, 1100, flow=1)]) == (1, 0)


def test_a_merged_retransmission_covers_several() -> None:
    """A retransmission of two packets' data as one shows both as lost."""
    data = together(crossing(0, ABSENT, 1000), crossing(1, ABSENT, 1100), crossing(2, 12, 1200))
    again = crossing(50, 60, 1000, payload_bytes=200, kind=Kind.RETRANSMISSION)
    assert decided([data, again], [NOTHING, ack(61, 1300)]) == (2, 0)
