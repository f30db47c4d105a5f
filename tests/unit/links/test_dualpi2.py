"""A managed queue that the guest's kernel does not have yet."""

from pathlib import Path

import pytest
import yaml
from support.running import SMALL, problems_of, write_experiment

from twoway.paths import PROFILES


@pytest.mark.parametrize("kernel", [None, "guest", "wide", "6.1", "newest"])
def test_dualpi2_takes_the_newest_kernel(tmp_path: Path, kernel: str | None) -> None:
    """dualpi2 is refused on the guest's own kernel, with a hint at the kernel that has it."""
    profile = yaml.safe_load((PROFILES / "access-8mbit.yml").read_text())
    profile["directions"]["forward"]["aqm"] = "dualpi2"
    (tmp_path / "dual.yml").write_text(yaml.safe_dump(profile))
    path = write_experiment(tmp_path, {**SMALL, "profile": "dual", "kernel": kernel})
    found = problems_of(str(path))
    if kernel == "newest":
        assert found == []
        return
    assert found[0].endswith(
        "directions.forward.aqm: dualpi2 came with Linux 6.17: an experiment with "
        f"`kernel: newest` may have it, got kernel {kernel or 'guest'}"
    )
