"""Nothing escapes a guest's sandbox, whether twoway runs as root or as a user.

Guest root may do whatever any process in the sandbox may, with a mount of the host or a module of
its own. So the escapes are tried from a program in the sandbox, from the guest's shell, and from a
module in the guest's kernel. docs/trust.md has the model.
"""

import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.guest.in_guest import give
from support.plans import plan_with, run_folder, shell
from support.running import ROOT, processes_with
from support.sharing import once

from twoway.confinement import NOBODY, confined_command
from twoway.contract.plan import PLAN
from twoway.description.mininet_commands import Up
from twoway.description.topology import load_topology
from twoway.errors import SpecError, TwowayError
from twoway.guest.cache import Guest
from twoway.guest.kernel import call

HOST_CALLS = ROOT / "tests/support/guest/host_calls"
OUTLAST = ROOT / "tests/support/guest/outlast.py"
USER = 54321

# In the guest, as guest root, with a second mount of the host's files.
GUEST_WAYS_OUT = r"""
exec 2> /dev/null
# In a user's guest the host's setuid programs belong to nobody: root needs a mount of its own.
mkdir /tmp/own && cp /usr/bin/mount /tmp/own && PATH=/tmp/own:$PATH
mkdir /tmp/sysctl /tmp/root
mount -t hostfs -o /proc/sys/kernel none /tmp/sysctl && echo mounted settings
mount -t hostfs -o / none /tmp/root && echo mounted root
cat /tmp/sysctl/printk_ratelimit_burst > /tmp/was &&
cat /tmp/was > /tmp/sysctl/printk_ratelimit_burst && echo OPEN setting
mount -o remount,rw /tmp/root
for place in / /bin /etc /usr /tmp /var/tmp /mnt/twoway /mnt/venv /mnt/bin /proc /dev; do
  touch /tmp/root$place/MARK && echo OPEN $place
  touch $place/MARK  # in the guest's memory
done
find /tmp/root/root /tmp/root/home /tmp/root/run /tmp/root/sys -type f -printf 'OPEN %p\n'
cat /tmp/root/etc/shadow && echo OPEN shadow
mknod /mnt/run/node c 1 3 && echo OPEN device
mknod /tmp/root/dev/shm/node b 254 0 && echo OPEN disk
cp /usr/bin/id /mnt/run/id && chmod 6755 /mnt/run/id
cp /tmp/root/mnt/run/plan.json /mnt/run/seen.json
echo broken > /mnt/run/plan.json
ls -a /mnt/run/.. /tmp/root/mnt/run
exit 1
"""


@pytest.fixture(params=["root", "user"])
def who(request: pytest.FixtureRequest) -> list[str]:
    """Return the command prefix that makes a program run as root or as a user."""
    root = os.geteuid() == 0
    if request.param == "root" and not root:
        pytest.skip("only root can try as root")
    as_user = ["--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    return ["setpriv", *as_user] if root and request.param == "user" else []


@pytest.fixture
def place(who: list[str]) -> Iterator[Path]:
    """Make a folder of that user outside of pytest's folders, which other users cannot read."""
    with tempfile.TemporaryDirectory(prefix="twoway-escape-") as scratch:
        if who:
            os.chown(scratch, USER, USER)
        yield Path(scratch)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(who: list[str], guest: Guest, place: Path) -> Start:
    """Return a function that starts a command as that user: what, folder, words."""
    return partial(_start, who, guest, place)


def _start(
    who: list[str], guest: Guest, place: Path, what: str, folder: Path, *argv: str
) -> subprocess.Popen[str]:
    programs, kernel = place / "programs", place / "linux"
    shutil.copytree(guest.programs, programs)  # root's cache is closed to other users
    shutil.copyfile(guest.kernel, kernel)
    kernel.chmod(0o755)
    for made in (folder, *folder.rglob("*")):
        os.chown(made, *((USER, USER) if who else (-1, -1)))
    program = ROOT / "tests/support/guest/as_user.py"
    words = [*who, sys.executable, str(program), what, str(folder), str(kernel), str(programs)]
    return subprocess.Popen(
        [*words, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "SECRET": "1", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(place)},
    )


def _run(start: Start, what: str, folder: Path, *argv: str) -> str:
    """Run a command as that user; return its output."""
    process = start(what, folder, *argv)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


# Start a sandbox with at most 50 processes, in which a program forks up to a number of times.
_FORKING = """
import subprocess, sys
from twoway import confinement
program = '''
import os, sys, time
made = 0
try:
    while made < int(sys.argv[1]):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made, flush=True)
sys.stdin.read()
'''
box = confinement.confined_command({}, shm_mib=1, processes=50)
subprocess.run([*box, "/usr/bin/python3", "-I", "-c", program, sys.argv[1]])
"""


def test_a_guest_leaves_others_their_processes(who: list[str]) -> None:
    """A guest that forks up to its limit takes no process from a guest beside it."""
    argv = [*who, sys.executable, "-P", "-c", _FORKING]
    settings: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*argv, "1000"], **settings) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert 20 < int(first.stdout.readline()) < 50
        second = subprocess.run([*argv, "20"], capture_output=True, text=True, input="", check=True)
        assert second.stdout == "20\n"
        first.stdin.close()


