"""Measuring a capture in pieces and in parts, and its document."""

import inspect
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from capture_analysis import metrics
from capture_analysis.errors import AnalysisError
from capture_analysis.flow_table import Seen
from capture_analysis.one_capture import single
from capture_analysis.one_capture.document import by_larger_direction, document
from capture_analysis.one_capture.registry import all_from_one
from capture_analysis.one_capture.single import Measured, Part, measure
from measured_captures import ColumnCapture, arriving, capture_of, compressed

pytestmark = pytest.mark.slow


def mixed() -> ColumnCapture:
    """Make connections of many kinds: compressed, held, duplicated, retransmitted, two-way."""
    exchanges = [
        compressed(),
        compressed(port=40001, isn=2000, held=True, tick_ns=1_000_000),
        compressed(port=40002, isn=3000, turned=True, window=30, bunch=20),
        arriving(port=40003, isn=4000),
        arriving(port=40004, isn=5000, turned=True, segments=20),
        compressed(port=40005, isn=(1 << 32) - 4000, bunch=3),
        arriving(port=40006, host=7),
    ]
    again = exchanges[3].first
    again[50::70] = again[49::70]
    exchanges[6].acked[100:104] = exchanges[6].acked[100]
    return capture_of(*exchanges)


def everything(measured: Measured) -> str:
    """Return all numbers as text."""
    return json.dumps(document(measured))


@pytest.mark.parametrize(("packets", "blocks"), [(2600, [1]), (None, [7, 333, 1999])])
def test_blocks_do_not_matter(
    monkeypatch: pytest.MonkeyPatch, packets: int | None, blocks: list[int]
) -> None:
    """The result is the same to the last digit for any size of blocks.

    Blocks of one packet, each as slow as one of thousands, are used only after the head.
    """
    monkeypatch.setattr(single, "HEAD_PACKETS", 2000)
    capture = mixed()
    assert len(capture.whole) > 8000
    capture.whole = capture.whole.where(slice(0, packets))
    monkeypatch.setattr(single, "BLOCK_PACKETS", 2000)
    expected = everything(measure(capture))
    for size in blocks:
        monkeypatch.setattr(single, "BLOCK_PACKETS", size)
        assert everything(measure(capture)) == expected


def test_parts_do_not_matter() -> None:
    """Connections measured apart and merged give the whole's result to the last digit."""
    expected = everything(measure(mixed()))
    for parts in (2, 3, 8):
        found = measure(mixed(), part=Part(0, parts))
        for index in range(1, parts):
            found.merge(measure(mixed(), part=Part(index, parts)))
        assert everything(found) == expected


def test_document_has_every_quantity_and_unit() -> None:
    """The document is valid JSON and has every metric with its unit."""
    found = json.loads(json.dumps(document(measure(mixed())), allow_nan=False))
    names = {q.name: q.unit for each in all_from_one() for q in each.per_direction}
    first = found["flows"][0]["forward"]
    assert {name: value["unit"] for name, value in first.items()} == names
    assert set(found["metrics"]) == {q.name for each in all_from_one() for q in each.per_capture}
    assert found["capture"]["packets"] == len(mixed().whole)
    assert found["flows"][0]["backward"] is None
    (said,) = found["warnings"]
    assert said.startswith("11584 bytes are acknowledged that the capture lacks, at 8 places")


def test_an_estimator_returns_its_own_quantities() -> None:
    """Each estimator from one capture returns exactly the metrics that it declares."""
    found = measure(mixed())
    for each in found.estimators:
        assert set(each.of_capture(found.tally, found.facts)) == set(each.per_capture)
        for direction in range(2 * len(found.capture.flows)):
            values = each.of_direction(direction, found.tally, found.facts)
            assert set(values) == set(each.per_direction)


def test_metrics_explain_themselves() -> None:
    """Each estimator from one capture states its vantage on its page."""
    for each in all_from_one():
        page = f"{inspect.getdoc(inspect.getmodule(each))} {inspect.getdoc(each)}"
        assert "Vantage:" in page, each


def test_undefined_is_counted() -> None:
    """Each undefined value has its reason beside it, and reasons are counted."""
    found = document(measure(capture_of(compressed())))
    nulls = [v for v in found["flows"][0]["forward"].values() if v["value"] is None]
    assert all(v["why"] for v in nulls)
    total = sum(found["undefined"].values())
    assert total == len(nulls) + sum(v["value"] is None for v in found["metrics"].values())


