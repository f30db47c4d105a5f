"""The check of a link whose delay changes, on packets made by hand."""

from packet_columns import packets
from support.column_run import Ends, analysis_of, queue_view

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.contract.network import START_NS
from twoway.measure.links.delay import check

MS = 1_000_000
# 10 ms for a second, then 20 ms.
LINKS = {"forward": {"delay": {"schedule": [[0, 10], [1, 20]], "repeat_s": None}}}


def _worst(travelled_ns: list[int], connections: int = 1) -> FidelityRow:
    """Check packets sent each half second with given delays; -1 means that it is lost."""
    sent_ns = [START_NS + row * 500 * MS for row in range(len(travelled_ns))]
    behind = packets(time_ns=sent_ns, seq=range(len(sent_ns)))
    came = [row for row, took_ns in enumerate(travelled_ns) if took_ns >= 0]
    arrived = packets(time_ns=[sent_ns[row] + travelled_ns[row] for row in came], seq=came)
    ends = [Ends(behind=behind, arrived=arrived)] * connections
    analysis = analysis_of(*ends, queues={"forward": queue_view()}, links=LINKS)
    (row,) = check(analysis, "forward", analysis.queues["forward"], None)
    return row


def test_packets_travel_for_as_long_as_the_table_says() -> None:
    """A packet has the delay of its departure's time; a lost packet has no delay."""
    sound = _worst([10 * MS, 10 * MS, 20 * MS, -1])
    assert sound.check == "forward: worst error of the delays of 3 packets, ns"
    assert (sound.value, sound.bound, sound.verdict) == (0, "0", Verdict.PASS)
    assert _worst([10 * MS] * 2, connections=2).check == (
        "forward: worst error of the delays of 4 packets, ns"
    )


def test_a_nanosecond_off_fails() -> None:
    """A packet that arrives 1 ns early or late fails the check with an error of 1 ns."""
    for off_ns in (-1, 1):
        found = _worst([10 * MS, 10 * MS + off_ns])
        assert (found.value, found.verdict) == (1, Verdict.FAIL)


def test_no_packet_is_off() -> None:
    """A link without departures has no wrong delay; a constant delay has no check."""
    for connections in (0, 1):
        nothing = _worst([], connections)
        assert nothing.check == "forward: worst error of the delays of 0 packets, ns"
        assert (nothing.value, nothing.verdict) == (0, Verdict.PASS)
    assert check(analysis_of(), "forward", queue_view(), None) == []
