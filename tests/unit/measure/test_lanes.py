"""Rows of packets by lane, found once for all connections; and packets by lane, in a file."""

import errno
from io import BytesIO

import numpy as np
import pytest
from capture_analysis.columns import Keyed
from capture_analysis.errors import AnalysisError
from conversation import packets

from twoway.measure.lanes import Lanes, PacketFile, numbers_of


@pytest.mark.parametrize("highest", [3, 1 << 17])
def test_rows_of_lanes(highest: int) -> None:
    """The rows found for some lanes equal those of a search through all rows."""
    lane = np.random.default_rng(1).integers(0, 4, 500).astype(np.uint32)
    lane[lane == 3] = highest
    lanes = Lanes(lane)
    for some in ([0], [2], [highest], [0, highest], [1, 2, highest], []):
        assert lanes.rows(*some).tolist() == np.flatnonzero(np.isin(lane, some)).tolist()


def test_unknown_lane_has_no_rows() -> None:
    """A connection that is not in a capture has no rows there."""
    assert Lanes(np.array([1, 0], dtype=np.uint32)).rows(7).tolist() == []
    assert Lanes(np.zeros(0, dtype=np.uint32)).rows(0).tolist() == []


def test_halves_have_lanes_of_their_own() -> None:
    """Data and ACKs of one connection are two lanes, and no two connections share one."""
    both = packets(flow=[0, 0, 1, 1], half=[0, 1, 0, 1])
    assert numbers_of(both).tolist() == [0, 1, 2, 3]


# Packets of three connections, and their lanes.
SEEN = packets(time_ns=[10, 20, 30, 40, 50], flow=[0, 2, 1, 0, 1], seq=[5, 6, 7, 8, 1 << 31])
NUMBERS = [0, 4, 2, 0, 2]


@pytest.mark.parametrize("in_memory_bytes", [1, 1 << 20])
def test_packets_from_a_file(monkeypatch: pytest.MonkeyPatch, in_memory_bytes: int) -> None:
    """Packets of one lane or several are those of the capture, in time order, on disk or not."""
    monkeypatch.setattr(f"{PacketFile.__module__}._IN_MEMORY_BYTES", in_memory_bytes)
    keyed = Keyed.from_packets(SEEN, ["window"])
    stored = PacketFile()
    stored.add("other", SEEN.where(np.array([1, 3])))
    assert stored.packets_of("other", 4).seq.tolist() == [6]
    stored.add("this", keyed)
    assert "this" in stored
    assert "that" not in stored
    for some in ([0], [4], [2, 0], [0, 2, 4], [1], [9], []):
        there, here = stored.packets_of("this", *some), keyed.where(np.isin(NUMBERS, some))
        assert len(there) == len(here)
        for name in ("time_ns", "seq", "flow", "window"):
            assert getattr(there, name).dtype == np.int64
            assert getattr(there, name).tolist() == getattr(here, name).tolist()
        assert there.key().tolist() == here.key().tolist()
    assert stored.packets_of("other", 0).key().tolist() == [SEEN.key()[3]]


def test_a_full_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no room for a capture, the error names the folder and the way to another."""

    class Full(BytesIO):
        def write(self, _content: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"{PacketFile.__module__}.SpooledTemporaryFile", lambda _most: Full())
    with pytest.raises(AnalysisError, match=r": No space left on device\n\nhint: TMPDIR names"):
        PacketFile().add("this", SEEN)
