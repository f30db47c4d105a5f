"""The limit of a transfer: one cause and one sentence."""

from typing import Any

import pytest
from capture_analysis.metrics.transfer_limits import NOT_NEAR, SCALE_WAS_CUT
from capture_analysis.one_capture.document import document
from capture_analysis.one_capture.limit import AT_ONCE, CANNOT_TELL, LINK, QUEUE, limit_of, queueing
from capture_analysis.one_capture.single import measure
from measured_captures import values
from simulated_path import Connection, Link, Simulation

WAITS: dict[str, Any] = {
    "limited_application": 0.0,
    "limited_pause": 0.5,
    "limited_recovery": 0.1,
    "limited_receive_window": 0.3,
    "limited_congestion_window": 0.05,
    "limited_ack_compression": 0.05,
    "limited_send_buffer": 0.0,
    "data_time": 20.0,
    "pauses": 20.0,
    "goodput": 7.4,
    "delivered_peak": 7.8,
}


def test_a_capture_without_much_of_the_data_shows_no_cause() -> None:
    """If a quarter of the data or more is missing, no cause is named, and the sentence says why."""
    assert limit_of(WAITS | {"data_time": 20.0, "unseen": 0.2}).cause != CANNOT_TELL
    late = {"unseen": 0.5, "late_segments": 500, "segments": 1000}
    assert limit_of(WAITS | {"data_time": 20.0} | late).cause != CANNOT_TELL
    found = limit_of(WAITS | {"data_time": 20.0, "unseen": 0.5})
    assert found.cause == CANNOT_TELL
    assert found.sentence.startswith("It cannot be told: the capture lacks 50 % of the data")


def test_pauses_limit_nothing() -> None:
    """Pauses are a part of their own: the cause's share is of the remaining time."""
    found = limit_of(WAITS)
    assert found.cause == "receive window"
    assert found.share == pytest.approx(0.6)
    assert found.sentence == (
        "For 60 % of the time in which it sends, the receiver's window is full "
        "(besides, it was idle for 20 s). "
        "Its link carries at least 7.8 Mbit/s, which it delivered."
    )


def test_pauses_that_take_nearly_all_the_time() -> None:
    """A transfer that is idle for nine tenths of the time is limited by its application alone."""
    found = limit_of(WAITS | {"limited_pause": 0.96, "pauses": 48.0, "bottleneck_rate": 8.0})
    assert found.sentence == (
        "For 96 % of the time, its application has nothing to send: it was idle for 48 s."
    )
    assert found.cause == "application"


@pytest.mark.parametrize(("share", "cause"), [(0.9, LINK), (0.89, "receive window")])
def test_full_link_comes_first(share: float, cause: str) -> None:
    """A link of known rate is full from 90 % of it on, whatever the data waits for."""
    found = limit_of(WAITS | {"bottleneck_rate": 8.07, "efficiency": share, "link_share": 0.5})
    assert found.cause == cause


def test_sentence_on_a_full_link() -> None:
    """The sentence on a full link has its share, at most all, and its rate with three digits."""
    values = {"bottleneck_rate": 8.0712, "efficiency": 0.9712, "pauses": 0}
    assert limit_of(values).sentence == "The link is full: 97.1 % of 8.07 Mbit/s."
    assert "full: 100 % of" in limit_of(values | {"efficiency": 1.03}).sentence


@pytest.mark.parametrize("reason", [NOT_NEAR, SCALE_WAS_CUT])
def test_data_of_one_time_show_no_cause_from_any_place(reason: str) -> None:
    """A single message is the reason for no cause, whatever else is missing."""
    values: dict[str, Any] = {"limited_application": reason, "data_time": 0}
    assert limit_of(values).sentence == f"It cannot be told: {AT_ONCE}."


@pytest.mark.parametrize("cause", ["limited_recovery", "limited_ack_compression"])
def test_longest_wait_limits(cause: str) -> None:
    """The cause with the largest share is named."""
    found = limit_of(WAITS | {"limited_receive_window": 0.05, cause: 0.35})
    assert found.cause in {"recovery", "ACK compression"}
    assert found.share == pytest.approx(0.7)


@pytest.mark.parametrize("share", ["link_share", "link_use"])
def test_link_shared_with_others_is_full(share: str) -> None:
    """All connections of a link together can fill it; the sentence has its idle time apart."""
    values = {"bottleneck_rate": 8.07, "efficiency": 0.5, share: 0.97, "pauses": 2}
    found = limit_of(values)
    assert (found.cause, found.share) == (LINK, 0.97)
    assert found.sentence == (
        "The link is full: 97 % of 8.07 Mbit/s (besides, it was idle for 2 s)."
    )


