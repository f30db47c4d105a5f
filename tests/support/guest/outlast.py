"""Try to outlive the sandbox, and to change files that twoway takes over from it.

Runs in the sandbox, as a process that a module in a guest's kernel starts, or as a topology's
Python. It removes the death signal of the sandbox's first process by ptrace, writes into every pipe
that it was left, detaches itself, and waits for the moment at which the guest's files become the
run's, to put links where the host writes.

    outlast.py MARK LINKED an argument of the process that stays; the target of the links
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys

PTRACE_STEP, PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_ATTACH, PTRACE_DETACH = 9, 12, 13, 16, 17
PRCTL, PR_SET_PDEATHSIG = 157, 1
# Offsets in the kernel's user_regs_struct.
RAX, RSI, RDI, ORIG_RAX, RIP = 10, 13, 14, 15, 16
NO_CALL = 2**64 - 1
WALL = 0x40000000

# The process that stays; a folder's descriptor still leads to the folder after a move.
STAYING = """
import os, sys, time
linked = sys.argv[2]
with open("/dev/shm/detached", "w"):
    pass
if linked:
    os.chdir("/mnt/run/pcap")
    with open("../detached", "w"):
        pass
    while os.path.exists("/mnt/run/plan.json"):
        time.sleep(0.0002)
    for name in ("h1-eth0.pcap.zst", "../manifest.json", "../.manifest.json", "../metrics.json"):
        os.symlink(linked, ".link")
        os.rename(".link", name)
time.sleep(100)
"""


def without_death_signal() -> str:
    """Make the sandbox's first process ask for no signal at its parent's end; return the result."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)

    def ask(what: int, registers: ctypes.Array[ctypes.c_ulonglong] | None = None) -> int:
        return int(libc.ptrace(what, 1, None, registers and ctypes.addressof(registers)))

    if ask(PTRACE_ATTACH) != 0:
        return f"attach: {os.strerror(ctypes.get_errno())}"
    os.waitpid(1, WALL)
    old, new = ((ctypes.c_ulonglong * 27)() for _ in range(2))
    for registers in (old, new):
        ask(PTRACE_GETREGS, registers)
    new[RIP] -= 2
    new[RAX], new[ORIG_RAX], new[RDI], new[RSI] = PRCTL, NO_CALL, PR_SET_PDEATHSIG, 0
    ask(PTRACE_SETREGS, new)
    ask(PTRACE_STEP)
    os.waitpid(1, WALL)
    ask(PTRACE_GETREGS, new)
    old[RIP], old[RAX], old[ORIG_RAX] = old[RIP] - 2, old[ORIG_RAX], NO_CALL
    ask(PTRACE_SETREGS, old)
    ask(PTRACE_DETACH)
    return f"no death signal: {ctypes.c_longlong(new[RAX]).value}"


def outlast(mark: str, linked: str = "") -> str:
    """Try to outlive the sandbox; return, in the process that remains, the result so far."""
    said = without_death_signal()
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                os.write(number, b"x" * 64)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 1024)
            os.open("/dev/null", os.O_RDWR)
            words = ["python3", "-I", "-c", STAYING, mark, linked]
            os.execv("/usr/bin/python3", words)  # noqa: S606 - no shell is wanted
        os._exit(0)
    os.wait()
    while not os.path.exists("/dev/shm/detached"):  # noqa: PTH110 - as few imports as can be
        pass
    return said


if __name__ == "__main__":
    with open("/mnt/run/said", "w") as file:  # noqa: PTH123
        file.write(outlast(*sys.argv[1:]) + "\n")
