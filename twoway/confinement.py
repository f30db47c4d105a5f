"""The confinement of untrusted programs: bubblewrap's options.

The program sees the distribution's programs, read-only, and the files and folders passed to it; no
user's file, no daemon's socket, no network, no other process. It has no capability, even if root
starts it: then it runs as the user `nobody`. docs/trust.md says what is protected from whom.

Only in our OCI image, a container that refuses this sandbox takes its place: the program then sees
the container's files and processes. It still has no capability and no network.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from twoway import system_calls
from twoway.errors import TwowayError
from twoway.messages import say
from twoway.paths import ROOT
from twoway.system_calls import filters

# Memory for files; a user-mode Linux guest has its memory there.
_SHM = "/dev/shm"  # noqa: S108 - of the sandbox alone
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# The user of a program in the sandbox that root starts.
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
# Limits of a process's own memory, and of a sandbox's number of processes.
OWN_MIB, _PROCESSES = 1024, 8192
# Our OCI image sets it to "container" (packaging/make-image).
SETTING = "TWOWAY_SANDBOX"
# Capabilities by their bits: root of a container needs them to give a folder to `nobody`, take it
# back, and end the processes of `nobody`.
_RIGHTS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7}


def confined_command(
    readable: Mapping[str, Path],
    home: Path | None = None,
    *,
    devices: Sequence[Path] = (),
    shm_mib: int,
    own_mib: int = OWN_MIB,
    processes: int = _PROCESSES,
) -> list[str]:
    """Build the command prefix that runs a program in the sandbox.

    Args:
        readable: files and folders of the host, by their paths in the sandbox.
        home: the folder that is /mnt/run in the sandbox, the only one to which it may write.
        devices: devices of the host.
        shm_mib: size limit of /dev/shm, MiB.
        own_mib: limit of a process's own memory, MiB.
        processes: limit of the sandbox's processes, where the kernel counts them alone; elsewhere
            it is that of all sandboxes together.

    Raises: TwowayError if root's sandbox may not read a file or folder, or without libseccomp; or
        if the container is the sandbox, and has too few rights, or a file at another path.
    """
    if refusal():
        return _in_container(readable, home, own_mib)
    alone = os.geteuid() != 0 or _own_users()
    limits = _limits(own_mib, processes if alone else _PROCESSES)
    return _in_sandbox(readable, home, devices, shm_mib, limits)


@cache
def refusal() -> str:
    """Find out whether the container is the sandbox, and report that on stderr.

    Returns: the reason why our sandbox is refused; empty if it is not, or outside of our OCI image.
    """
    if os.environ.get(SETTING) != "container":
        return ""
    argv = [*_in_sandbox({}, None, (), 1, _limits(OWN_MIB)), "true"]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return ""
    why = done.stderr.strip() or f"exit status {done.returncode}"
    say(f"our sandbox does not work here ({why}): only the container confines guests")
    return why


def _in_sandbox(
    readable: Mapping[str, Path],
    home: Path | None,
    devices: Sequence[Path],
    shm_mib: int,
    limits: Sequence[str],
) -> list[str]:
    places = {**_python(), **readable}
    words = [*_with_filters(), "--die-with-parent", "--cap-drop", "ALL"]
    words += [f"--unshare-{what}" for what in ("net", "pid", "ipc", "uts")]
    words += _VIEW.split()
    for name in _SETTINGS:
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    words += ["--dev", "/dev", "--size", str(shm_mib << 20), "--perms", "1777"]
    words += ["--tmpfs", _SHM]
    # The program sees ROOT at another path, and overlayfs takes a folder only once: hide ROOT here.
    if ROOT.is_relative_to("/usr"):
        words += ["--tmpfs", str(ROOT)]
    for inside, outside in places.items():
        words += ["--dir", str(Path(inside).parent), "--ro-bind", str(outside), inside]
    if home:
        words += ["--dir", "/mnt/upper", "--dir", "/mnt/root", "--bind", str(home), "/mnt/run"]
    for device in devices:
        words += ["--dev-bind", str(device), str(device)]
    words += ["--remount-ro", "/dev", "--remount-ro", "/"]
    words += ["--clearenv", "--setenv", "PATH", _PATH, "--setenv", "TMPDIR", _SHM, "--chdir", "/"]
    if os.geteuid() != 0:
        return [*words, *limits]
    _refuse_unreadable(readable.values())
    words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    groups = ",".join(str(device.stat().st_gid) for device in devices)
    chosen = f"--groups={groups}" if groups else "--clear-groups"
    nobody = [f"--reuid={NOBODY}", f"--regid={NOBODY}", chosen, "--inh-caps=-all"]
    return [*words, *limits, "setpriv", *nobody]


def _in_container(readable: Mapping[str, Path], home: Path | None, own_mib: int) -> list[str]:
    """Build the command prefix for a container that is the sandbox.

    The program's paths are the image's, and /mnt/host/mnt/run leads to its working directory.
    """
    for inside, outside in readable.items():
        if Path(inside).resolve() != outside.resolve():
            raise TwowayError(f"{outside}: if the container is the sandbox, it must be {inside}")
    # The guest's memory is in /tmp: containers mount /dev/shm noexec.
    words = ["env", "-i", "-C", str(home or "/"), f"PATH={_PATH}", "TMPDIR=/tmp"]
    words += [*_limits(own_mib), "setpriv", "--no-new-privs", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        _refuse_few_rights()
        _refuse_unreadable(readable.values())
        words += [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all"]
    return [*words, sys.executable, "-I", system_calls.__file__]


def _limits(own_mib: int, processes: int = _PROCESSES) -> list[str]:
    """Return a command's limits; none is above the container's."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    processes = processes if most == resource.RLIM_INFINITY else min(processes, most)
    return ["prlimit", "--core=0", f"--nproc={processes}", f"--data={own_mib << 20}"]


