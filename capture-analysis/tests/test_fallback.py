"""What is of the numpy parser alone: what it does at once, and its limits."""

import hand_built as built
import numpy as np
import pytest
from both_parsers import outcome
from capture_analysis import native
from capture_analysis.reading.fallback import NumpyParser, flows
from capture_analysis.reading.fallback.clock import time_ns
from hand_built import ACK, SYN, ethernet, ipv4, tcp
from hypothesis import given, settings
from hypothesis import strategies as st

SECOND_NS = 1_000_000_000


def conversation(packets: list[tuple[int, int, int, int]]) -> bytes:
    """A capture of packets, each of a port, a side, flags and a sequence number."""
    frames = []
    for port, side, flags, seq in packets:
        ports = (1000 + port, 2000) if side == 0 else (2000, 1000 + port)
        segment = tcp(built.SYN_OPTIONS, flags, source=ports[0], destination=ports[1], seq=seq)
        frames.append(ethernet(ipv4(segment, source=1 + side, destination=2 - side)))
    return built.pcap(frames)


PACKETS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(0, 1),
        st.sampled_from([SYN, SYN | ACK, ACK]),
        st.integers(0, 2),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(packets=PACKETS)
def test_connections_one_by_one(packets: list[tuple[int, int, int, int]]) -> None:
    """Looking at a few packets of a batch finds what looking at every packet does."""
    content = conversation(packets)
    assert outcome(NumpyParser(), content) == outcome(NumpyParser(), content, rows=1)


@pytest.mark.skipif(not native.available(), reason="the C parser is not built")
@settings(deadline=None)
@given(packets=PACKETS)
def test_connections_alike(packets: list[tuple[int, int, int, int]]) -> None:
    """Ports used again and SYNs sent again mean the same connections to both parsers."""
    content = conversation(packets)
    assert outcome(NumpyParser(), content) == outcome(native.NativeParser(), content)


def test_ends_that_mix_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections whose ends happen to be mixed into the same number are still told apart."""
    content = conversation([(port, side, ACK, 0) for port in range(2) for side in (0, 1)])
    expected = outcome(NumpyParser(), content)
    monkeypatch.setattr(flows, "_mixed", lambda words: np.zeros(len(words), np.uint64))
    assert outcome(NumpyParser(), content) == expected


def test_room_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first packet of a connection too many ends the parse, and a sentence says so."""
    monkeypatch.setattr(flows, "MOST_FLOWS", 2)
    monkeypatch.setattr("capture_analysis.reading.fallback.MOST_FLOWS", 2)
    said = outcome(NumpyParser(), conversation([(port, 0, ACK, 0) for port in (0, 1, 0, 2, 0)]))
    assert said["broken"] == "frame 4 begins connection 3, for which there is no room"
    assert [row[3] for row in said["rows"]] == [0, 1, 0]
    assert said["counts"].frames == said["counts"].packets == 3


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 2**64 - 1), st.just(2**64 - 1)),
            st.integers(0, 255),
            st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**10), 10**10)),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_times(blocks: list[tuple[int, int, int]]) -> None:
    """Times of interfaces with different clocks are exact at once, up to the last ns of 64 bits."""
    ticks, resolution, offset_s = zip(*blocks, strict=True)
    times, within = time_ns(
        np.array(ticks, np.uint64), np.array(resolution, np.uint8), np.array(offset_s, np.int64)
    )
    for number, (tick, unit, offset) in enumerate(blocks):
        per_second = 2 ** (unit - 128) if unit >= 128 else 10**unit
        exact = tick * SECOND_NS // per_second + offset * SECOND_NS
        fits = -(2**63) <= exact < 2**63
        assert (within[number], times[number]) == (fits, exact if fits else 0)


@pytest.mark.parametrize("edge_ns", [2**63 - 1, -(2**63)])
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_edges_of_time(edge_ns: int, step: int) -> None:
    """The first and the last ns that 64 bits hold are times; the next ones are not."""
    second, ns = divmod(edge_ns + step, SECOND_NS)
    times, within = time_ns(
        np.array([ns], np.uint64), np.array([9], np.uint8), np.array([second], np.int64)
    )
    fits = -(2**63) <= edge_ns + step < 2**63
    assert (within[0], times[0]) == (fits, edge_ns + step if fits else 0)
