"""Gilbert's model is for random losses with a constant share."""

from dataclasses import replace

import pytest

from twoway.description.predictions import setup_of
from twoway.links.loss import Loss
from twoway.runs.points import load_point
from twoway.theory.network import Setup
from twoway.theory.predictions import link_impairments, link_loss
from twoway.theory.predictions.link_loss import predict


def _setup(name: str) -> Setup:
    point = load_point(name)
    return setup_of(point.experiment, point.profile, point.graph, point.connections)


@pytest.mark.parametrize("loss", [{"every": 100}, {"schedule": [[0, 1]]}])
def test_losses_without_a_constant_chance_are_refused(loss: dict[str, object]) -> None:
    """A link that loses by count or by a schedule has no deviation from a share."""
    setup = _setup("link-loss@control=reno,burst=1,seed=1")
    assert predict(setup)["link_loss_deviation.flow"] == 0
    link = setup.links["forward"].with_fields(loss=Loss.model_validate(loss))
    with pytest.raises(ValueError, match="forward loses no constant share of packets by chance"):
        predict(replace(setup, links={**setup.links, "forward": link}))


def test_a_path_over_several_links_is_refused() -> None:
    """A theory of one link predicts nothing for a connection over two."""
    setup = _setup("link-loss@control=reno,burst=1,seed=1")
    (flow,) = setup.connections
    over_two = flow.model_copy(update={"directions": ("forward", "reverse")})
    longer = replace(setup, connections=(over_two,))
    for theory in (link_loss, link_impairments):
        with pytest.raises(ValueError, match="flow passes several links"):
            theory.predict(longer)
