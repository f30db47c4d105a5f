"""The backend `native`: this machine's own kernel, in namespaces of their own, as root.

The network is built in a network namespace inside the sandbox that guests have, so that with its
last process everything in it is gone: nodes, links, queues, captures. Only what exists once per
kernel is changed outside: modules and a few limits. A keeper (keeper.py) undoes that however this
process ends.
"""

import gzip
import json
import lzma
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.backends.backend import Kind, Progress
from twoway.backends.host_changes import Kept
from twoway.backends.host_interfaces import join, namespace_name
from twoway.backends.sandbox import GUEST_PATH, RUNNER, STALL_S, live, sandbox
from twoway.contract.writing import module_identity, sha256
from twoway.errors import UsageError
from twoway.guest.build import (
    GUEST_PROGRAMS,
    GUEST_SOURCES,
    MODULE_SOURCES,
    build_lock,
    build_programs,
    content_hash,
    contents,
)
from twoway.paths import KERNEL_MODULES, VM, cache
from twoway.progress import Steps

HEADERS = "/lib/modules/{release}/build"
# Where DKMS installs what it built, and signed if the machine asks for that.
DKMS = "/lib/modules/{release}/updates/dkms"
# What a kernel must have, built in or as modules, and what for.
NEEDED = {
    "CONFIG_MODULES": "congestion controls and queues of ours",
    "CONFIG_NET_NS": "nodes",
    "CONFIG_PID_NS": "ending all processes at once",
    "CONFIG_VETH": "links",
    "CONFIG_NET_SCH_NETEM": "rates and delays",
    "CONFIG_HIGH_RES_TIMERS": "rates and delays below a millisecond",
    "CONFIG_TCP_CONG_ADVANCED": "a congestion control for each flow",
    "CONFIG_INET_TCP_DIAG": "samples of TCP_INFO",
    "CONFIG_PACKET": "captures",
    "CONFIG_IP_MULTIPLE_TABLES": "iperf3's control connection",
}
# A runner that leaves its status, as a guest's init does; sh is process 1 but for bwrap's.
_WITH_STATUS = ("/bin/sh", "-c", '"$@"; echo $? > /mnt/run/exit-status', "sh")
# As a guest's init has it; and all rights, for namespaces of network, mounts and queues.
_AS_ROOT = f"""
    --cap-add ALL --tmpfs /run --dir /run/netns
    --setenv HOME /tmp --setenv PATH {GUEST_PATH}
"""


@dataclass(frozen=True)
class Native:
    """The backend (see backend.py).

    Attributes:
        programs: folder with stream, observe and our modules for this kernel.
    """

    programs: Path
    name: str = "native"

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """See Backend."""
        plan = json.loads((folder / "plan.json").read_text())
        with Kept() as kept:
            for step in plan["setup"]:
                if step["node"] is None:
                    self._set(step, kept)
            nodes = plan.get("nodes", [])  # of a bench: what Mininet makes elsewhere
            kept.nodes(nodes)
            for name, interface in plan.get("links", {}).items():
                kept.link(name, interface)
            for ends in plan.get("joints", []):
                join(ends)
            live(
                [*self._sandbox(folder), *_entered(nodes), *_WITH_STATUS, *RUNNER, "--native"],
                folder,
                on_progress,
                stall_s=STALL_S,
                culprit=lambda: "a step of its plan does not end",
            )

    def _set(self, step: dict[str, Any], kept: Kept) -> None:
        """What exists once per kernel, outside of the namespaces."""
        for name, value in step.get("sysctl", {}).items():
            kept.setting(Path("/proc/sys") / name.replace(".", "/"), str(value))
        if "run" in step:
            program, path, *parameters = step["run"]
            assert program == "insmod"
            kept.module(self.programs / Path(path).name, parameters)

    def _sandbox(self, folder: Path) -> list[str]:
        return [*sandbox(folder, self.programs, Path("/dev/null"), {}), *_AS_ROOT.split()]

    def description(self) -> dict[str, Any]:
        """See Backend."""
        return {
            "backend": self.name,
            "clock_source": "host",
            "kernel": {"release": os.uname().release, "key": self.programs.name},
            "modules": {p.name: module_identity(p) for p in sorted(self.programs.glob("*.ko"))},
        }

    def decisive(self, modules: Sequence[str]) -> dict[str, Any]:
        """See Backend."""
        system = os.uname()
        return {
            "kernel": f"{system.release} {system.version}",
            "machine": system.nodename,
            "key": self.programs.name,
            "runner": sha256(VM / "guest/run.py"),
            "modules": {name: sha256(self.programs / name) for name in modules},
        }


