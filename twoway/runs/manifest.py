"""manifest.json: a run's description for the analysis, and its origins."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from twoway.backends.backend import Backend
from twoway.backends.sandbox import GUEST_PATH
from twoway.contract.files import digest_of, open_run_file, read_run_file
from twoway.contract.guest_files import read_document
from twoway.contract.network import START_NS, Ended, ProgramRun, Queue, Rerouted
from twoway.contract.plan import ENDED, PLAN, Plan
from twoway.description.addresses import address_in
from twoway.description.point import Point, spec_document, spec_hash
from twoway.errors import RunError
from twoway.links.direction import Direction
from twoway.links.dtm import Channel
from twoway.links.proof import not_proven as links_not_proven
from twoway.links.queue_limit import QueueLimit
from twoway.manifest import (
    CLOCKS,
    Clocks,
    Described,
    Experiment,
    Interface,
    Intervened,
    Manifest,
    Nodes,
    Profile,
    Timing,
    Window,
)
from twoway.paths import ROOT
from twoway.plan.kernels_own import changed_settings, not_proven
from twoway.plan.timing import stop_ns
from twoway.runs.captures import packed_name

# File in a deployed checkout: the revision of the checkout from which it was copied.
REVISION_FILE = "REVISION"
# File that a run's process keeps locked while it lives.
LOCK = "lock"
# Files of a run that no analysis reads, or that only this module reads.
_UNLISTED = ("exit-status", "sockets/progress.json", CLOCKS, LOCK)
# The end of a capture's log, in which tcpdump reports the packets that it lost.
_LAST_WORDS = 4096
_DROPPED = re.compile(r"(?<!\d)(\d{1,15}) packets? dropped by kernel")
_TOOLS = {
    "iproute2": ["ip", "-V"],
    "tc": ["tc", "-V"],
    "tcpdump": ["tcpdump", "--version"],
    "iperf3": ["iperf3", "--version"],
    "ethtool": ["ethtool", "--version"],
    "bubblewrap": ["bwrap", "--version"],
}


def build_manifest(
    point: Point,
    plan: Plan,
    backend: Backend,
    folder: Path,
    *,
    run: str,
    identity: str,
    wall_s: float,
    interventions: Intervened | None = None,
) -> Manifest:
    """Describe a run that has just ended.

    Raises: RunError if an artifact of the plan is missing.
    """
    asked, point, clocks = point, point.changed, _clocks(folder)
    files = _files(plan, folder)
    return Manifest(
        **dict(describe(point)),
        **dict(backend.description()),
        run=run,
        identity=identity,
        git=git_revision(),
        tools=tool_versions(),
        nodes=Nodes(hosts=point.graph.hosts, routers=(*point.graph.routers, *point.graph.switches)),
        interfaces=tuple(
            Interface(
                node=i.node,
                name=i.name,
                address=str(i.ip) if i.address else None,
                address6=str(address_in(i.ip, 6)) if plan.ipv6 and i.address else None,
                peer=i.peer_name,
            )
            for i in point.graph.interfaces
        ),
        queues=tuple(_queues(point, asked.planned)),
        connections=point.connections,
        datagrams=point.datagrams,
        programs=tuple(_programs(plan, folder)),
        settings=changed_settings(asked, plan),
        not_proven=(*not_proven(point), *links_not_proven(point.profile.directions)),
        interventions=interventions,
        captures={c.interface: c.direction for c in plan.captures},
        clock_offset_ns=clocks.offset_ns,
        clocks=clocks.nodes,
        capture_drops={c.interface: _capture_drops(folder, c.name) for c in plan.captures},
        files=files,
        digests=_digests(folder, files),
        timing=Timing(
            wall_s=round(wall_s, 3),
            simulated_s=point.experiment.duration_s,
            speed=round(point.experiment.duration_s / wall_s, 2),
        ),
    )


def describe(point: Point) -> Described:
    """Describe the experiment in a manifest, independent of backend and run."""
    profile = point.changed.profile.model_dump(by_alias=True, mode="json")
    return Described(
        experiment=Experiment.model_validate({"id": point.id, **spec_document(point)}),
        point=point.values,
        spec_sha256=spec_hash(point),
        clock=Window(
            start_ns=START_NS,
            steady_ns=START_NS + round(point.experiment.warm_up_s * 1e9),
            stop_ns=stop_ns(point),
        ),
        profile=Profile.model_validate(profile),
    )


def _rerouted(point: Point, router: str, routes: Mapping[str, str]) -> Iterable[Rerouted]:
    """List the routes of a router after each change."""
    ipv6, settings = point.experiment.has_ipv6, point.experiment.routers.get(router)
    for at_ns, new in point.graph.route_changes(
        router, settings.routes if settings else (), ipv6=ipv6
    ):
        routes = {**routes, **{goal: out.name for goal, (out, _) in new.items()}}
        yield Rerouted(at_ns=START_NS + at_ns, routes=routes)


def _limits(direction: Direction, until_ns: int) -> Iterable[tuple[int, int]]:
    """List the limits of a queue whose limit changes, by time."""
    if changing := direction.elements.find(QueueLimit):
        yield START_NS, changing.schedule[0][1]
        yield from changing.changes(until_ns)


def _queues(point: Point, begins: Point) -> Iterable[Queue]:
    for queue in point.graph.placed_queues:
        at_start = begins.profile.directions[queue.direction].leaves_at_start
        direction, interface = point.profile.directions[queue.direction], queue.interface
        routes = point.graph.ways_out(interface.node, ipv6=point.experiment.has_ipv6)
        reallocations = f"qdisc/{interface.node}-reallocations.csv"
        yield Queue(
            direction=queue.name,
            link=queue.direction,
            interface=interface.name,
            rate_bit=round(direction.start_mbit * 1e6),
            reallocations=reallocations if direction.elements.contains(Channel) else None,
            leaves_at_start=at_start and not point.profile.half_duplex,
            managed=direction.manager is not None,
            credit_ns=0 if point.profile.half_duplex else direction.credit_ns,
            limit_packets=direction.queue_packets,
            limits=tuple(_limits(direction, stop_ns(point))),
            overhead_bytes=direction.overhead_bytes,
            cell_bytes=direction.cell_bytes,
            cell_overhead_bytes=direction.cell_overhead_bytes,
            taps_in=tuple(
                i.name for i in point.graph.interfaces_of(interface.node) if i != interface
            ),
            ways_out=routes,
            rerouted=tuple(_rerouted(point, interface.node, routes)),
            delay_ns=direction.delay_ns,
        )


def _programs(plan: Plan, folder: Path) -> Iterable[ProgramRun]:
    """Describe how the programs that the experiment names ended.

    Raises: RunError if the guest left an invalid or no document on one.
    """
    if not plan.user_programs:
        return
    try:
        ended = read_document(folder, ENDED, dict[str, Ended])
        ends = {program.name: ended[program.name] for program in plan.user_programs}
    except (ValueError, KeyError) as error:
        raise RunError(f"the guest left no valid {ENDED}: {error}") from error
    for program in plan.user_programs:
        yield ProgramRun(
            **dict(ends[program.name]),
            name=program.name,
            host=str(program.node),
            command=program.run,
            start_ns=program.at_ns,
            by_itself=program.exit_code is not None,
            udp_port=program.udp_port,
            kept=program.kept,
        )


def _capture_drops(folder: Path, capture: str) -> int:
    """Read the number of packets that a capture lost from the end of its log."""
    said = read_run_file(folder, f"log/{capture}.err", _LAST_WORDS)
    match = _DROPPED.search(said)
    if not match:
        raise RunError(f"{capture}: did not report its number of lost packets: {said!r:.200}")
    return int(match[1])


def _clocks(folder: Path) -> Clocks:
    """Read the offset of the kernel's clock from the plan's.

    For a multi-host run this is the reference host's clock; each node's clock relative to it is
    added (lab/multihost_run.py).
    """
    try:
        return read_document(folder, CLOCKS, Clocks)
    except FileNotFoundError:
        return Clocks()
    except ValueError as error:
        raise RunError(f"the guest left no valid {CLOCKS}: {error}") from error


def _digests(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """Hash files of a run, by name."""
    digests = {}
    for name in files:
        with open_run_file(folder, name) as file:
            digests[name] = digest_of(file)
    return digests


def _files(plan: Plan, folder: Path) -> tuple[str, ...]:
    """List the artifacts of a plan.

    Raises: RunError if one is missing, or if there is a file that the plan does not make: a guest
        must not write the files of later steps.
    """
    packed = (packed_name(capture.interface) for capture in plan.captures)
    expected = [p if (folder / p).is_file() else p.removesuffix(".zst") for p in packed]
    expected += [program.stdout for program in plan.programs if program.stdout]
    expected += [file for program in plan.programs for file in program.reports]
    steps = plan.setup + plan.teardown
    expected += [step.file for step in steps if step.kind in {"save", "copy"}]
    expected += [r.file for step in steps if step.kind == "check" for r in step.readings]
    if plan.user_programs:
        expected += [
            *(f"programs/{p.name}.{s}" for p in plan.user_programs for s in ("out", "err")),
            *(file for p in plan.user_programs for file in p.kept),
            ENDED,
        ]
    expected += [PLAN, "sockets/tcp-info.csv", "sockets/queues.csv", "log/console.txt"]
    missing = [name for name in expected if not (folder / name).is_file()]
    if missing:
        raise RunError(f"the guest left no {', '.join(missing)}")
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if not (path.is_dir() or path.parent == folder / "log" or name in (*expected, *_UNLISTED)):
            raise RunError(f"the guest left {name!r}, which no step of its plan makes")
    return tuple(sorted(expected))


@cache
def git_revision() -> str:
    """Read the checkout's revision, -dirty if changed, or "unknown"; once in a process."""
    if (ROOT / REVISION_FILE).is_file():
        return (ROOT / REVISION_FILE).read_text("utf-8").strip()
    if shutil.which("git") is None:
        return "unknown"
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or "unknown"


@cache
def tool_versions() -> dict[str, str]:
    """Ask each tool for its version.

    Returns: the first line of the answer, by tool.
    """
    versions = {}
    environment = {**os.environ, "PATH": GUEST_PATH}
    for name, argv in _TOOLS.items():
        try:
            done = subprocess.run(
                argv, capture_output=True, text=True, check=False, env=environment
            )
        except OSError:
            versions[name] = "missing"
            continue
        versions[name] = (done.stdout or done.stderr).splitlines()[0].strip()
    return versions
