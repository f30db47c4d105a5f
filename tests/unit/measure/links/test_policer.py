"""The refusals of a policer, by hand."""

import math
from typing import Any

from support.column_run import analysis_of, queue_view
from support.queue_columns import passage_of, queue_of

from twoway.contract.judge import Verdict
from twoway.contract.metrics import FidelityRow
from twoway.measure.links.policer import check, policed_share
from twoway.measure.real_time import ClockError

MS = 1_000_000
# 8 Mbit/s: a byte takes a microsecond, and the bucket holds two frames of 1000.
POLICER: dict[str, float] = {"rate_mbit": 8, "burst_bytes": 2000}


def _share(steady_ns: int, stop_ns: int, policer: dict[str, float] | None = POLICER) -> float:
    """Return the share lost of four frames at once, two of which do not leave, and one later."""
    entered = [0, 0, 0, 0, 5 * MS]
    view = queue_view(passage_of(entered, [MS, 2 * MS, -1, -1, 6 * MS], frame_bytes=[1000] * 5))
    links = {"forward": {"policer": policer}}
    analysis = analysis_of(links=links, steady_ns=steady_ns, stop_ns=stop_ns)
    (found,) = policed_share.measure(analysis, view)
    return found


def test_share_of_what_comes_in_the_steady_window() -> None:
    """The policer refuses two of four simultaneous packets; the steady window is half open."""
    assert _share(0, 6 * MS) == 2 / 5
    assert _share(0, 5 * MS) == 2 / 4
    assert _share(1, 6 * MS) == 0
    assert _share(5 * MS, 6 * MS) == 0
    assert math.isnan(_share(1, 5 * MS))


def test_a_drop_at_a_full_queue_is_not_the_policers() -> None:
    """A packet lost while the queue is full is the queue's drop, not the policer's."""
    passed = passage_of([0, 1, 2], [MS, 2 * MS, -1], frame_bytes=[1000] * 3)
    analysis = analysis_of(links={"forward": {"policer": POLICER}}, steady_ns=0, stop_ns=MS)
    shares = [
        policed_share.measure(analysis, queue_view(passed, queue_of(limit_packets=places)))
        for places in (2, 3)
    ]
    assert shares == [(0.0,), (1 / 3,)]


def _odd_drops(left_ns: list[int], counted: int, larger: int = 0, **link: Any) -> FidelityRow:
    """Check frames at once and a bucket for two, with given fates; the first may be larger."""
    sizes = [1000 + larger, *[1000] * (len(left_ns) - 1)]
    view = queue_view(passage_of([0] * len(left_ns), left_ns, frame_bytes=sizes))
    kernel = {"dev": "r1-eth1", "kind": "clsact"}
    counts = {"before": [kernel | {"drops": 0}], "after": [kernel | {"drops": counted}]}
    documents = {f"qdisc/r1-{when}.json": count for when, count in counts.items()}
    links = {"forward": {"policer": POLICER, **link}}
    analysis = analysis_of(links=links, documents=documents)
    (row,) = check(analysis, "forward", view, None)
    return row


def test_a_drop_of_the_policer_is_one_of_its_bucket() -> None:
    """A frame that the bucket refuses must be dropped, and the kernel must count as many drops.

    A packet that the bucket passes may be dropped by the queue behind it.
    """
    sound = _odd_drops([1000, 2000, -1], counted=1)
    assert sound.check == "forward: 1 drops before the queue that differ from the token bucket's"
    assert (sound.value, sound.bound, sound.verdict) == (0, "0", Verdict.PASS)
    assert _odd_drops([1000, -1, -1], counted=1).value == 0
    passed_on = _odd_drops([1000, 2000, 3000], counted=1)
    assert (passed_on.value, passed_on.verdict) == (1, Verdict.FAIL)
    assert _odd_drops([1000, 2000, -1], counted=3).value == 2
    assert _odd_drops([1000, 2000, 3000], counted=0).value == 2


def test_no_policer_refuses_nothing() -> None:
    """Without a policer the share of refused packets is undefined."""
    assert math.isnan(_share(0, 6 * MS, policer=None))


def test_drops_are_checked_where_times_are_exact() -> None:
    """Without a policer, or on a clock that runs while the host works, no check is made."""
    analysis = analysis_of(links={"forward": {"policer": POLICER}})
    assert check(analysis, "forward", queue_view(), ClockError(analysis)) == []
    assert check(analysis_of(), "forward", queue_view(), None) == []


def test_a_frame_above_the_mtu_takes_no_tokens() -> None:
    """Packets above the MTU are dropped before the policer, whose bucket keeps two frames."""
    mtu = {"bytes": 986, "icmp": True}
    row = _odd_drops([-1, MS, 2 * MS, -1], 1, larger=1, mtu_bytes=mtu)
    assert row.verdict is Verdict.PASS
