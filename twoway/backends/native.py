"""The backend `native`: this machine's own kernel, as root.

The network is built in a network namespace inside the same sandbox as a guest's, so nodes, links,
queues and captures vanish with the sandbox's last process. Only settings that exist once per kernel
are changed outside: modules and a few limits. The keeper process of host_changes.py undoes these
changes however this process ends.
"""

import gzip
import lzma
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoway.backends.backend import Kind, Progress, refuse_what_uml_has
from twoway.backends.host_changes import HostChanges
from twoway.backends.host_interfaces import namespace_name
from twoway.backends.sandbox import GUEST_PATH, RUNNER, STALL_S, Culprit, live, places
from twoway.confinement import own_processes
from twoway.contract.files import sha256
from twoway.contract.plan import LoadModule, SetSysctls, Share, read_plan
from twoway.errors import UsageError
from twoway.guest.cache import build_lock
from twoway.guest.programs import GUEST_PROGRAMS, RUNNER_SOURCES, build_programs, sources_key
from twoway.manifest import Kernel, Module, Platform
from twoway.paths import KERNEL_MODULES, cache
from twoway.progress import Steps

HEADERS = "/lib/modules/{release}/build"
# Folder in which DKMS installs the modules that it built, and signed if the machine requires that.
DKMS = "/lib/modules/{release}/updates/dkms"
# Options that a kernel must have, built in or as modules, and their purpose.
NEEDED = {
    "CONFIG_MODULES": "our congestion controls and queues",
    "CONFIG_NET_NS": "nodes",
    "CONFIG_PID_NS": "ending all processes at once",
    "CONFIG_VETH": "links",
    "CONFIG_NET_SCH_NETEM": "rates and delays",
    "CONFIG_HIGH_RES_TIMERS": "rates and delays below a millisecond",
    "CONFIG_TCP_CONG_ADVANCED": "a congestion control for each flow",
    "CONFIG_INET_TCP_DIAG": "samples of TCP_INFO",
    "CONFIG_PACKET": "captures",
}
# Run the runner and write its exit status, as init does in a guest.
_WITH_STATUS = ("/bin/sh", "-c", '"$@"; echo $? > /mnt/run/exit-status', "sh")
# Own namespaces, which end with the sandbox, but root's rights: the runner makes network
# namespaces, mounts and queues. The environment is the one that a guest's init sets.
_AS_ROOT = f"""
    bwrap --die-with-parent --unshare-net --unshare-pid --unshare-ipc --unshare-uts
    --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /mnt
    --cap-add ALL --tmpfs /run --dir /run/netns --chdir /
    --clearenv --setenv TMPDIR /dev/shm --setenv HOME /tmp --setenv PATH {GUEST_PATH}
"""


