"""An experiment's statements at one point, with numbers computed by theories."""

from collections.abc import Iterable

from twoway.contract.network import ETHERNET_BYTES, Connection, DatagramFlow
from twoway.contract.statements import Claim, Prediction
from twoway.description.experiment import Experiment, Profile
from twoway.description.graph import Graph
from twoway.description.matrix import AxisValues
from twoway.description.statements import Computed, Predicted, full_run, said_at
from twoway.errors import SpecError
from twoway.links.element import Link
from twoway.messages import suggest
from twoway.theory.network import Bottleneck, Setup
from twoway.theory.registry import known_theories, predict, printed_values, tests_testbed


def predictions_at(
    where: str, experiment: Experiment, point: AxisValues, setup: Setup
) -> Iterable[Prediction]:
    """List the predictions for a point.

    Args:
        where: the experiment, for errors.
        experiment: the experiment's fields at the point.
        point: the point.
        setup: the experiment's parameters, for theories.

    Raises: SpecError if a theory is unknown, does not cover the parameters, or does not predict a
        metric.
    """
    if experiment.theory is not None:
        _check_known(where, experiment.theory)
    computed: dict[str, Computed] = {}
    for index, each, metric in said_at(point, experiment.predictions):
        theory = each.theory or experiment.theory or ""
        if theory not in computed:
            computed[theory] = _computed(where, theory, setup)
        if metric not in computed[theory][0]:
            known = ", ".join(sorted(computed[theory][0]))
            problem = f"theory {theory} does not predict {metric}; it has: {known}"
            raise SpecError([f"{where}: predictions.{index}: {problem}"])
        of_testbed = tests_testbed(theory, metric)
        yield each.make_prediction(metric, point, theory, computed[theory], of_testbed=of_testbed)


def claims_at(
    where: str, name: str, experiment: Experiment, point: AxisValues, setup: Setup
) -> Iterable[Claim]:
    """List the paper's claims about a point, with the numbers of its formulas.

    Args:
        where: the experiment, for errors.
        name: the experiment's id.
        experiment: the experiment's fields at the point.
        point: the point.
        setup: the experiment's parameters, for formulas.

    Raises: SpecError if the experiment's theory does not cover the parameters, or has no printed
        form of a metric.
    """
    forms, place = None, experiment.source.where if experiment.source else ""
    for index, each, metric in said_at(point, experiment.claims):
        if each.has_formula and forms is None:
            _, forms = _computed(where, experiment.theory or "", setup)
        if each.has_formula and metric not in (forms or {}):
            problem = f"theory {experiment.theory} has no printed form of {metric}"
            raise SpecError([f"{where}: claims.{index}: {problem}"])
        yield _complete(each.make_claim(metric, point, forms or {}, place), name, point)


def metric_problems(experiment: Experiment, point: AxisValues, known: list[str]) -> Iterable[str]:
    """List unknown metrics in statements at a point, and repeated predictions.

    Args:
        experiment: the experiment's fields at the point.
        point: the point.
        known: the names of all metrics.
    """
    first: dict[tuple[str, str | None], int] = {}
    for kind, statements in experiment.statements.items():
        for index, statement, metric in said_at(point, statements):
            if metric not in known:
                yield f'{kind}.{index}.metric: no metric "{metric}"{suggest(metric, known)}'
            if isinstance(statement, Predicted):
                earlier = first.setdefault((metric, statement.theory), index)
                if earlier != index:
                    yield (
                        f'{kind}.{index}.metric: "{metric}" is in {kind}.{earlier} already: give '
                        "each an `at` of its own, or leave one out"
                    )


def _complete(claim: Claim, name: str, point: AxisValues) -> Claim:
    """Complete the names of the runs that a claim refers to by this point's values."""
    against = claim.against and full_run(claim.against, name, point)
    differs = claim.differs
    if differs and differs.explained_by:
        run = full_run(differs.explained_by, name, point)
        differs = differs.model_copy(update={"explained_by": run})
    return claim.model_copy(update={"against": against, "differs": differs})


def _check_known(where: str, theory: str) -> None:
    if theory not in known_theories():
        known = ", ".join(known_theories())
        raise SpecError([f'{where}: theory: no "{theory}"; there are: {known}'])


def _computed(where: str, theory: str, setup: Setup) -> Computed:
    _check_known(where, theory)
    try:
        return predict(theory, setup), printed_values(theory, setup)
    except ValueError as error:
        raise SpecError([f"{where}: theory: {theory}: {error}"]) from error


def setup_of(
    experiment: Experiment,
    profile: Profile,
    graph: Graph,
    connections: Iterable[Connection],
    datagrams: Iterable[DatagramFlow] = (),
) -> Setup:
    """Collect the parameters of an experiment that theories use."""
    queues = {q.name: profile.directions[q.direction] for q in graph.placed_queues}
    return Setup(
        links={name: _bottleneck(direction, experiment) for name, direction in queues.items()},
        connections=tuple(connections),
        segment_bytes=experiment.stack.segment_bytes(experiment.stack.ip),
        acks_every_segment=experiment.stack.acks == "every-segment",
        warm_up_s=experiment.warm_up_s,
        duration_s=experiment.duration_s,
        modules=experiment.parameters,
        parameters=experiment.topology.parameters,
        pacing=experiment.stack.pacing,
        receive_window_packets=experiment.stack.receive_window_packets,
        datagrams=tuple(datagrams),
        pools=profile.pools,
        medium=profile.half_duplex.medium if profile.half_duplex else None,
    )


def _bottleneck(direction: Link, experiment: Experiment) -> Bottleneck:
    stack, rate_bit = experiment.stack, direction.start_mbit * 1e6
    data = direction.link_bytes(stack.mtu_bytes + ETHERNET_BYTES)
    ack = direction.link_bytes(stack.header_bytes(stack.ip) + ETHERNET_BYTES)
    return Bottleneck(
        link=direction,
        data_s=data * 8 / rate_bit,
        ack_s=ack * 8 / rate_bit,
        payload_share=stack.segment_bytes(stack.ip) / data,
    )
