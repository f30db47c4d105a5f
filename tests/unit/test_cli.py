"""The `twoway` command: its table of subcommands, and what each backend is called."""

import pytest
from running import twoway

from twoway import __version__
from twoway.backends.registry import kinds
from twoway.cli import COMMANDS, LAB_COMMANDS


def test_version() -> None:
    """The command says its version, which stands in one place."""
    done = twoway("--version")
    assert (done.returncode, done.stdout) == (0, f"twoway {__version__}\n")


@pytest.mark.parametrize(
    "words",
    [(), ("lab",), *((c.name,) for c in COMMANDS), *(("lab", c.name) for c in LAB_COMMANDS)],
)
def test_help(words: tuple[str, ...]) -> None:
    """Every command, those of the playbooks too, says what it does and what its exit codes mean."""
    done = twoway(*words, "--help")
    assert done.returncode == 0
    assert "exit codes: 0 all is as the experiment's file says" in " ".join(done.stdout.split())


def test_backends() -> None:
    """The modules of twoway/backends offer uml, qemu in four variants, and native; uml is first."""
    names = list(kinds())
    assert names[0] == "uml"
    qemu = {"qemu", "qemu-kvm", "qemu-icount", "qemu-tcg"}
    assert set(names) == {"uml", "uml-newest", *qemu, "native"}
    assert "; qemu, a distribution's own kernel" in " ".join(twoway("run", "--help").stdout.split())