@pytest.mark.parametrize(
    ("waits", "cause"),
    [
        ({"limited_congestion_window": 0.9}, QUEUE),
        ({"limited_recovery": 0.9}, QUEUE),
        ({"limited_application": 0.9}, "application"),
        ({"limited_send_buffer": 0.9}, QUEUE),
        ({"limited_receive_window": 0.95}, "receive window"),
        ({"limited_receive_window": 0.95, "rtt_growth": 0.3}, QUEUE),
        ({"afar_sender": 0.9}, QUEUE),
    ],
)
@pytest.mark.parametrize(("stands", "full"), [(0.9, True), (0.89, False)])
def test_queue_that_stands(
    waits: dict[str, float], cause: str, stands: float, *, full: bool
) -> None:
    """If data waits for ACKs and a queue nearly always stands, the queue is named."""
    found = limit_of(waits | {"data_time": 20.0, "standing_queue": stands})
    assert found.cause == cause if full else found.cause != QUEUE
    if full and cause == QUEUE:
        delayed = "data" if "afar_sender" in waits else "data or of their ACKs"
        assert found.sentence == f"A queue stood for 90 % of the time, on the way of the {delayed}."


REACHED: dict[str, Any] = {
    **dict.fromkeys(("limited_congestion_window", "standing_queue"), 0.6),
    "data_time": 20.0,
    "rate_reached": 8.0,
    "throughput": 7.4,
    "rtt_growth": 0.6,
    "rtt_min": 20.0,
    "rtt_median": 30.0,
}


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, LINK),
        ({"throughput": 7.1}, "congestion window"),
        ({"rate_reached": "no guess"}, "congestion window"),
        ({"rtt_growth": 0.4}, QUEUE),
        ({"standing_queue": 0.1, "rtt_median": 23.0}, LINK),
        ({"standing_queue": 0.0}, "congestion window"),
        ({"bottleneck_rate": 7.0, "rate_reached": "no guess", "standing_queue": 0.95}, LINK),
        ({"limited_congestion_window": None, "afar_sender": 0.9, "rtt_growth": "afar"}, LINK),
        ({"rtt_growth": 0.4, "standing_queue": 0.4}, "congestion window"),
        ({"rtt_growth": -0.4}, "congestion window"),
        (
            {"rtt_growth": 0.4, "limited_congestion_window": 0, "limited_application": 0.6},
            "application",
        ),
    ],
)
def test_a_guess_that_the_delivery_reached(change: dict[str, Any], cause: str) -> None:
    """A guessed rate counts if the delivery reached it and round trips grew with the flight.

    From afar it counts if a queue stood now and then. If round trips do not grow, the queue is
    named, unless they shrink, as with a receiver that is late.
    """
    assert limit_of(REACHED | change).cause == cause


def test_an_application_paces_its_data() -> None:
    """No link is full at the pace of an application if no queue forms."""
    values = {"bottleneck_rate": 1.4, "efficiency": 0.99, "data_time": 5.0, "afar_application": 0.9}
    assert limit_of(values | {"standing_queue": 0.0}).cause == "application"
    assert limit_of(values | {"standing_queue": 0.1}).cause == LINK


def test_a_queue_on_a_lan_is_not_seen() -> None:
    """On a LAN a full window is named only if the link's rate shows that the link is not full."""
    values = {"afar_sender": 0.9, "data_time": 20.0, "standing_queue": 0.0, "handshake_rtt": 0.2}
    assert limit_of(values).cause == CANNOT_TELL
    assert limit_of(values | {"link_use": 0.1}).cause == "sender"
    assert limit_of(values | {"handshake_rtt": 20.0}).cause == "sender"


@pytest.mark.parametrize("cause", ["limited_congestion_window", "afar_sender"])
def test_what_a_full_link_looks_like(cause: str) -> None:
    """A cause that a full link would also show is named only if a full link would be noticed."""
    values = {cause: 0.9, "data_time": 20.0}
    found = limit_of(values)
    assert (found.cause, found.share) == (CANNOT_TELL, None)
    assert found.sentence.startswith("It cannot be told: neither the link's rate nor a queue")
    assert limit_of(values | {"standing_queue": 0.1}).share == 0.9
    assert limit_of(values | {"link_use": 0.1}).share == 0.9