def test_no_program_in_the_sandbox_finds_a_way_out(
    start: Start, who: list[str], place: Path
) -> None:
    """A program in the sandbox gets no right, call, file, process or memory beyond its own."""
    home = place / "home"
    home.mkdir()
    if not who and os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    argv = ["/mnt/venv/bin/python", "-I", "/mnt/ways_out.py"]
    assert _run(start, "program", home, *argv) == "tried\n"
    assert [*home.iterdir()] == []


def test_guest_root_finds_no_way_out(start: Start, place: Path, mark: str) -> None:
    """Guest root writes only to its run's folder, and sees no file of a user."""
    script = GUEST_WAYS_OUT.replace("MARK", mark)
    plan = plan_with(shell(f"exec > /mnt/run/said\n{script}"))
    folder = run_folder(place / "run", plan)
    before = (folder / "plan.json").read_bytes()
    _run(start, "guest", folder)
    said = (folder / "said").read_text()
    assert "mounted settings" in said, "the attempts were not made"
    assert "mounted root" in said, "the attempts were not made"
    assert re.findall("^OPEN .*", said, re.MULTILINE) == []
    assert "lock" not in said
    assert (folder / "plan.json").read_bytes() == before, "the host's plan is the guest's to change"
    assert (folder / "seen.json").read_bytes() == before
    assert (folder / "id").stat().st_mode & 0o7777 == 0o755
    outside = ("/", "/bin", "/etc", "/usr", "/tmp", "/var/tmp", "/dev", ROOT, sys.prefix)
    assert [each for each in outside if Path(each, mark).exists()] == []


