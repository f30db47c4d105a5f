"""Entry points: `mn --custom`, the shell, the doctor, calibration, the build, the fork server."""

import json
import os
import pty
import re
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.plans import said_in_guest
from support.running import ROOT, twoway

from twoway.backends import doctor
from twoway.backends.sandbox import CHECKOUT
from twoway.guest.cache import Guest
from twoway.guest.source import kernel_source
from twoway.paths import PROFILES, TOPOLOGIES
from twoway.runs.manifest import LOCK

# Entry points: `mn --custom`, the shell, the doctor, calibration, the build.


def test_mn_custom_loads_a_topology(guest: Guest, tmp_path: Path) -> None:
    """Mininet's `mn --custom` builds our topologies, and every host reaches every other."""
    script = "ulimit -n 1024; exec > /mnt/run/said 2>&1"
    names = ("two_node", "dumbbell,2")
    sources = [TOPOLOGIES / f"{name.partition(',')[0]}.py" for name in names]
    for name, source in zip(names, sources, strict=True):
        custom = f"--custom {CHECKOUT}/topologies/{source.name}"
        script += f"; mn {custom} --topo {name} --controller none --test pingall"
    topologies = {f"{CHECKOUT}/topologies": TOPOLOGIES}
    decisive = [*sources, ROOT / "uv.lock"]  # which has Mininet's version
    said = said_in_guest(guest, tmp_path / "run", script, topologies, decisive)
    assert "\n".join(said).count(" 0% dropped") == 2


@pytest.mark.usefixtures("guest")
def test_keys_of_the_shell() -> None:
    """At Mininet's prompt Ctrl-C ends only the running command, and Ctrl-D ends the shell."""
    pid, terminal = _shell()
    os.write(terminal, b"h1 ping -c 1 10.0.2.2\n")
    assert " 0% packet loss" in _until(terminal, "mininet> ")
    os.write(terminal, b"h1 ping h2\n")
    _until(terminal, "icmp_seq=2 ttl=62")
    os.write(terminal, b"\x03")
    assert "packets transmitted" in _until(terminal, "mininet> ")
    os.write(terminal, b"nodes\n")
    assert "h1 h2 r1 r2" in _until(terminal, "mininet> ")
    os.write(terminal, b"\x04")
    _until(terminal, None)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.usefixtures("guest")
def test_shell_carries_out_a_list_of_commands() -> None:
    """Without a terminal `twoway shell` removes what a killed one left, and runs its input's lines.

    `exit` ends it. Mininet's own `iperf` prints the rates of both ends.
    """
    pid, terminal = _shell()
    opened = [file.readlink() for file in Path(f"/proc/{pid}/fd").iterdir()]
    (left,) = (file.parent for file in opened if file.name == LOCK)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    assert left.is_dir()
    lines = "h1 echo of $((20 + 1))\nh2 ip route get 10.0.1.2\niperf h1 h2\nexit\nh1 echo of 22\n"
    done = twoway("shell", input=lines)
    assert done.returncode == 0, done.stderr
    assert not left.exists()
    said = [line for line in done.stdout.splitlines() if line]
    assert said[0] == "of 21"
    assert said[1].startswith("10.0.1.2 via 10.0.2.1 dev h2-eth0")
    assert "of 22" not in said
    assert re.search(r"Results: \['[0-9.]+ Mbits/sec', '[0-9.]+ Mbits/sec'\]", done.stdout)


@pytest.mark.usefixtures("guest")
def test_shell_has_switches() -> None:
    """At the prompt switches are nodes, and a ping crosses them and the router between them."""
    lines = "nodes\nh1 ping -c 1 h2\ns1 bridge link\n"
    done = twoway("shell", "switches@ip=4,network=linuxrouter", input=lines)
    assert done.returncode == 0, done.stderr
    assert "h1 h2 h3 r0 s1 s2 s3" in done.stdout
    assert "icmp_seq=1 ttl=63" in done.stdout
    assert done.stdout.count("master s1 state forwarding") == 2


def _shell() -> tuple[int, int]:
    """Open the shell in a terminal of its own, and wait for its prompt."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "twoway.cli", "shell"])  # noqa: S606 - in the pty
    _until(terminal, "mininet> ")
    return pid, terminal


def _until(terminal: int, mark: str | None) -> str:
    """Return a terminal's output up to a mark, or all of it if the mark is None."""
    said = ""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            return said
        if not data:
            return said
        said += data.decode(errors="replace")
        if mark and mark in said:
            return said
    pytest.fail(f"no {mark!r} in: {said}")


