"""Packets that a policer drops: those that its token bucket refuses."""

from capture_analysis.columns import BoolArray

from twoway.measure.analysis import Analysis, QueueView
from twoway.theory.token_bucket import TokenBucket


def refused_by_policer(analysis: Analysis, view: QueueView) -> BoolArray:
    """Mark the packets offered to a queue that the policer before it refuses; shape (n,)."""
    link = analysis.run.link(view.queue)
    assert link
    assert link.policer
    packets = view.passed.packets
    return TokenBucket.of(**link.policer).refuses(packets.time_ns, packets.frame_bytes)