@pytest.fixture(scope="session")
def modules(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the modules that call the host; return their folder."""

    def compile_modules(folder: Path) -> None:
        shutil.copytree(HOST_CALLS, folder, dirs_exist_ok=True)
        call(["make", "-C", str(guest.kernel.parent), "ARCH=um", f"M={folder}", "modules"])

    return once(tmp_path_factory, "host-calls", compile_modules)


def _with_modules(modules: Path, place: Path, script: str) -> Path:
    """Make a run's folder with our modules and outlast.py, whose guest runs a script."""
    plan = plan_with(shell(script))
    folder = run_folder(place / "run", plan)
    for file in (*modules.glob("*.ko"), OUTLAST):
        shutil.copyfile(file, folder / file.name)
    give(folder)
    plan.write(folder / PLAN)
    return folder


def test_a_module_of_the_guest_finds_no_way_out(start: Start, modules: Path, place: Path) -> None:
    """A module that calls the host directly reaches only files of its run's folder."""
    folder = _with_modules(modules, place, "insmod /mnt/run/host_calls.ko; exit 1")
    _run(start, "guest", folder)
    console = (folder / "log/console.txt").read_text()
    answers = re.findall(r"host_calls: (.*) (-?\d+)$", console, re.MULTILINE)
    assert len(answers) == (HOST_CALLS / "host_calls.c").read_text().count('\t{ "')
    assert [name for name, answer in answers if int(answer) >= 0] == ["own file"]
    assert (folder / "by-module").is_file()


@pytest.fixture
def mark() -> str:
    """Return a word that no other process has among its arguments."""
    return f"outlast-{uuid.uuid4()}"


@pytest.fixture
def victim(who: list[str], place: Path) -> Path:
    """Make a file of that user, outside of the run's folder."""
    path = place / "victim"
    path.write_text("the user's")
    if who:
        os.chown(path, USER, USER)
    return path


def test_no_process_outlasts_a_guest(
    start: Start, modules: Path, place: Path, mark: str, victim: Path
) -> None:
    """A detached process that a module starts ends before the run's files are taken over."""
    script = f"echo packets > /mnt/run/pcap/h1-eth0.pcap; {_insmod(mark, victim)}; exit 1"
    folder = _with_modules(modules, place, script)
    _run(start, "guest", folder)
    assert processes_with(mark) == []
    assert (folder / "detached").exists(), "the attempt was not made"
    assert (folder / "said").read_text() == "attach: Operation not permitted\n"
    assert victim.read_text() == "the user's"
    assert [path for path in folder.rglob("*") if path.is_symlink()] == []
    assert [path.name for path in (folder / "pcap").iterdir()] == ["h1-eth0.pcap.zst"]


def test_no_process_outlasts_a_killed_twoway(
    start: Start, modules: Path, place: Path, mark: str, victim: Path
) -> None:
    """The sandbox ends with twoway, even if twoway is killed."""
    folder = _with_modules(modules, place, f"{_insmod(mark, victim)}; while :; do :; done")
    process = start("guest", folder)
    # The process that starts it may still be there.
    while len(found := processes_with(mark)) != 1:
        assert process.poll() is None, process.communicate()
    with _end_of(found[0]) as end:
        process.kill()
        assert select.select([end], [], [], 60)[0], "it still lives"
    process.communicate()


def test_no_process_outlasts_a_topology(start: Start, place: Path, mark: str) -> None:
    """A topology's Python leaves no process, whatever it does."""
    folder, path = place / "home", place / "two_node.py"
    folder.mkdir()
    lines = [OUTLAST.read_text().partition("\nif __name__")[0], f"outlast({mark!r})"]
    path.write_text("\n".join([*lines, (ROOT / "topologies/two_node.py").read_text()]))
    assert _run(start, "topology", folder, str(path)) == "h1 h2 r1 r2\n"
    assert processes_with(mark) == []


# Code appended to a topology: a node that runs another command as well, and a description that the
# topology writes instead of the sandbox's program.
RECORDS = """
class Host(__import__("mininet").node.Host):
    def config(self, **parameters):
        super().config(**parameters)
        self.cmd({command!r})
TwoNode.addHost = lambda self, name, **given: Topo.addHost(self, name, **{{"cls": Host, **given}})
"""
FORGES = """
import __main__
made = __main__._commands
def forged(topo):
    commands, numbered = made(topo)
    return [*commands, ("h1", {command!r})], numbered
__main__._commands = forged
"""


@pytest.mark.slow
@pytest.mark.parametrize("attack", [RECORDS, FORGES])
@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf /", "ip link set h1-eth0 netns 1", "ip netns delete h1", "ip -batch /etc/shadow"),
        *("ip link set eth0 down", "ip route flush table all", "sysctl kernel.modules_disabled=1"),
        "ifconfig h1-eth0 up\nrm -rf /",
    ],
)
def test_a_topology_adds_no_command_to_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: str, command: str
) -> None:
    """A topology that records another kind of command, in any form, is refused."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "two_node.py"
    sound = (ROOT / "topologies/two_node.py").read_text()
    path.write_text(sound + attack.format(command="ip link set lo up"))
    assert [up for up in load_topology(path, {}).commands["h1"] if up == Up("lo")] == [Up("lo")]
    path.write_text(sound + attack.format(command=command))
    with pytest.raises(SpecError) as caught:
        load_topology(path, {})
    assert all(problem.startswith(f"{path}: h") for problem in caught.value.problems)


@pytest.mark.slow
def test_a_topology_records_no_end_of_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topology with too many commands, or with one that is too long, is refused."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "two_node.py"
    sound = (ROOT / "topologies/two_node.py").read_text()
    for command, sentence in (
        ("a;" * 26_000, "at most 50000 items"),
        ("x" * 1001, "at most 1000 characters"),
    ):
        path.write_text(sound + RECORDS.format(command=command))
        with pytest.raises(SpecError) as caught:
            load_topology(path, {})
        assert sentence in str(caught.value)


def _insmod(mark: str, victim: Path) -> str:
    return f"insmod /mnt/run/outlast.ko mark={mark} linked={victim}"


@contextmanager
def _end_of(process: int) -> Iterator[int]:
    """Return a descriptor that is readable when a process has ended."""
    opened = os.pidfd_open(process)
    try:
        yield opened
    finally:
        os.close(opened)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is somebody else in the sandbox")
def test_root_is_told_what_nobody_may_not_read(tmp_path: Path) -> None:
    """If the guest's user cannot read a folder, root's sandbox does not start and names it."""
    (tmp_path / "checkout").mkdir(mode=0o700)
    with pytest.raises(TwowayError, match=r"checkout: not readable for the user `nobody`"):
        confined_command({"/mnt/twoway": tmp_path / "checkout"}, shm_mib=1)


@pytest.mark.slow
def test_the_interpreter_is_there_where_homes_are_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sandbox shows only the Python interpreter in a user's folder, and no other file."""
    python = tmp_path / "user/python"
    python.mkdir(parents=True)
    (tmp_path / "user/diary").touch()
    for parent in (python, *python.parents):
        if parent.is_relative_to(tmp_path):
            parent.chmod(0o755)
    monkeypatch.setattr(sys, "base_prefix", str(python))
    words = [*confined_command({}, shm_mib=1), "ls", str(python.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "python\n"


@pytest.mark.slow
def test_the_sandbox_starts_where_processes_have_other_numbers() -> None:
    """The sandbox starts in a process namespace whose process 2 has ended, as in a container."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    words = ["unshare", *user, "--pid", "--fork", "--mount-proc", "sh", "-c"]
    program = (
        "import subprocess; from twoway.confinement import confined_command\n"
        "subprocess.run([*confined_command({}, shm_mib=1), 'echo', 'there'])"
    )
    done = subprocess.run(
        [*words, '/usr/bin/true; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "there\n", done.stderr