@pytest.mark.usefixtures("guest")
def test_doctor_finds_this_machine_able() -> None:
    """After set-up no requirement is missing, and every backend is listed."""
    done = twoway("doctor", "--json")
    findings = {f["what"]: f for f in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert findings["backend uml"]["ok"]
    assert {"backend qemu", "backend native"} <= set(findings)


@pytest.mark.slow
def test_doctor_names_what_is_missing_and_the_remedy() -> None:
    """A missing program is a finding that names its package."""
    finding = doctor._program("no-such-program", "its-package", "a test")
    assert not finding["ok"]
    assert "apt-get install its-package" in finding["remedy"]


@pytest.mark.slow
@pytest.mark.parametrize("built", [True, False])
def test_compilers_are_for_a_guest_that_is_not_built(
    built: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctor asks for no compiler on a host with a deployed guest."""
    monkeypatch.setattr(doctor, "_guest", lambda: {"what": "backend uml", "ok": built})
    findings = {f["what"]: f for f in doctor.examine()}
    assert {findings[name]["required"] for name in ("cc", "flex", "bison")} == {not built}


@pytest.mark.usefixtures("guest")
def test_calibration_finds_no_error(tmp_path: Path) -> None:
    """In virtual time a stream leaves at the computed times, also with a user's own profile."""
    own = tmp_path / "mine.yml"
    shutil.copy(PROFILES / "zhang-10ms.yml", own)
    done = twoway("calibrate", own, "--json", "--results", tmp_path)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [row["departure_error_worst_ns"] for row in rows] == [0, 0]
    assert [row["packets"] for row in rows] == [2000, 2000]
    done = twoway("calibrate", tmp_path / "none.yml", "--results", tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path}/none.yml: no such profile" in done.stderr


@pytest.mark.slow
def test_kernel_source_that_is_none_is_refused(tmp_path: Path) -> None:
    """KERNEL_SRC must be a kernel tree of 6.12 or newer."""
    environment = {**os.environ, "KERNEL_SRC": str(tmp_path)}
    done = twoway("build", env=environment)
    assert done.returncode == 2
    assert "not a kernel tree" in done.stderr
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 2\n")
    done = twoway("build", env=environment)
    assert done.returncode == 2
    assert "kernel 6.1; 6.12 is the oldest supported" in done.stderr


@pytest.mark.slow
def test_edit_of_a_kernel_tree_asks_for_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change of a source of KERNEL_SRC, or of its version, changes the guest's identity."""
    (tmp_path / "net/ipv4").mkdir(parents=True)
    makefile, source = tmp_path / "Makefile", tmp_path / "net/ipv4/tcp.c"
    makefile.write_text("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 0\n")
    source.write_text("int a;")
    monkeypatch.setenv("KERNEL_SRC", str(tmp_path))
    seen = {kernel_source().identity}
    source.write_text("int b, c;")
    seen.add(kernel_source().identity)
    makefile.write_text(makefile.read_text() + "EXTRAVERSION = -rc7\n")
    seen.add(kernel_source().identity)
    assert len(seen) == 3


# The fork server loads ip and tc once for all nodes (vm/guest/fork_server.c).

# Two namespaces whose interfaces of one name have different numbers; a batch between them fails.
SCRIPT = """
set -e
ip netns add one; ip netns add two
ip -netns two link add before type dummy
for each in one two; do ip -netns $each link add made type dummy; done
/mnt/venv/bin/python -I -S - > /mnt/run/said <<'END'
import sys
sys.path.insert(0, "/mnt/twoway/vm/guest")
from pathlib import Path
from fork_server import ForkServer
server = ForkServer(["env", "OF=env", "ip", "-json", "-batch", "-"])
for name in ("one", "two"):
    print(server.run(Path("/run/netns", name), "link set made up\\nlink show made\\n"))
    print(server.run(Path("/run/netns", name), "link show missing\\n"))
print(server.run(Path("/run/netns/none"), "link show made\\n"))
END
"""


def test_each_batch_is_a_process_of_its_own(guest: Guest, tmp_path: Path) -> None:
    """A batch inherits no state, output or failure of the batch before."""
    one, failed, two, again, nowhere = map(eval, said_in_guest(guest, tmp_path / "run", SCRIPT))
    for code, out, err in (one, two):
        (link,) = json.loads(out)
        assert (code, err, link["ifname"]) == (0, "", "made")
        assert "UP" in link["flags"]
    assert json.loads(one[1])[0]["ifindex"] != json.loads(two[1])[0]["ifindex"]
    assert failed == again
    assert failed[0] == 1
    assert 'Device "missing" does not exist.' in failed[2]
    assert nowhere[0] == 1