@dataclass(frozen=True)
class Native:
    """The backend `native`.

    Attributes:
        programs: folder with stream, observe and our modules for this kernel.
        name: the value of `--backend`.
        in_kernel: see Backend.
    """

    programs: Path
    name: str = "native"
    in_kernel: bool = False

    def run(self, folder: Path, on_progress: Callable[[Progress], None]) -> None:
        """Carry out plan.json in namespaces of this machine's kernel."""
        plan = read_plan(folder)
        refuse_what_uml_has(plan, self.name)
        with HostChanges() as kept:
            for step in plan.setup:
                if step.node is None and isinstance(step, LoadModule | SetSysctls):
                    self._set(step, kept)
            share = plan.share or Share(nodes=(), links={})
            kept.nodes(share.nodes)
            for name, interface in share.links.items():
                kept.link(name, interface)
            (folder / "pcap").mkdir(exist_ok=True)
            live(
                [
                    *self._sandbox(folder),
                    *_namespace_binds(share.nodes),
                    *_WITH_STATUS,
                    *RUNNER,
                    "--native",
                ],
                folder,
                folder,
                on_progress,
                stall_s=STALL_S,
                culprit=lambda _: Culprit("a step of its plan does not end"),
            )

    def _set(self, step: LoadModule | SetSysctls, kept: HostChanges) -> None:
        """Apply a step that changes the whole kernel: a sysctl or a module."""
        if isinstance(step, LoadModule):
            kept.module(self.programs / step.file, step.words)
        else:
            for name, value in step.sysctls.items():
                kept.write_setting(Path("/proc/sys") / name.replace(".", "/"), str(value))

    def _sandbox(self, folder: Path) -> list[str]:
        words = [*own_processes(), *_AS_ROOT.split(), "--bind", str(folder), "/mnt/run"]
        for inside, outside in places(self.programs, Path("/dev/null"), {}).items():
            words += ["--ro-bind", str(outside), inside]
        return words

    def description(self) -> Platform:
        """Describe this machine's kernel and our modules for it."""
        return Platform(
            backend=self.name,
            clock_source="host",
            kernel=Kernel(release=os.uname().release, key=self.programs.name),
            modules={p.name: Module.from_file(p) for p in sorted(self.programs.glob("*.ko"))},
        )

    def identify(self, modules: Sequence[str]) -> dict[str, Any]:
        """Identify this machine, its kernel, our programs and the modules in use."""
        system = os.uname()
        return {
            "kernel": f"{system.release} {system.version}",
            "machine": system.nodename,
            "key": self.programs.name,
            "runner": {p.name: sha256(p) for p in RUNNER_SOURCES},
            "modules": {name: sha256(self.programs / name) for name in modules},
        }


def _namespace_binds(nodes: Sequence[str]) -> list[str]:
    """List the bwrap options that bind the nodes' namespaces.

    /run/netns/twoway-NODE outside is /run/netns/NODE inside.
    """
    return [
        word
        for node in nodes
        for word in ("--bind", f"/run/netns/{namespace_name(node)}", f"/run/netns/{node}")
    ]


def make_native() -> Native:
    """Make the backend; build its programs and modules if need be.

    Raises: UsageError without root, or if the kernel lacks an option or its headers.
    """
    if os.geteuid() != 0:
        raise UsageError("the backend native changes this machine's network: it needs root")
    if lacks := unfit():
        raise UsageError(
            f"kernel {os.uname().release} cannot run experiments: {lacks}",
            "`--backend uml` does not use this machine's kernel",
        )
    release = os.uname().release
    installed = modules_of_dkms(release)
    programs = cache() / "programs" / _key(release, installed)
    if not programs.is_dir():
        _build(programs, installed)
    return Native(programs)


def modules_of_dkms(release: str) -> dict[str, bytes]:
    """Read our modules as DKMS installed them for a kernel.

    Returns: contents by file name; empty unless all modules were built from this checkout's
        sources, which is known only in a deployed checkout (by its file REVISION).
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
        elif packed.is_file():  # Debian 13 compresses modules
            content = lzma.decompress(packed.read_bytes())
        else:
            return {}
        if ours not in content:
            return {}
        found[plain.name] = content
    return found


def unfit() -> str:
    """List the options that the running kernel lacks, with their purpose.

    Returns: a phrase for people; empty if no option is missing.
    Raises: UsageError if the kernel's configuration is not known.
    """
    config = kernel_config()
    return ", ".join(f"no {name} ({what})" for name, what in NEEDED.items() if name not in config)


def kernel_config() -> set[str]:
    """Read the options that the running kernel has, built in or as modules.

    Raises: UsageError if neither /proc/config.gz nor /boot/config-RELEASE exists.
    """
    running, packaged = Path("/proc/config.gz"), Path(f"/boot/config-{os.uname().release}")
    if running.is_file():
        text = gzip.decompress(running.read_bytes()).decode()
    elif packaged.is_file():
        text = packaged.read_text()
    else:
        raise UsageError(
            f"kernel {os.uname().release}: neither {running} nor {packaged} exists",
            "its configuration is needed to know whether it can run experiments",
        )
    return set(re.findall(r"^(CONFIG_\w+)=[ym]$", text, re.MULTILINE))


def _key(release: str, installed: Mapping[str, bytes]) -> str:
    return sources_key(release.encode(), *installed.values())


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
