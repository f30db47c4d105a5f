"""The checks of `twoway doctor`: what works on this machine, and what to install."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from twoway.backends.native import unfit
from twoway.backends.qemu import version
from twoway.confinement import confined_command, refusal
from twoway.contract.folders import disk_bytes
from twoway.errors import TwowayError
from twoway.guest.cache import find_guest
from twoway.guest.stock_kernel import find_stock
from twoway.paths import PACKAGED, cache, results
from twoway.system_calls import filters

# A program, the Debian and Ubuntu package that contains it, and its purpose.
PROGRAMS = (
    ("bwrap", "bubblewrap", "sandbox of the guest"),
    ("mnexec", "mininet", "Mininet's namespaces"),
    ("ip", "iproute2", "links and routes"),
    ("tc", "iproute2", "queues and delays"),
    ("ethtool", "ethtool", "offloads"),
    ("ifconfig", "net-tools", "Mininet's addresses"),
    ("tcpdump", "tcpdump", "captures"),
    ("iperf3", "iperf3", "standard traffic"),
    ("insmod", "kmod", "kernel modules"),
)
# Programs that build the guest; lab hosts and Debian packages receive a built guest.
COMPILERS = (
    ("cc", "gcc", "guest programs"),
    ("flex", "flex", "kernel build"),
    ("bison", "bison", "kernel build"),
)


def examine() -> list[dict[str, Any]]:
    """Check the programs, the sandbox and every backend.

    Returns: a row per check: {what, ok, found, remedy, required}.
    """
    guest = _guest()
    builders = () if PACKAGED.is_dir() else COMPILERS
    compilers = [_program(*p) | {"required": not guest["ok"]} for p in builders]
    return [*(_program(*p) for p in PROGRAMS), *compilers, _sandbox(), guest, _qemu(), _native()]


def disk_use() -> Iterator[dict[str, Any]]:
    """Return the disk space of runs and of each folder in the cache: rows as of examine()."""
    places = [results(), *(path for path in sorted(cache().glob("*")) if path.is_dir())]
    places = [path for path in places if path.is_dir()]
    for path, size_bytes in zip(places, disk_bytes(places), strict=True):
        size = f"{size_bytes / 1e6:8.0f} MB in {path}"
        remedy = "`twoway clean` lists what can be removed"
        yield _finding(f"disk: {path.name}", True, size, remedy, required=False)


def _finding(
    what: str, ok: bool, found: str, remedy: str, *, required: bool = True
) -> dict[str, Any]:
    return {"what": what, "ok": ok, "found": found, "remedy": remedy, "required": required}


def _program(name: str, package: str, purpose: str) -> dict[str, Any]:
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    return _finding(
        name,
        path is not None,
        path or f"for: {purpose}",
        f"apt-get install {package} (or `make setup`)",
    )


def _sandbox() -> dict[str, Any]:
    what = "sandbox"
    try:
        argv = [*confined_command({}, shm_mib=1), "true"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10)
    except TwowayError as error:
        return _finding(what, False, str(error), error.hint)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _finding(what, False, str(error), "apt-get install bubblewrap")
    filtered = (
        "filters of system calls" if filters() else "no filters: this kernel does not support them"
    )
    held = f"the container alone ({refusal()})" if refusal() else "namespaces"
    return _finding(
        what,
        done.returncode == 0,
        done.stderr.strip() or f"{held}, and {filtered}",
        "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
        ", or run as root; in a container, with a /proc of its own",
    )


def _guest() -> dict[str, Any]:
    what = "backend uml"
    try:
        guest = find_guest()
    except TwowayError as error:
        return _finding(what, False, str(error), error.hint)
    if guest is None:
        return _finding(what, False, "the guest is not built", "`make setup`")
    mode = "seccomp" if guest.has_seccomp else "ptrace"
    return _finding(what, True, f"Linux {guest.release}, virtual time, {mode}", "")


def _qemu() -> dict[str, Any]:
    what, remedy = "backend qemu", "`make experiment VM=qemu` installs and fetches it"
    try:
        found = version()
        stock = find_stock()
    except TwowayError as error:
        return _finding(what, False, str(error), remedy, required=False)
    if stock is None:
        return _finding(what, False, "no kernel fetched", remedy, required=False)
    return _finding(what, True, f"{stock.package}, {found}", "", required=False)


def _native() -> dict[str, Any]:
    what = "backend native"
    try:
        lacks = unfit()
    except TwowayError as error:
        return _finding(what, False, str(error), error.hint, required=False)
    return _finding(what, not lacks, lacks or os.uname().release, "another kernel", required=False)
