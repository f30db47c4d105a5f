"""What holds a program that is not trusted: bubblewrap's options.

The program sees the distribution's programs, read-only, and the files and folders that it is
given; no user's file, no daemon's socket, no network, no other process. It has no capability, even
if root starts it, and then it is nobody's. docs/trust.md says what is protected from whom.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from twoway.errors import TwowayError
from twoway.paths import ROOT
from twoway.system_calls import filters

# Memory that programs use as files; the kernel of a user-mode Linux guest has its memory there.
_SHM = "/dev/shm"  # noqa: S108 - of the sandbox alone
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# A program that root puts into the sandbox is this user's there.
NOBODY = 65534

# As on every Debian since 12, / has links into /usr.
_VIEW = """
    --ro-bind /usr /usr
    --symlink usr/bin /bin --symlink usr/sbin /sbin
    --symlink usr/lib /lib --symlink usr/lib64 /lib64
    --proc /proc --remount-ro /proc
    --dir /etc --dir /tmp --dir /run --dir /sys --dir /root --dir /home --dir /var/tmp --dir /boot
"""
# Settings of the distribution's programs that guests run; none is secret.
_SETTINGS = (
    "alternatives",
    "ld.so.cache",
    "passwd",
    "group",
    "nsswitch.conf",
    "hosts",
    "protocols",
    "services",
    "iproute2",
    "localtime",
)
# A process may have this much memory of its own, and a sandbox this many processes.
OWN_MIB, _PROCESSES = 1024, 8192


def confined(
    readable: Mapping[str, Path],
    home: Path | None = None,
    *,
    devices: Sequence[Path] = (),
    shm_mib: int,
    own_mib: int = OWN_MIB,
) -> list[str]:
    """Build the command prefix that runs a program in the sandbox.

    Args:
        readable: files and folders of the host, by their paths in the sandbox.
        home: the folder that is /mnt/run in the sandbox, the only one that it may write to.
        devices: of the host.
        shm_mib: the most that fits into /dev/shm, MiB.
        own_mib: the most memory of its own that a process may have, MiB.

    Raises: TwowayError if root's sandbox may not read a file or folder, or without libseccomp.
    """
    places = {**_python(), **readable}
    words = [*_with_filters(), "--die-with-parent", "--cap-drop", "ALL"]
    words += [f"--unshare-{what}" for what in ("net", "pid", "ipc", "uts")]
    words += _VIEW.split()
    for name in _SETTINGS:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--dev", "/dev", "--size", str(shm_mib << 20), "--perms", "1777"]
    words += ["--tmpfs", _SHM]
    if ROOT.is_relative_to("/usr"):  # it is given another name, and overlayfs takes only one
        words += ["--tmpfs", str(ROOT)]
    for inside, outside in places.items():
        words += ["--dir", str(Path(inside).parent), "--ro-bind", str(outside), inside]
    if home:
        words += ["--dir", "/mnt/upper", "--dir", "/mnt/root", "--bind", str(home), "/mnt/run"]
    for device in devices:
        words += ["--dev-bind", str(device), str(device)]
    words += ["--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--clearenv", "--setenv", "PATH", _PATH, "--setenv", "TMPDIR", _SHM, "--chdir", "/"]
    limits = ["prlimit", "--core=0", f"--nproc={_PROCESSES}", f"--data={own_mib << 20}"]
    if os.geteuid() != 0:
        return [*words, *limits]
    _refuse_unreadable(readable.values())
    words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    groups = ",".join(str(device.stat().st_gid) for device in devices)
    chosen = f"--groups={groups}" if groups else "--clear-groups"
    nobody = [f"--reuid={NOBODY}", f"--regid={NOBODY}", chosen, "--inh-caps=-all"]
    return [*words, *limits, "setpriv", *nobody]


def _with_filters() -> list[str]:
    """Begin a command with bwrap and its filters of system calls.

    The shell opens them, so that whoever starts the command need not hand down descriptors.
    """
    made = filters()
    opened = " ".join(
        f"{10 + number}< /proc/{os.getpid()}/fd/{file}" for number, file in enumerate(made)
    )
    # bwrap itself stays in the sandbox, as its first process: its environment can be read there.
    words = ["env", "-i", f"PATH={_PATH}", "bash", "-c", f'exec "$@" {opened}', "bash", "bwrap"]
    for number in range(len(made)):
        words += ["--add-seccomp-fd", str(10 + number)]
    return words


def _python() -> dict[str, Path]:
    """Find the environment's interpreter, which may be a link to one outside of /usr."""
    python = Path(sys.base_prefix).resolve()
    return {} if python.is_relative_to("/usr") else {str(python): python}


def _refuse_unreadable(places: Iterable[Path]) -> None:
    """Raise TwowayError if a file or folder is not for all to read."""
    for place in places:
        needed = 0o005 if place.is_dir() else 0o004
        if place.stat().st_mode & needed != needed:
            raise TwowayError(
                f"{place}: nobody, who runs what root puts into the sandbox, may not read it",
                f"`chmod -R go+rX {place}`, or run twoway as another user than root",
            )
