"""Parameters of congestion controls that are part of the kernel, set and read back."""

from pathlib import Path

import pytest
import yaml
from support.plans import said_in_guest
from support.running import SMALL, measure, write_experiment
from support.runs import carry_out

from twoway.description.congestion import KERNELS_OWN
from twoway.errors import RunError
from twoway.guest.cache import Guest
from twoway.manifest import read_manifest

WRITABLE = "cd /sys/module; find tcp_*/parameters -type f -perm -200 > /mnt/run/said"
LINK = {"rate_mbit": 50, "delay_ms": 20, "queue_packets": 166}


def test_the_list_of_parameters_is_the_kernels(guest: Guest, tmp_path: Path) -> None:
    """Each control's parameters that the guest's kernel lets one write are known, and no others."""
    said = said_in_guest(guest, tmp_path / "run", WRITABLE)
    known = {f"tcp_{name}/parameters/{each}" for name, own in KERNELS_OWN.items() for each in own}
    assert {
        line for line in said if line.split("/")[0].removeprefix("tcp_") in KERNELS_OWN
    } == known


@pytest.mark.usefixtures("guest")
def test_cubic_without_hystart_loses_more_at_the_start(tmp_path: Path) -> None:
    """With hystart 0 CUBIC's slow start ends by a burst of losses, with 1 by a longer delay."""
    profile = {"schema": 1, "title": "x", "directions": {"forward": LINK, "reverse": LINK}}
    (tmp_path / "line.yml").write_text(yaml.safe_dump(profile))
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "cubic"}
    fields = {**SMALL, "profile": "line", "flows": [flow], "duration_s": 2, "warm_up_s": 0}
    lost = {}
    for hystart, given in ((0, {"cubic": {"hystart": 0}}), (1, {})):
        set_to = {**fields, "flows": [{**flow, **given}], "stack": {}}
        if not given:
            set_to["modules"] = {"tcp_cubic": {"hystart": hystart}}
        path = write_experiment(tmp_path, set_to, f"hystart-{hystart}")
        lost[hystart] = measure(path, tmp_path / "results")["metrics"]["drops_data.forward"][
            "value"
        ]
        manifest = read_manifest((tmp_path / "results/latest").resolve())
        recorded = manifest.experiment.model_dump()
        own, all_flows = recorded["flows"][0]["cubic"], recorded["modules"].get("tcp_cubic")
        assert (own or all_flows) == {"hystart": hystart}
    assert lost[0] > 10 * lost[1] > 0


@pytest.mark.usefixtures("guest")
def test_a_value_that_the_kernel_refuses_is_named(tmp_path: Path) -> None:
    """A run with a value out of the kernel's range fails, and names field and value."""
    flow = {"name": "f", "from": "h1", "to": "h2", "congestion": "dctcp"}
    modules = {"tcp_dctcp": {"dctcp_shift_g": 99}}
    path = write_experiment(tmp_path, {**SMALL, "flows": [flow], "modules": modules})
    with pytest.raises(RunError, match=r"modules\.tcp_dctcp\.dctcp_shift_g: .*, got 99"):
        carry_out(path, tmp_path / "results")
