"""bench.yml over SSH, where it ends early: a sentence, and nothing done that another would undo.

The hosts' command is a stand-in: how a share is carried out takes a kernel with netem, which
tests/guest/test_hosts.py has.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_places import PLACES
from lab_hosts import Lab, lab
from playing import play
from running import SMALL, write_experiment

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("sshd", path="/usr/sbin") is None,
    reason="lab hosts take root and openssh-server",
)

# Ready at once, and ends when it is called off; or fails at once.
STAND_IN = """
mkdir -p /usr/local/bin
cat > /usr/local/bin/twoway <<'END'
#!/bin/sh
[ "$1 $2" = "lab node" ] || exit 3
touch "$3/ready"
{then}
until [ -e "$3/called-off" ]; do sleep 0.1; done
echo "twoway: called off after" $(ls -I called-off "$3") >&2
exit 1
END
chmod +x /usr/local/bin/twoway
"""
FAILS = "echo 'twoway: enp1s0 has the address 192.0.2.7' >&2; exit 1"


@pytest.fixture(scope="module")
def bench() -> Iterator[Lab]:
    """Three hosts, of which one cannot carry out its share."""
    hosts = {
        name: {"prepare": STAND_IN.format(then=FAILS if name == "right" else ""), **place}
        for name, place in PLACES.items()
    }
    with tempfile.TemporaryDirectory(prefix="lab") as path, lab(Path(path), hosts) as made:
        write_experiment(made.folder, SMALL)
        yield made


def started(bench: Lab) -> list[str]:
    """The hosts on which there is anything of a run."""
    return [name for name, host in bench.hosts.items() if (host.root / "var/lib/twoway").exists()]


def variables(bench: Lab) -> dict[str, str]:
    """What the inventory says for all hosts."""
    return {
        "twoway_results": str(bench.folder / "results"),
        "twoway_experiment": str(bench.folder / "small.yml"),
    }


def test_a_node_that_nobody_plays(bench: Lab) -> None:
    """A bench with too few hosts is refused by the name of the node, before any host is changed."""
    inventory = bench.inventory("left", "middle", group="bench", **variables(bench))
    played = play("bench", inventory)
    assert played.status != 0
    assert "small: no machine plays h2; the topology has h1, h2, r1, r2" in played.sentences()
    assert started(bench) == []


def test_a_host_that_fails(bench: Lab) -> None:
    """What failed is said of the host that failed, and the others are called off."""
    inventory = bench.inventory(group="bench", **variables(bench))
    played = play("bench", inventory)
    assert played.status != 0
    said = played.sentences()
    assert "right: twoway: enp1s0 has the address 192.0.2.7" in said
    for name in ("left", "middle"):
        assert f"{name}: twoway: called off after plan.json ready" in said
        assert not [*(bench.hosts[name].root / "var/lib/twoway").iterdir()]
    assert not (bench.folder / "results").exists()


def test_a_host_that_is_down() -> None:
    """A host that does not answer is named, and nothing is started on the others."""
    with (
        tempfile.TemporaryDirectory(prefix="lab") as path,
        lab(Path(path), PLACES) as bench,
    ):
        write_experiment(bench.folder, SMALL)
        bench.hosts["middle"].process.kill()
        bench.hosts["middle"].process.wait()
        played = play("bench", bench.inventory(group="bench", **variables(bench)))
        assert played.recap("middle")["unreachable"] == 1
        assert "[middle]: UNREACHABLE!" in played.said
        assert "Build nodes and links" not in played.said
        for name in ("left", "right"):
            assert not [*(bench.hosts[name].root / "var/lib/twoway").glob("*")]
