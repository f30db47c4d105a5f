"""Nothing leads out of a guest's sandbox, as root and as a user: the escape suite.

Guest root may do what any process in the sandbox may, with a mount of the host or a module of its
own. So the ways out are tried from a program in the sandbox, from the guest's shell, and from a
module in the guest's kernel. docs/trust.md has the model.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_guest import give
from plans import plan_with, run_folder, shell
from running import ROOT

from twoway.confinement import NOBODY, confined
from twoway.contract.plan import PLAN
from twoway.errors import TwowayError
from twoway.guest.build import Guest, call

SUPPORT = Path("/mnt/twoway/tests/support")
USER = 54321

# In the guest, as its root; with a second mount of what user-mode Linux sees of the host.
GUEST_WAYS_OUT = r"""
exec 2> /dev/null
# In a user's guest the host's setuid programs belong to nobody: root needs a mount of its own.
mkdir /tmp/own && cp /usr/bin/mount /tmp/own && PATH=/tmp/own:$PATH
mkdir /tmp/sysctl /tmp/root
mount -t hostfs -o /proc/sys/kernel none /tmp/sysctl && echo mounted settings
mount -t hostfs -o / none /tmp/root && echo mounted root
cat /tmp/sysctl/printk_ratelimit_burst > /tmp/was &&
cat /tmp/was > /tmp/sysctl/printk_ratelimit_burst && echo OPEN setting
for place in / /bin /etc /usr /tmp /var/tmp /mnt/twoway /mnt/venv /mnt/bin /proc /dev; do
  touch /tmp/root$place/mark && echo OPEN $place
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
    """The command prefix that makes a program root's or a user's."""
    root = os.geteuid() == 0
    if request.param == "root" and not root:
        pytest.skip("only root can try as root")
    as_user = ["--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    return ["setpriv", *as_user] if root and request.param == "user" else []


@pytest.fixture
def place(who: list[str]) -> Iterator[Path]:
    """A folder of who tries, which pytest's folders, closed to others, are not in."""
    with tempfile.TemporaryDirectory(prefix="twoway-escape-") as scratch:
        if who:
            os.chown(scratch, USER, USER)
        yield Path(scratch)


def _run(who: list[str], guest: Guest, place: Path, what: str, folder: Path, *argv: str) -> str:
    """Have it done by who tries; what is said."""
    programs, kernel = place / "programs", place / "linux"
    shutil.copytree(guest.programs, programs)  # root's cache is closed to others
    shutil.copyfile(guest.kernel, kernel)
    kernel.chmod(0o755)
    for made in (folder, *folder.rglob("*")):
        os.chown(made, *((USER, USER) if who else (-1, -1)))
    program = ROOT / "tests/support/as_user.py"
    words = [*who, sys.executable, str(program), what, str(folder), str(kernel), str(programs)]
    done = subprocess.run(
        [*words, *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SECRET": "1", "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(place)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_program_in_the_sandbox_finds_a_way_out(
    guest: Guest, who: list[str], place: Path
) -> None:
    """In the sandbox a program has no right, call, file, process or memory beyond its own."""
    home = place / "home"
    home.mkdir()
    if not who and os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    argv = ["/mnt/venv/bin/python", "-I", str(SUPPORT / "ways_out.py")]
    assert _run(who, guest, place, "program", home, *argv) == "tried\n"
    assert [*home.iterdir()] == []


def test_guest_root_finds_no_way_out(guest: Guest, who: list[str], place: Path) -> None:
    """Guest root writes nothing but its folder, sees no user's file, and leaves no rights."""
    plan = plan_with(shell(f"exec > /mnt/run/said\n{GUEST_WAYS_OUT}"))
    folder = run_folder(place / "run", plan)
    before = (folder / "plan.json").read_bytes()
    _run(who, guest, place, "guest", folder)
    said = (folder / "said").read_text()
    assert "mounted settings" in said, "the attempts were not made"
    assert "mounted root" in said, "the attempts were not made"
    assert re.findall("^OPEN .*", said, re.MULTILINE) == []
    assert "lock" not in said
    assert (folder / "plan.json").read_bytes() == before, "the host's plan is the guest's to change"
    assert (folder / "seen.json").read_bytes() == before
    assert (folder / "id").stat().st_mode & 0o7777 == 0o755


def test_a_module_of_the_guest_finds_no_way_out(guest: Guest, who: list[str], place: Path) -> None:
    """A module that calls the host past the guest's kernel gets nothing but its folder's files."""
    source = place / "module"
    shutil.copytree(ROOT / "tests/support/host_calls", source)
    call(["make", "-C", str(guest.kernel.parent), "ARCH=um", f"M={source}", "modules"])
    plan = plan_with(shell("insmod /mnt/run/host_calls.ko; exit 1"))
    folder = run_folder(place / "run", plan)
    shutil.copyfile(source / "host_calls.ko", folder / "host_calls.ko")
    give(folder)
    plan.write(folder / PLAN)
    _run(who, guest, place, "guest", folder)
    console = (folder / "log/console.txt").read_text()
    answers = re.findall(r"host_calls: (.*) (-?\d+)$", console, re.MULTILINE)
    assert len(answers) == (source / "host_calls.c").read_text().count('\t{ "')
    assert [name for name, answer in answers if int(answer) >= 0] == ["own file"]
    assert (folder / "by-module").is_file()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is somebody else in the sandbox")
def test_root_is_told_what_nobody_may_not_read(tmp_path: Path) -> None:
    """A folder that only root may read is named before root's sandbox starts."""
    (tmp_path / "checkout").mkdir(mode=0o700)
    with pytest.raises(TwowayError, match=r"checkout: nobody, .*, may not read it"):
        confined({"/mnt/twoway": tmp_path / "checkout"}, shm_mib=1)


def test_the_interpreter_is_there_where_homes_are_hidden(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An environment's interpreter that lies in a user's folder is all that is shown of it."""
    python = tmp_path / "user/python"
    python.mkdir(parents=True)
    (tmp_path / "user/diary").touch()
    for parent in (python, *python.parents):
        if parent.is_relative_to(tmp_path):
            parent.chmod(0o755)
    monkeypatch.setattr(sys, "base_prefix", str(python))
    words = [*confined({}, shm_mib=1), "ls", str(python.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "python\n"