def _entered(nodes: list[str]) -> list[str]:
    """Options of the sandbox with which a bench's nodes are in it, by their own names."""
    return [
        word
        for node in nodes
        for word in ("--bind", f"/run/netns/{namespace_name(node)}", f"/run/netns/{node}")
    ]


def make_native() -> Native:
    """The backend on this machine, with programs and modules built if they are not.

    Raises: UsageError if this machine, its kernel or who asks is not fit for it.
    """
    if os.geteuid() != 0:
        raise UsageError("the backend native changes this machine's network: it needs root")
    if lacks := unfit():
        raise UsageError(
            f"kernel {os.uname().release} cannot run experiments: {lacks}",
            "`--backend uml` takes nothing of this machine's kernel",
        )
    release = os.uname().release
    installed = modules_of_dkms(release)
    programs = cache() / "programs" / _key(release, installed)
    if not programs.is_dir():
        _build(programs, installed)
    return Native(programs)


def modules_of_dkms(release: str) -> dict[str, bytes]:
    """Our modules as DKMS installed them for a kernel, by file name.

    Empty unless all of them are of this checkout's sources, which one that was deployed can tell.
    """
    revision = KERNEL_MODULES / "REVISION"
    if not revision.is_file():
        return {}
    ours = b"\0revision=%s\0" % revision.read_bytes().strip()
    folder = Path(DKMS.format(release=release))
    kbuild = (KERNEL_MODULES / "Kbuild").read_text()
    found = {}
    for name in re.findall(r"^obj-m \+= (\w+)", kbuild, re.MULTILINE):
        plain, packed = folder / f"{name}.ko", folder / f"{name}.ko.xz"
        if plain.is_file():
            content = plain.read_bytes()
        elif packed.is_file():  # as Debian 13 has its own
            content = lzma.decompress(packed.read_bytes())
        else:
            return {}
        if ours not in content:
            return {}
        found[plain.name] = content
    return found


def unfit() -> str:
    """The options that the running kernel lacks, and what for; empty if none.

    Raises: UsageError if there is no telling.
    """
    config = kernel_config()
    return ", ".join(f"no {name} ({what})" for name, what in NEEDED.items() if name not in config)


def kernel_config() -> set[str]:
    """The options that the running kernel has, built in or as modules.

    Raises: UsageError if it does not say and its package left no configuration.
    """
    running, packaged = Path("/proc/config.gz"), Path(f"/boot/config-{os.uname().release}")
    if running.is_file():
        text = gzip.decompress(running.read_bytes()).decode()
    elif packaged.is_file():
        text = packaged.read_text()
    else:
        raise UsageError(
            f"kernel {os.uname().release}: neither {running} nor {packaged}",
            "without its configuration nobody can tell whether it can run experiments",
        )
    return set(re.findall(r"^(CONFIG_\w+)=[ym]$", text, re.MULTILINE))


def _key(release: str, installed: Mapping[str, bytes]) -> str:
    return content_hash(
        release.encode(),
        *installed.values(),
        *(source.read_bytes() for source in GUEST_SOURCES),
        *contents(KERNEL_MODULES, MODULE_SOURCES),
    )


def _build(programs: Path, installed: Mapping[str, bytes]) -> None:
    headers = Path(HEADERS.format(release=os.uname().release))
    if not installed and not headers.exists():
        raise UsageError(
            f"no headers for kernel {os.uname().release}: {headers} is not there",
            f"apt-get install linux-headers-{os.uname().release}",
        )
    with build_lock("native"), Steps() as steps:
        if not programs.is_dir():
            modules = installed or ["-C", str(headers), "KCFLAGS=-Werror"]
            build_programs(programs, GUEST_PROGRAMS, modules, steps, "native")


KINDS = (Kind("native", "this machine's kernel, as root", make_native),)
