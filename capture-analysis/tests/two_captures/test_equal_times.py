"""Captures in which packets have equal times: coarse clocks, traces, grants."""

import json

import measured_captures
import numpy as np
import pytest
from capture_analysis.columns import IntArray
from capture_analysis.errors import AnalysisError
from capture_analysis.metrics.compression_factor import NO_BOTTLENECK
from capture_analysis.one_capture.document import document as capture_document
from capture_analysis.one_capture.single import measure
from capture_analysis.two_captures.pair import PairOfCaptures
from capture_analysis.two_captures.pair_document import document
from hypothesis import given, settings
from hypothesis import strategies as st
from two_vantage import CYCLE_NS, PROPAGATION_NS, ColumnCapture, TwoWayPath, at

PATH = TwoWayPath()
FLOWS = PATH.flows
# One ns, an ACK's time, opportunities of a trace, a cycle, a clock of whole seconds, an hour.
UNITS_NS = (1, 66_000, 1_000_000, 10_000_000, CYCLE_NS, 10**9, 3600 * 10**9)


def coarse(time_ns: IntArray, unit_ns: int) -> IntArray:
    """Round times up to a unit: packets that leave in one opportunity have one time."""
    return np.asarray(-(-time_ns // unit_ns) * unit_ns)


def reasons(a_ns: IntArray, b_ns: IntArray) -> set[str]:
    """Measure two captures; return the reasons why compression factors have no bound."""
    a, b = (ColumnCapture(at(PATH.packets, each), FLOWS) for each in (a_ns, b_ns))
    found = document(PairOfCaptures(("a", "b"), lambda: a, lambda: b).measure(one_clock=True))
    json.dumps(found, allow_nan=False)
    both = (each[name] for each in found["flows"] for name in ("forward", "backward"))
    return {each["compression_factor_bound"].get("why", "") for each in both if each}


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(UNITS_NS), st.sampled_from(UNITS_NS), st.integers(0, PROPAGATION_NS))
def test_equal_times_are_measured(a_unit_ns: int, b_unit_ns: int, later_ns: int) -> None:
    """Any resolution of the times of either capture ends in a document of finite numbers."""
    a_ns, b_ns = coarse(PATH.a_ns, a_unit_ns), coarse(PATH.b_ns + later_ns, b_unit_ns)
    reasons(a_ns, b_ns)
    for time_ns in (a_ns, b_ns):
        one = measured_captures.ColumnCapture(at(PATH.packets, time_ns), FLOWS)
        json.dumps(capture_document(measure(one)), allow_nan=False)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 60),
    st.sampled_from(UNITS_NS),
    st.sets(st.integers(0, 59), max_size=8),
    st.sets(st.integers(0, 59), max_size=8),
)
def test_few_packets_are_measured(count: int, unit_ns: int, a: set[int], b: set[int]) -> None:
    """Captures that each lack some of a few packets end in a document, or in a sentence."""
    rows = np.argsort(np.minimum(PATH.a_ns, PATH.b_ns), kind="stable")[:count]
    both = []
    for time_ns, missing in ((PATH.a_ns, a), (PATH.b_ns, b)):
        mine = rows[[row for row in range(len(rows)) if row not in missing]]
        both.append(
            ColumnCapture(at(PATH.packets.where(mine), coarse(time_ns[mine], unit_ns)), FLOWS)
        )
    try:
        found = PairOfCaptures(("a", "b"), lambda: both[0], lambda: both[1]).measure(one_clock=True)
    except AnalysisError:
        return
    json.dumps(document(found), allow_nan=False)


@pytest.mark.parametrize("unit_ns", [4_000_000, 20_000_000])
def test_acks_of_one_instant_have_no_transmission_time(unit_ns: int) -> None:
    """ACKs that leave in one opportunity give a compression factor no bound."""
    a_ns = np.where(PATH.way == 1, coarse(PATH.a_ns, unit_ns), PATH.a_ns)
    assert reasons(a_ns, PATH.b_ns) == {NO_BOTTLENECK}


@pytest.mark.parametrize("unit_ns", [CYCLE_NS, 10**9, 10**15])
def test_times_that_contradict_the_path_are_refused(unit_ns: int) -> None:
    """If one capture's times are coarser than the path, a sentence says so, whichever it is."""
    whole, rounded = (ColumnCapture(at(PATH.packets, each), FLOWS) for each in (
        PATH.a_ns, coarse(PATH.b_ns, unit_ns)
    ))  # fmt: skip
    for a, b in ((whole, rounded), (rounded, whole)):
        with pytest.raises(AnalysisError, match="before it was sent"):
            PairOfCaptures(("a", "b"), lambda a=a: a, lambda b=b: b).measure()  # type: ignore[misc]
