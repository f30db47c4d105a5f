"""Figures that an experiment asks for on the page of its sweep."""

from collections.abc import Collection, Iterator

from pydantic import Field

from twoway.contract.model import Model, Name
from twoway.description.matrix import Matrix
from twoway.messages import suggest


class Scatter(Model):
    """A figure of one metric against another: a dot for each run."""

    y: Name = Field(description="a metric, such as throughput, of all connections or queues")
    x: Name = Field(
        description="the metric to draw it against, such as rtt_p95, of the same connections or "
        "queues"
    )
    for_each: Name | None = Field(
        default=None,
        description="an axis of the matrix: one figure for each of its values; by "
        "default one figure",
    )


def figure_problems(
    figures: list[Scatter], matrix: Matrix, metrics: Collection[str]
) -> Iterator[str]:
    """List unknown metrics and axes of figures, each after its field.

    Args:
        figures: the experiment's figures.
        matrix: the experiment's matrix.
        metrics: the names of all metrics, without the connection or queue.
    """
    for index, figure in enumerate(figures):
        for field, metric in (("y", figure.y), ("x", figure.x)):
            if metric not in metrics:
                yield f'figures.{index}.{field}: no metric "{metric}"{suggest(metric, metrics)}'
        if figure.for_each is not None and figure.for_each not in matrix:
            yield f'figures.{index}.for_each: no axis "{figure.for_each}" in matrix'