def test_an_offload_hides_a_full_link() -> None:
    """If merged segments hide the rate of a full link, no window is named in its place."""
    links = Link(1.1e7, 10_000_000, 16_000_000), Link(1.1e7, 10_000_000, 16_000_000)
    mine = Connection(segments=1000, window=106, tick_ns=1_000_000, announced=1 << 20)
    others = [
        Connection(segments=1000, window=48, tick_ns=4_000_000, sender=1, announced=1 << 20)
        for _ in range(3)
    ]
    simulation = Simulation(links, [mine, *others], "middle").run(8000)
    found = limit_of(vars(values(measure(simulation.captured(merge=44)), 2)))
    assert found.cause == CANNOT_TELL
    assert "an offload merged segments" in found.sentence


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, CANNOT_TELL),
        ({"segments_merged": 0}, "congestion window"),
        ({"link_use": 0.5}, "congestion window"),
        ({"rtt_median": 41}, "congestion window"),
        ({"limited_congestion_window": 0.0, "limited_recovery": 0.9}, "recovery"),
    ],
)
def test_what_an_offload_hides(change: dict[str, Any], cause: str) -> None:
    """Merged segments matter if the round trip grew, no rate is known, and a window would limit."""
    waits = {"limited_congestion_window": 0.9, "data_time": 20.0, "standing_queue": 0.0}
    merged = {"segments_merged": 9, "rtt_min": 40, "rtt_median": 80}
    assert limit_of(waits | merged | change).cause == cause


def test_pauses_of_a_sender_far_away() -> None:
    """The share of a sender that holds back does not include pauses."""
    values = {"afar_sender": 0.4, "afar_pause": 0.5, "data_time": 10.0, "link_use": 0.1}
    assert limit_of(values).share == pytest.approx(0.8)


def test_known_rate_replaces_the_least_one() -> None:
    """If the link's rate is known, the sentence has no lower bound of it."""
    found = limit_of(WAITS | {"bottleneck_rate": 80.0, "efficiency": 0.1})
    assert found.sentence == (
        "For 60 % of the time in which it sends, the receiver's window is full "
        "(besides, it was idle for 20 s)."
    )


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        pytest.param({"receive_window": 0.25}, 0.5, id="as large as the unknown part"),
        pytest.param({"receive_window": 0.24}, None, id="less than the unknown part"),
        pytest.param({"receive_window": 0.3, "application": 0.1}, 0.6, id="all known"),
    ],
)
def test_share_of_the_time_that_sends(shares: dict[str, float], told: float | None) -> None:
    """A share is named if the unknown part cannot exceed it."""
    values = {f"limited_{name}": share for name, share in shares.items()}
    assert limit_of(values | {"data_time": 20.0, "limited_pause": 0.5}).share == told


def test_no_time_that_sends() -> None:
    """A direction that never sends has no cause."""
    assert limit_of(WAITS | {"data_time": 0.0}).cause == CANNOT_TELL


def test_unknown_shares() -> None:
    """If causes without a value may have the largest share, no cause is named."""
    windows = ("recovery", "receive_window", "congestion_window", "send_buffer")
    unknown = dict.fromkeys((f"limited_{each}" for each in windows), "no handshake")
    found = limit_of(WAITS | unknown)
    assert found.cause == CANNOT_TELL
    assert found.share is None
    assert found.sentence.startswith("It cannot be told: no handshake. Its link carries at least")
    assert limit_of({}).sentence == "It cannot be told: it was not measured."


def test_queue_in_words() -> None:
    """The sentence has the queue's delay, median minus shortest round trip, if above a fifth."""
    grows = {"in_flight_segments": 9.0, "rtt_growth": 0.9}
    assert queueing(grows | {"rtt_min": 16.1, "rtt_median": 81.0}) == (
        "The queue adds 64.9 ms: the round trip is at least 16.1 ms, in the median 81 ms."
    )
    assert not queueing(grows | {"rtt_min": 16.1, "rtt_median": 19.0})
    assert queueing(grows | {"rtt_min": 10.0, "rtt_median": 12.1})
    assert not queueing(grows | {"rtt_min": 10.0, "rtt_median": 12.0})
    assert not queueing(grows | {"rtt_min": 0.0, "rtt_median": 19.0})
    assert not queueing(grows | {"rtt_min": "none", "rtt_median": 19.0})


def test_late_acks_are_no_queue() -> None:
    """A delay is the queue's only if round trips grow with a flight of several segments."""
    late = {"rtt_min": 20.0, "rtt_median": 220.0}
    assert queueing(late | {"in_flight_segments": 0.02, "rtt_growth": 0.9}) == (
        "ACKs come 200 ms late, or with answers: the round trip is at least 20 ms, in the median "
        "220 ms."
    )
    assert not queueing(late | {"in_flight_segments": 9.0, "rtt_growth": 0.1})
    assert queueing(late | {"in_flight_segments": 9.0, "standing_queue": 0.9}).startswith("The que")


def test_limit_in_json() -> None:
    """A document has the limit of each direction with data, and of no other."""
    links, download = (Link(8e6), Link(1e8)), Connection(window=30, segments=3000, every=2)
    found = document(measure(Simulation(links, [download], "near").run().captured()))
    limits = found["flows"][0]["limits"]
    assert list(limits) == ["forward"]
    assert limits["forward"]["value"] == LINK
    assert limits["forward"]["share"] > 0.9
