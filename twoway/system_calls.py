"""The system calls that a sandboxed program may make on the host.

user-mode Linux handles its guest's system calls itself: the host sees files, memory, signals,
timers and ptrace. Any other call that a module in the guest's kernel makes to the host fails as
unknown. libseccomp, which Debian's apt needs, turns the names into a filter for bubblewrap.

    system_calls.py COMMAND... run a command under the filters, where there is no bubblewrap
"""

import ctypes
import errno
import os
import sys
from functools import cache
from pathlib import Path

from twoway.errors import TwowayError

# All allowed calls by name: any other fails as if the host's kernel did not have it, and the C
# library then avoids it. Last three lines: QEMU; setpriv, and the calls by which user-mode Linux
# 6.13 starts processes.
_ALLOWED = """
    access chdir chmod chown close close_range copy_file_range dup dup2 dup3 faccessat
    faccessat2 fallocate fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr
    flistxattr flock fstat fstatfs fsync ftruncate futimesat getcwd getdents64 getxattr lchown
    lgetxattr link linkat listxattr llistxattr lseek lstat mkdir mkdirat mknod mknodat
    newfstatat open openat pread64 preadv pwrite64 pwritev read readlink readlinkat readv rename
    renameat renameat2 rmdir sendfile stat statfs statx symlink symlinkat truncate umask unlink
    unlinkat utime utimensat utimes write writev
    brk madvise mincore mmap mprotect mremap msync munmap
    arch_prctl clone execve exit exit_group fork futex getegid geteuid getgid getgroups getpgid
    getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid
    membarrier modify_ldt personality prctl prlimit64 ptrace rseq sched_getaffinity
    sched_setaffinity sched_yield set_robust_list set_tid_address setpgid setrlimit setsid sysinfo
    times uname vfork wait4 waitid
    alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime
    kill pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
    rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack tgkill tkill
    accept accept4 bind connect epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd
    eventfd2 getpeername getrandom getsockname getsockopt ioctl listen pipe pipe2 poll ppoll
    pselect6 recvfrom recvmsg select sendmsg sendto setsockopt shutdown socketpair
    fadvise64 mlock munlock sched_get_priority_max sched_get_priority_min sched_getparam
    sched_getscheduler signalfd4 syncfs timerfd_create timerfd_gettime timerfd_settime
    capget capset execveat memfd_create seccomp setgid setgroups setresgid setresuid setuid
"""
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 21, 22, 38
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION_BYTES = 8
# libseccomp's constants: actions for a call, and comparisons of an argument.
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NOT, _EQUAL, _MASKED = 1, 4, 7
# clone's flags for new namespaces; ioctl's requests that type into a terminal.
_CLONE_NAMESPACES = 0x7E020000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_AF_UNIX = 1
# A process may not attach to another to trace it, nor undo that it is killed with its parent.
_PTRACE_ATTACH, _PTRACE_SEIZE = 16, 0x4206
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9
_INT = 0xFFFFFFFF


class _Argument(ctypes.Structure):
    """libseccomp's comparison of a call's argument."""

    _fields_ = (
        ("number", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


class _Program(ctypes.Structure):
    """The kernel's form of a filter."""

    _fields_ = (("instructions", ctypes.c_ushort), ("code", ctypes.c_char_p))


@cache
def _libseccomp() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise TwowayError(
            "the sandbox needs libseccomp.so.2, which is missing", "apt-get install libseccomp2"
        ) from error
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.POINTER(_Argument),
    )
    library.seccomp_export_bpf.argtypes = (ctypes.c_void_p, ctypes.c_int)
    library.seccomp_release.argtypes = (ctypes.c_void_p,)
    return library


def _filter(otherwise: int, rules: list[tuple[str, int, list[_Argument]]]) -> int:
    """Write a filter to a file in memory.

    Args:
        otherwise: action for calls without a rule.
        rules: a call's name, its action, and the comparisons of its arguments.

    Returns: the file's descriptor.
    """
    library = _libseccomp()
    made = library.seccomp_init(otherwise)
    for name, action, arguments in rules:
        number = library.seccomp_syscall_resolve_name(name.encode())
        wanted = (_Argument * len(arguments))(*arguments)
        status = library.seccomp_rule_add_array(made, action, number, len(arguments), wanted)
        assert status == 0, f"{name}: {os.strerror(-status)}"
    file = os.memfd_create("twoway-filter")
    assert library.seccomp_export_bpf(made, file) == 0
    library.seccomp_release(made)
    return file


@cache
def filters() -> tuple[int, ...]:
    """Make the filters of system calls for a sandboxed program.

    A call must pass all of them.

    Returns: descriptors of files in memory, for `bwrap --add-seccomp-fd`; none if this kernel has
        no filters, as that of our own guest.
    Raises: TwowayError without libseccomp.
    """
    if ctypes.CDLL(None).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        return ()
    missing, refused = _ERRNO | errno.ENOSYS, _ERRNO | errno.EPERM
    return (
        _filter(missing, [(name, _ALLOW, []) for name in [*_ALLOWED.split(), "socket"]]),
        _filter(
            _ALLOW,
            [
                ("socket", refused, [_Argument(0, _NOT, _AF_UNIX)]),
                ("ioctl", refused, [_Argument(1, _MASKED, _INT, _TIOCSTI)]),
                ("ioctl", refused, [_Argument(1, _MASKED, _INT, _TIOCLINUX)]),
                ("ptrace", refused, [_Argument(0, _EQUAL, _PTRACE_ATTACH)]),
                ("ptrace", refused, [_Argument(0, _EQUAL, _PTRACE_SEIZE)]),
                (
                    "prctl",
                    refused,
                    [_Argument(0, _MASKED, _INT, _PR_SET_PDEATHSIG), _Argument(1, _NOT, _SIGKILL)],
                ),
                *(
                    ("clone", refused, [_Argument(0, _MASKED, 1 << bit, 1 << bit)])
                    for bit in range(32)
                    if _CLONE_NAMESPACES & 1 << bit
                ),
            ],
        ),
    )


def _enter() -> None:
    """Put this process under the filters permanently."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    codes = [Path(f"/proc/self/fd/{file}").read_bytes() for file in filters()]
    assert prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    for code in codes:
        program = _Program(len(code) // _INSTRUCTION_BYTES, code)
        if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
            sys.exit(f"the filters of system calls: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    _enter()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted
