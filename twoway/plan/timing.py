"""Times of a run on the guest's clock."""

from twoway.contract.network import START_NS
from twoway.description.point import Point


def stop_ns(point: Point) -> int:
    """Compute when a run's traffic stops, ns on the guest's clock."""
    return START_NS + round(point.experiment.duration_s * 1e9)


def drain_s(point: Point) -> float:
    """Bound the time that a run's last packet takes to arrive, s."""
    mtu_bit = point.experiment.stack.mtu_bytes * 8
    return 5 + sum(
        d.queue_packets * mtu_bit / (d.least_mbit * 1e6) + d.delay_ns / 1e9
        for d in point.profile.directions.values()
    )
