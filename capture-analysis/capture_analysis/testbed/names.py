"""The names of all metrics: a family, a dot, and the queue or connection it was measured on.

Those of the run as a whole have the family alone.

Apart from the code that measures, so that an experiment can be checked without loading it.
"""

from collections.abc import Iterable

RUN_FAMILIES = (
    "congestion_epochs",
    "drops_per_epoch",
    "single_victim_epochs",
    "alternating_victims",
    "queue_correlation",
)
QUEUE_FAMILIES = (
    "utilisation",
    "queue_peak",
    "queue_peak_data",
    "queue_mean",
    "busy_periods",
    "busy_period_segments",
    "busy_period_cycle",
    "drops_data",
    "drops_ack",
)
CONNECTION_FAMILIES = (
    "goodput",
    "throughput",
    "queued_mean",
    "efficiency",
    "ack_to_data",
    "ack_spacing_ratio",
    "acks_compressed",
    "ack_bunch_mean",
    "ack_bunch_max",
    "ack_bunch_max_sent",
    "compression_factor",
    "compression_factor_bound",
    "acks_lost",
)


# Of directions that are DTM channels.
CHANNEL_FAMILIES = (
    "slots_mean",
    "slots_min",
    "slots_max",
    "capacity",
    "capacity_unused",
    "reallocations",
    "first_reallocation",
)


def metric_names(
    directions: Iterable[str], connections: Iterable[str], channels: Iterable[str] = ()
) -> list[str]:
    """Every metric of a run with these queues, connections and DTM channels."""
    return [
        *RUN_FAMILIES,
        *(
            f"{family}.{name}"
            for names, families in (
                (directions, QUEUE_FAMILIES),
                (connections, CONNECTION_FAMILIES),
                (channels, CHANNEL_FAMILIES),
            )
            for name in names
            for family in families
        ),
    ]