def test_most_payload_first() -> None:
    """Connections are listed by payload, and those left out are counted."""
    found = document(measure(mixed()), flows=2)
    payloads = [flow["forward"]["payload"]["value"] for flow in found["flows"]]
    assert payloads == sorted(payloads, reverse=True)
    assert found["flows"][0]["id"] == 2
    assert found["flows_not_listed"] == 5


def test_larger_direction_decides() -> None:
    """Connections are ordered by the payload of their larger direction."""
    assert by_larger_direction(np.array([60, 60, 0, 100, 0, 0, 60, 0])) == [1, 0, 3, 2]


def test_one_direction_only() -> None:
    """A capture of one direction is measured as far as possible, with a warning."""
    exchange = arriving()
    exchange.ack_ns, exchange.acked = exchange.ack_ns[:0], exchange.acked[:0]
    capture = capture_of(exchange, handshake=False)
    capture.flows.rows["seen"] &= np.uint8(Seen.HALF)
    found = document(measure(capture))
    assert "one direction only" in found["warnings"][0]
    assert found["flows"][0]["forward"]["goodput"]["value"] > 0
    assert found["flows"][0]["forward"]["rtt_min"]["value"] is None


def test_acks_only() -> None:
    """A capture with only ACKs of a connection has nothing to measure, and no error."""
    exchange = arriving()
    capture = capture_of(exchange, handshake=False)
    capture.whole = capture.whole.where(capture.whole.half == 1)
    capture.flows.rows["seen"] &= np.uint8(Seen.HALF << 1)
    found = document(measure(capture))
    assert found["flows"][0]["forward"] is None


def test_mid_stream() -> None:
    """A capture from the middle of connections counts the bytes from its start on."""

    def payloads(part: slice) -> dict[int, float]:
        capture = mixed()
        capture.whole = capture.whole.where(part)
        flows = document(measure(capture))["flows"]
        return {flow["id"]: flow["forward"]["payload"]["value"] for flow in flows}

    first, rest = payloads(slice(None, 3000)), payloads(slice(3000, None))
    # Connection 3 has retransmissions, which a capture from the middle cannot recognise.
    whole = {n: sent for n, sent in payloads(slice(None)).items() if n != 3}
    assert {n: first[n] + rest[n] for n in whole} == whole


def test_no_tcp() -> None:
    """Without a TCP packet the only message says so."""
    capture = capture_of(arriving())
    capture.whole = capture.whole.where(slice(0, 0))
    capture.flows = type(capture.flows)(capture.flows.rows[:0])
    with pytest.raises(AnalysisError, match="no TCP packet in 0 frames"):
        document(measure(capture))


def test_any_packets() -> None:
    """Packets of random content give neither an error nor a warning of numpy's."""
    random = np.random.default_rng(4)
    for _ in range(20):
        capture = mixed()
        rows = np.sort(random.integers(0, len(capture.whole), 300))
        whole = capture.whole.where(rows)
        for name in ("time_ns", "ts_value", "seq", "ack", "payload_bytes", "flags", "marks"):
            column = getattr(whole, name)
            noise = random.integers(0, 1 << 8 * min(column.itemsize, 5), len(column))
            changed = random.random(len(column)) < 0.3
            column[changed] = noise[changed].astype(column.dtype)
        capture.whole = whole
        with np.errstate(all="raise"):
            json.dumps(document(measure(capture)), allow_nan=False)


NEWCOMER = '''"""Segments in all. Vantage: any."""

from capture_analysis.definition import Definition
from capture_analysis.one_capture.from_one import FromOne

SEGMENTS_TOTAL = Definition("segments_total", "1", "segments of all directions")


class Segments(FromOne):
    """Count the segments."""

    title = "Segments"
    per_capture = (SEGMENTS_TOTAL,)

    def of_capture(self, tally, facts):
        """Add the segments of all directions."""
        return {SEGMENTS_TOTAL: sum(tally.segments(int(d)) for d in tally.directions())}
'''


def test_a_file_is_a_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new module in the folder is all that a new metric needs."""
    (tmp_path / "segments_total.py").write_text(NEWCOMER)
    monkeypatch.setattr(metrics, "__path__", [*metrics.__path__, str(tmp_path)])
    all_from_one.cache_clear()
    try:
        found = document(measure(capture_of(arriving())))
    finally:
        all_from_one.cache_clear()
        sys.modules.pop("capture_analysis.metrics.segments_total", None)
    assert found["metrics"]["segments_total"] == {"value": 600, "unit": "1"}