def _refuse_few_rights() -> None:
    """Raise TwowayError if root in the container may not start programs as `nobody`."""
    (line,) = [s for s in Path("/proc/self/status").read_text().splitlines() if "CapEff" in s]
    rights = int(line.split()[1], 16)
    lacking = [name for name, bit in _RIGHTS.items() if not rights >> bit & 1]
    if lacking:
        raise TwowayError(
            f"the container's root lacks {', '.join(lacking)}: guests would run as root, too",
            "start the container with --user 1000:1000, or with the default capabilities",
        )


def _with_filters() -> list[str]:
    """Return the command prefix for bwrap with its filters of system calls.

    The shell opens the filters, so that the caller need not pass descriptors on.
    """
    made = filters()
    users = _own_users()
    opened = " ".join(
        f"{10 + number}< /proc/{os.getpid()}/fd/{file}"
        for number, file in enumerate((*made, *users))
    )
    # bwrap itself stays in the sandbox as the first process, where its environment can be read.
    words = ["env", "-i", f"PATH={_PATH}", "bash", "-c", f'exec "$@" {opened}', "bash"]
    words += [*own_processes(), "bwrap"]
    for number in range(len(made)):
        words += ["--add-seccomp-fd", str(10 + number)]
    for number in range(len(made), len(made) + len(users)):
        words += ["--userns", str(10 + number)]
    return words


@cache
def _own_users() -> tuple[int, ...]:
    """Make a namespace of users for the sandboxes of this process, if it is root's.

    The kernel counts the processes of a user in each such namespace: without one, a guest of root's
    could use up the number of processes of all others. bubblewrap makes one for other users.

    Returns: its descriptor; none for another user than root, or if the kernel refuses it.
    """
    if os.geteuid() != 0:
        return ()
    # `cat` holds the namespace until it is opened here.
    with subprocess.Popen(
        ["unshare", "--user", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        try:
            holder.stdin.write("entered\n")
            holder.stdin.flush()
            holder.stdout.readline()
            for kind in ("uid_map", "gid_map"):
                same = [
                    line.split() for line in Path(f"/proc/self/{kind}").read_text().splitlines()
                ]
                text = "".join(f"{first} {first} {count}\n" for first, _, count in same)
                Path(f"/proc/{holder.pid}/{kind}").write_text(text)
            return (os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY),)
        except OSError:
            return ()


def own_processes() -> list[str]:
    """Return the command prefix for the first process of a namespace of processes.

    When that process ends, the kernel first ends all others of the namespace: a caller that has
    waited for the command has waited for all of them. The sandbox is a namespace inside it; it
    neither sees nor reaches its first process, nor unshare, which ends with twoway and ends the
    namespace with it. The namespace has its own /proc, in which bubblewrap looks for processes by
    their numbers in it.
    """
    words = ["setpriv", "--pdeathsig", "KILL"]
    words += ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"]
    return words if os.geteuid() == 0 else [*words, "--user", "--map-current-user"]


def _python() -> dict[str, Path]:
    """Return the environment's interpreter, which may be a link to a file outside of /usr."""
    python = Path(sys.base_prefix).resolve()
    return {} if python.is_relative_to("/usr") else {str(python): python}


def _refuse_unreadable(places: Iterable[Path]) -> None:
    """Raise TwowayError if a file or folder is not readable for all."""
    for place in places:
        needed = 0o005 if place.is_dir() else 0o004
        if place.stat().st_mode & needed != needed:
            raise TwowayError(
                f"{place}: not readable for the user `nobody`, which runs root's programs "
                "in the sandbox",
                f"`chmod -R go+rX {place}`, or run twoway as another user than root",
            )
