"""The programs that build the guest."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from twoway.guest.kernel import BuildError, check_config
from twoway.guest.seals import contents

BUILDING = (
    "from twoway.guest.kernel import call; call(['sh', '-c', 'echo $$ > pid; exec sleep 99'])"
)


def test_a_build_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    """The programs that a build has started end with it, even if it is killed."""
    with subprocess.Popen([sys.executable, "-c", BUILDING], cwd=tmp_path) as build:
        started = tmp_path / "pid"
        while not (started.is_file() and started.read_text()):
            time.sleep(0.01)
        build.kill()
    child = Path("/proc", started.read_text().strip())
    for _ in range(500):
        if not child.is_dir() or "(zombie)" in (child / "status").read_text():
            return
        time.sleep(0.01)
    raise AssertionError("it is still running")


def test_products_of_kbuild_are_no_sources(tmp_path: Path) -> None:
    """Modules that are built where their README says so leave the guest's sources as they are."""
    (tmp_path / "sch_dtm.c").write_text("source")
    before = [*contents(tmp_path, ["*.c"])]
    (tmp_path / "sch_dtm.mod.c").write_text("product")
    assert [*contents(tmp_path, ["*.c"])] == before == [b"sch_dtm.c", b"source"]


@pytest.mark.parametrize(
    ("later", "refused"),
    [
        ("CONFIG_A=y\n# CONFIG_B is not set\n", ""),
        ("CONFIG_A=m\n", "CONFIG_A=m"),
        ("CONFIG_C=y\n", "CONFIG_C=y"),
        ("# CONFIG_A is not set\n# CONFIG_C is not set\n", "CONFIG_A=n"),
    ],
)
def test_a_kernel_has_the_options_of_its_fragments(
    tmp_path: Path, later: str, refused: str
) -> None:
    """An option that Kconfig drops, changes or keeps on is refused; the last fragment decides."""
    made, first, second = (tmp_path / name for name in (".config", "first", "second"))
    made.write_text("CONFIG_A=y\n# CONFIG_B is not set\n")
    first.write_text("# Off\nCONFIG_A=y\nCONFIG_B=y\n")
    second.write_text("# CONFIG_B is not set\n" + later)
    if not refused:
        check_config(made, [first, second])
        return
    with pytest.raises(BuildError) as caught:
        check_config(made, [first, second])
    assert str(caught.value) == f"{second}: this kernel does not accept {refused}"
