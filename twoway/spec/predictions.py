"""Filling the values that an experiment's expectations ask of its theory."""

from twoway.contract.network import Connection
from twoway.errors import SpecError
from twoway.spec.experiment import Direction, Expected, Experiment, Profile
from twoway.spec.topology import Graph
from twoway.theory.network import Link, Setup, known_theories, predict

_ETHERNET_BYTES, _HEADER_BYTES, _TIMESTAMP_BYTES = 14, 40, 12


def predicted(
    where: str, theory: str | None, expect: list[Expected], setup: Setup
) -> list[Expected]:
    """Replace each `value: theory` of expectations by the theory's number.

    Args:
        where: the experiment, for errors.
        theory: the theory's name; None if the experiment has none.
        expect: the expectations for this point.
        setup: the experiment's parameters.

    Raises: SpecError if the theory is unknown, does not cover the parameters, or does not predict
        a metric.
    """
    if theory is None:
        return expect
    if theory not in known_theories():
        known = ", ".join(known_theories())
        raise SpecError([f'{where}: theory: no "{theory}"; there are: {known}'])
    try:
        values = predict(theory, setup)
    except ValueError as error:
        raise SpecError([f"{where}: theory: {theory}: {error}"]) from error
    asked = {each.metric for each in expect if each.value == "theory"}
    problems = [
        f"{where}: expect: theory {theory} says nothing of {metric}; it has: "
        f"{', '.join(sorted(values))}"
        for metric in sorted(asked - set(values))
    ]
    if problems:
        raise SpecError(problems)
    return [
        each.model_copy(update={"value": values[each.metric]}) if each.value == "theory" else each
        for each in expect
    ]


def setup_of(
    experiment: Experiment, profile: Profile, graph: Graph, connections: list[Connection]
) -> Setup:
    """Collect the parameters of an experiment that theories use."""
    queues = {q.name: profile.directions[q.direction] for q in graph.placed_queues}
    return Setup(
        links={name: _link(direction, experiment) for name, direction in queues.items()},
        connections=tuple(connections),
        segment_bytes=experiment.stack.segment_bytes,
        acks_every_segment=experiment.stack.acks == "every-segment",
        warm_up_s=experiment.warm_up_s,
        duration_s=experiment.duration_s,
        modules=experiment.modules,
        parameters=experiment.topology.parameters,
        pacing=experiment.stack.pacing,
    )


def _link(direction: Direction, experiment: Experiment) -> Link:
    stack, rate_bit = experiment.stack, direction.start_mbit * 1e6
    data = direction.link_bytes(stack.mtu_bytes + _ETHERNET_BYTES)
    options = _TIMESTAMP_BYTES if stack.timestamps else 0
    ack = direction.link_bytes(_HEADER_BYTES + options + _ETHERNET_BYTES)
    return Link(
        rate_bit=rate_bit,
        delay_ns=direction.delay_ns,
        buffer_packets=direction.queue_packets,
        data_s=data * 8 / rate_bit,
        ack_s=ack * 8 / rate_bit,
        payload_share=stack.segment_bytes / data,
        dtm=direction.dtm.model_dump() if direction.dtm else None,
    )
