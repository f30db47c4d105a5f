"""multihost.yml, stopped early: it prints the reason in a sentence and undoes its changes.

The hosts' command is a stand-in: carrying out a share takes a kernel with netem, which
tests/guest/test_multihost.py has.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.lab.lab_hosts import DOWN, PLACES, Lab, lab
from support.lab.playing import PLAYBOOKS, play
from support.running import SMALL, write_experiment

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("sshd", path="/usr/sbin") is None,
        reason="lab hosts take root and openssh-server",
    ),
]

# A `twoway` that is ready at once and ends when it is called off. With FAILS it fails at once.
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
def machines() -> Iterator[Lab]:
    """Make three hosts, one of which cannot carry out its share."""
    hosts = {
        name: {"prepare": STAND_IN.format(then=FAILS if name == "right" else ""), **place}
        for name, place in PLACES.items()
    }
    with tempfile.TemporaryDirectory(prefix="lab") as path, lab(Path(path), hosts) as made:
        write_experiment(made.folder, SMALL)
        yield made


def started(machines: Lab) -> list[str]:
    """Return the hosts that have any part of a run."""
    return [
        name for name, host in machines.hosts.items() if (host.root / "var/lib/twoway").exists()
    ]


def variables(machines: Lab) -> dict[str, str]:
    """Return the inventory's variables for all hosts."""
    return {
        "twoway_results": str(machines.folder / "results"),
        "twoway_experiment": str(machines.folder / "small.yml"),
    }


def test_a_node_that_nobody_plays(machines: Lab) -> None:
    """Too few hosts are refused with the missing node's name, before any host is changed."""
    inventory = machines.inventory("left", "middle", group="multihost", **variables(machines))
    played = play("multihost", inventory)
    assert played.status != 0
    assert "small: no machine plays h2; the topology has h1, h2, r1, r2" in played.sentences()
    assert started(machines) == []


def test_a_host_that_fails(machines: Lab) -> None:
    """A failure is reported for the host that failed, and the others are called off."""
    inventory = machines.inventory(group="multihost", **variables(machines))
    played = play("multihost", inventory)
    assert played.status != 0
    said = played.sentences()
    assert "right: twoway: enp1s0 has the address 192.0.2.7" in said
    for name in ("left", "middle"):
        assert f"{name}: twoway: called off after plan.json ready" in said
        assert not [*(machines.hosts[name].root / "var/lib/twoway").iterdir()]
    assert not (machines.folder / "results").exists()


def test_a_host_that_is_down() -> None:
    """If a host does not answer, it is named, and the other hosts start nothing."""
    with (
        tempfile.TemporaryDirectory(prefix="lab") as path,
        lab(Path(path), PLACES | {"middle": PLACES["middle"] | DOWN}) as machines,
    ):
        write_experiment(machines.folder, SMALL)
        machines.hosts["middle"].process.kill()
        machines.hosts["middle"].process.wait()
        played = play("multihost", machines.inventory(group="multihost", **variables(machines)))
        assert played.recap("middle")["unreachable"] == 1
        assert "[middle]: UNREACHABLE!" in played.said
        assert "Build nodes and links" not in played.said
        for name in ("left", "right"):
            assert not [*(machines.hosts[name].root / "var/lib/twoway").glob("*")]


def test_a_host_without_a_deployment(machines: Lab) -> None:
    """A host without a deploy is named and refused, and no host starts anything."""
    (machines.hosts["left"].root / "usr/local/bin/twoway").rename(
        machines.hosts["left"].root / "usr/local/bin/elsewhere"
    )
    try:
        inventory = machines.inventory(group="multihost", **variables(machines))
        played = play("multihost", inventory)
    finally:
        (machines.hosts["left"].root / "usr/local/bin/elsewhere").rename(
            machines.hosts["left"].root / "usr/local/bin/twoway"
        )
    assert "left: has no deployment of twoway; deploy.yml makes one" in played.sentences()
    assert "Build nodes and links" not in played.said


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (1, "a prediction, a claim or a check does not hold"),
        (3, "the clocks of the hosts tell too little; at lower rates they tell more"),
    ],
)
def test_a_run_that_is_kept_and_fails(tmp_path: Path, status: int, sentence: str) -> None:
    """The verdict on a merged run is printed before the playbook fails with its own sentence."""
    merge = tmp_path / "twoway"
    merge.write_text(f"#!/bin/sh\necho 'pass 2 fidelity checks' >&2\nexit {status}\n")
    merge.chmod(0o755)
    (tmp_path / "small").mkdir()
    variables = {
        "ansible_connection": "local",
        "twoway_here": str(merge),
        "multihost_here": str(tmp_path),
        "multihost_shared": {"experiment": "small"},
        "multihost_offset_ns": 0,
        "multihost_before": {"machines": {}},
        "multihost_asked": {"stdout": '{"machines": {}}'},
    }
    multihost = {"ansible.builtin.include_role": {"name": "multihost", "tasks_from": "merge"}}
    roles = [str(PLAYBOOKS / "roles/twoway")]
    plays = [{"hosts": "all", "gather_facts": False, "roles": roles, "tasks": [multihost]}]
    (tmp_path / "merge.yml").write_text(json.dumps(plays))
    (tmp_path / "roles").symlink_to(PLAYBOOKS / "roles")
    (tmp_path / "inventory.json").write_text(json.dumps({"all": {"hosts": {"host": None}}}))
    options = ["-e", json.dumps(variables)]
    played = play(str(tmp_path / "merge"), tmp_path / "inventory.json", *options)
    assert played.status != 0
    held, failed = (
        played.sentences().find(words) for words in ("pass 2 fidelity checks", sentence)
    )
    assert 0 < held < failed
