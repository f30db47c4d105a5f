"""Try every known escape from the sandbox; print those that succeed.

Runs in the sandbox: a module in a guest's kernel may do the same on the host as any process there.
The environment's caller gives it SECRET, which must not be here.
"""

import ctypes
import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

# System calls by number on x86-64. None may reach the kernel, which would return EFAULT or EINVAL.
CALLS = {
    "acct": 163,
    "add_key": 248,
    "bpf": 321,
    "chroot": 161,
    "clock_adjtime": 305,
    "clone3": 435,
    "delete_module": 176,
    "fanotify_init": 300,
    "finit_module": 313,
    "fsopen": 430,
    "init_module": 175,
    "io_uring_setup": 425,
    "ioperm": 173,
    "iopl": 172,
    "kexec_load": 246,
    "keyctl": 250,
    "mount": 165,
    "mount_setattr": 442,
    "move_mount": 429,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "open_tree": 428,
    "perf_event_open": 298,
    "pidfd_getfd": 438,
    "pidfd_open": 434,
    "pivot_root": 155,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "quotactl": 179,
    "reboot": 169,
    "request_key": 249,
    "setns": 308,
    "settimeofday": 164,
    "swapon": 167,
    "syslog": 103,
    "umount2": 166,
    "unshare": 272,
    "userfaultfd": 323,
}
CLONE, IOCTL, PRCTL, PTRACE, SOCKET = 56, 16, 157, 101, 41
CLONE_NEWUSER, TIOCSTI, TIOCLINUX = 0x10000000, 0x5412, 0x541C
PTRACE_ATTACH, PTRACE_SEIZE, PR_SET_PDEATHSIG = 16, 0x4206, 1
SHOWN = {
    "/": "bin boot dev etc home lib lib64 mnt proc root run sbin sys tmp usr var",
    "/mnt": "bin linux root run twoway upper venv ways_out.py",
    # Other users' results may be anywhere in a checkout.
    "/mnt/twoway": "topologies vm",
    "/mnt/twoway/vm": "guest",
    "/etc": "alternatives group hosts iproute2 ld.so.cache localtime nsswitch.conf passwd"
    " protocols services",
}
EMPTY = ("/boot", "/home", "/root", "/run", "/sys", "/tmp", "/var")
WRITABLE = {"/dev/shm", "/mnt/run"}

_libc = ctypes.CDLL(None, use_errno=True)


def refused(number: int, *arguments: int) -> bool:
    """Tell whether a system call fails before the kernel runs it."""
    status = _libc.syscall(number, *(ctypes.c_long(a) for a in (*arguments, -1, -1, -1)))
    return status == -1 and ctypes.get_errno() in {errno.ENOSYS, errno.EPERM}


def rights() -> Iterator[str]:
    """Yield rights that a program in the sandbox should not have."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
        if int(status[name], 16):
            yield f"{name} {status[name]}"
    if status["NoNewPrivs"].strip() != "1":
        yield "new privileges"
    if os.getuid() == 0:
        yield "root"


def calls() -> Iterator[str]:
    """Yield system calls that are not blocked."""
    for name, number in CALLS.items():
        if not refused(number, -1, -1, -1):
            yield name
    if not refused(CLONE, CLONE_NEWUSER | 17):
        yield "clone of a user namespace"
    for request in (TIOCSTI, TIOCLINUX, TIOCSTI | 1 << 32):
        if not refused(IOCTL, 0, request):
            yield f"ioctl {request:#x}"
    for family in range(50):
        if family != socket.AF_UNIX and not refused(SOCKET, family, socket.SOCK_DGRAM):
            yield f"socket family {family}"


def lives() -> Iterator[str]:
    """Yield ways to trace another process and to outlive one's parent."""
    for request in (PTRACE_ATTACH, PTRACE_SEIZE):
        if not refused(PTRACE, request, -1):
            yield f"ptrace {request:#x}"
    for signal in (0, 15, 1 << 32 | 9):
        for option in (PR_SET_PDEATHSIG, PR_SET_PDEATHSIG | 1 << 32):
            if not refused(PRCTL, option, signal):
                yield f"prctl {option:#x} of signal {signal:#x}"
    if opens(partial(os.open, "/proc/1/mem", os.O_WRONLY)):
        yield "the first process's memory"


def seen() -> Iterator[str]:
    """Yield visible files that should be hidden."""
    for folder, shown in SHOWN.items():
        for name in set(os.listdir(folder)) - {*shown.split()}:  # noqa: PTH208
            yield f"{folder}: {name}"
    for folder in EMPTY:
        yield from (str(path) for path in Path(folder).rglob("*") if not path.is_dir())


def opens(way: Callable[[], object]) -> bool:
    """Tell whether the kernel lets this process make or open a file."""
    try:
        way()
    except OSError:
        return False
    return True


def written() -> Iterator[str]:
    """Yield places that can be written and should not be."""
    for path in everything("/"):
        if path.is_dir() and str(path) not in WRITABLE and opens((path / "mark").touch):
            yield f"{path} is writable"
    for path in everything("/proc"):
        numbered = path.parts[2].isdecimal() or path.parts[2].endswith("self")
        if not numbered and path.is_file() and opens(partial(os.open, path, os.O_WRONLY)):
            yield f"{path} opens for writing"
    for folder in WRITABLE:
        for kind, number in ((stat.S_IFCHR, os.makedev(1, 3)), (stat.S_IFBLK, os.makedev(254, 0))):
            if opens(partial(os.mknod, f"{folder}/node", kind | 0o666, number)):
                yield f"a device in {folder}"


def everything(top: str) -> Iterator[Path]:
    """List the files and folders below a folder, without those of /usr and the environment."""
    for folder, inside, names in os.walk(top):
        inside[:] = [name for name in inside if f"{folder}/{name}" not in SKIPPED]
        yield from (Path(folder) / name for name in (*inside, *names))


# Large folders, each read-only as a whole: one try in each is enough.
SKIPPED = {"//usr", "/mnt/venv", "/mnt/twoway", "//proc"}


def others() -> Iterator[str]:
    """Yield traces of other processes, and limits of memory that do not hold."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"SECRET" in path.read_bytes():
                yield f"{path} has the caller's environment"
        except PermissionError:  # of bwrap, if root started it
            pass
    if len([*Path("/proc").glob("[0-9]*")]) > 2:  # more than bwrap and this process
        yield "other processes"
    try:
        bytearray(2 << 30)
        yield "2 GiB of memory"
    except MemoryError:
        pass
    try:
        with Path("/dev/shm/full").open("wb") as file:
            file.writelines(bytes(1 << 20) for _ in range(80))
        yield "80 MiB in /dev/shm"
    except OSError as error:
        if error.errno != errno.ENOSPC:
            yield str(error)


if __name__ == "__main__":
    for way in (*rights(), *calls(), *lives(), *seen(), *written(), *others()):
        print(way)
    print("tried")
