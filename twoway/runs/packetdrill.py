"""Scripts of packetdrill, each in a guest of its own, in virtual time.

The binary is the user's, as no distribution packages it. A script sees its folder's small files and
the folders that it names by `../`, copied; the guest reads nothing else of the user's.
"""

import json
import re
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from capture_analysis.printable import printable

from twoway.backends import uml
from twoway.backends.sandbox import CHECKOUT, GUEST_FOLDER, STALL_S
from twoway.contract.files import read_run_file, read_whole
from twoway.contract.plan import PLAN, Plan
from twoway.errors import RunError, TwowayError, UsageError
from twoway.guest.cache import Guest

# Arguments of each variant, as packetdrill's run_all.py and the kernel's ksft_runner.sh give them.
_IPV4 = (
    *("--local_ip=192.168.0.1", "--gateway_ip=192.168.0.1", "--netmask_ip=255.255.0.0"),
    *("--remote_ip=192.0.2.1", "-D", "TFO_COOKIE=3021b9d889017eeb", "-D", "CODE=host_unreachable"),
)
VARIANTS: Mapping[str, Sequence[str]] = {
    "ipv4": (
        *("--ip_version=ipv4", *_IPV4),
        *("-D", "CMSG_LEVEL_IP=SOL_IP", "-D", "CMSG_TYPE_RECVERR=IP_RECVERR"),
    ),
    "ipv6": (
        *("--ip_version=ipv6", "--mtu=1520", "--local_ip=fd3d:0a0b:17d6::1"),
        *("--gateway_ip=fd3d:0a0b:17d6:8888::1", "--remote_ip=fd3d:fa7b:d17d::1"),
        *("-D", "TFO_COOKIE=c1d1e9742a47a9bc"),
        *("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR"),
    ),
    "ipv4-mapped-v6": (
        *("--ip_version=ipv4-mapped-ipv6", *_IPV4),
        *("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR"),
    ),
}
_RUNNER = ("/mnt/venv/bin/python", "-I", "-S", f"{CHECKOUT}/vm/guest/packetdrill.py")
_BINARY = "/mnt/packetdrill"
_MEMORY_MIB = 256
# Time limit of a script on its own clock, as in run_all.py.
LIMIT_S = 180
# Limits of a script, of each file that it reads, and of all of them.
_SCRIPT_BYTES, _FILE_BYTES, _ALL_BYTES = 1 << 20, 4 << 20, 16 << 20
_CAPTURE_BYTES = 32 << 20
# A folder that a script names, such as ../../common; the script's own folder has room above it.
_ABOVE = re.compile(r"(?<![\w./])((?:\.\./){1,4})([A-Za-z0-9][\w-]*)/")
_HERE = ("1", "2", "3", "4", "scripts")
_PLACE = re.compile(r"^\S+?:(\d+): (.*)", re.MULTILINE)
_TIMES = re.compile(r"expected .* at (?P<expected>[\d.]+) sec but happened at (?P<seen>[\d.]+) sec")
_FORKS = "Resource temporarily unavailable"
_PT_INTERP = 3


@dataclass(frozen=True)
class Trial:
    """A script in a variant.

    Attributes:
        script: the script's file.
        title: its path below the folder that the user named.
        variant: a key of VARIANTS.
    """

    script: Path
    title: str
    variant: str

    @property
    def name(self) -> str:
        """The trial's name in reports."""
        return f"{self.title} {self.variant}"

    @property
    def root(self) -> Path:
        """The folder that the user named, or that of the script."""
        return self.script.parents[len(Path(self.title).parts) - 1]


@dataclass(frozen=True)
class Verdict:
    """The end of a trial.

    Attributes:
        name: the trial's name.
        problem: a sentence on why it failed; empty if it passed.
        line: number of the script's line that failed, if packetdrill names one.
        said: the last lines that packetdrill wrote on standard error; all of a selftest's output.
        capture: the packets of its TUN, of one that failed.
        skipped: the reason why a selftest did not run to its end; empty if it did.
        checks: a selftest's lines on parts of it that failed or were skipped.
    """

    name: str
    problem: str = ""
    line: int | None = None
    said: str = ""
    capture: bytes = b""
    skipped: str = ""
    checks: tuple[str, ...] = ()

    @cached_property
    def times_s(self) -> tuple[float, float] | None:
        """The time that the script expects, and that of the event, if they differ."""
        found = _TIMES.search(self.problem)
        return found and (float(found["expected"]), float(found["seen"]))

    def document(self) -> dict[str, Any]:
        """Return what JSON has of it."""
        expected_s, seen_s = self.times_s or (None, None)
        passed = {"name": self.name, "pass": not self.problem}
        if self.skipped:
            return passed | {"skipped": self.skipped}
        if not self.problem:
            return passed
        failed = {"problem": self.problem, "line": self.line}
        return {**passed, **failed, "expected_s": expected_s, "seen_s": seen_s}


def find_trials(places: Sequence[Path], variants: Sequence[str]) -> Iterator[Trial]:
    """List the scripts of files and folders, with the variants that their names allow.

    Raises: UsageError for a place without a script, or a file of another kind.
    """
    for place in places:
        if not place.exists():
            raise UsageError(f"{place}: no such file or folder")
        scripts = sorted(place.rglob("*.pkt")) if place.is_dir() else [place]
        if not scripts:
            raise UsageError(f"{place}: no script in it: they end in .pkt")
        for script in scripts:
            if place.is_dir() and not script.resolve().is_relative_to(place.resolve()):
                raise UsageError(f"{script}: a link that leads out of {place}")
            _refuse_no_script(script)
            title = script.relative_to(place) if place.is_dir() else script.name
            for variant in variants:
                other = "v6.pkt" if variant != "ipv6" else "v4.pkt"
                if not script.name.endswith(other):
                    yield Trial(script, str(title), variant)


def _refuse_no_script(script: Path) -> None:
    """Raise UsageError if a file cannot be a script."""
    if not script.is_file():
        raise UsageError(f"{script}: no script of packetdrill: it is no file")
    try:
        with script.open("rb") as file:
            content = file.read(_SCRIPT_BYTES + 1)
        content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"{script}: no script of packetdrill: {why}") from error
    if len(content) > _SCRIPT_BYTES or b"\0" in content or not content.strip():
        raise UsageError(f"{script}: no script of packetdrill: it is empty, too large, or not text")
    if b"\r\n" in content:
        raise UsageError(f"{script}: no script of packetdrill: its lines end with CR and LF")


def find_binary(named: Path | None) -> Path:
    """Find packetdrill, at a path or on PATH.

    Raises: UsageError if it is missing, not for this machine, or linked statically.
    """
    found = named or shutil.which("packetdrill")
    hint = "build it from github.com/google/packetdrill: gtests/net/packetdrill, ./configure; make"
    if found is None:
        raise UsageError("packetdrill is not on PATH, and --packetdrill names none", hint)
    if Path(found).exists() and not Path(found).is_file():
        raise UsageError(f"{found}: packetdrill cannot be read: it is no file", hint)
    try:
        content = Path(found).read_bytes()
    except OSError as error:
        raise UsageError(f"{found}: packetdrill cannot be read: {error.strerror}", hint) from error
    if content[:5] != b"\x7fELF\x02" or len(content) < 64:
        raise UsageError(f"{found}: no program for this machine", hint)
    if not _is_dynamic(content):
        raise UsageError(
            f"{found}: linked statically, so that its wait for ticks of the clock takes minutes",
            "remove -static from its Makefile, and build it again",
        )
    return Path(found).resolve()


def _is_dynamic(program: bytes) -> bool:
    """Tell whether a program of 64 bits names an interpreter."""
    (start,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    headers = [start + size * n for n in range(count)]
    return any(program[at : at + 4] == struct.pack("<I", _PT_INTERP) for at in headers)


def run_trial(trial: Trial, guest: Guest, binary: Path, tolerance: Sequence[str]) -> Verdict:
    """Run a script as attempt_trial(); a guest that fails is a failure of the script."""
    try:
        return attempt_trial(trial, guest, binary, tolerance)
    except RunError as error:
        return Verdict(trial.name, str(error))


def attempt_trial(trial: Trial, guest: Guest, binary: Path, tolerance: Sequence[str]) -> Verdict:
    """Run a script in a guest of its own.

    Raises: RunError if the guest fails.
    """
    with TemporaryDirectory(prefix="twoway-packetdrill-") as scratch:
        folder = Path(scratch)
        arguments = ["--send_omit_free", *VARIANTS[trial.variant], *tolerance, trial.script.name]
        home = folder / GUEST_FOLDER
        asked = {"command": [_BINARY, *arguments], "folder": str(Path(*_HERE)), "limit_s": LIMIT_S}
        try:
            _copy_files(trial.script, trial.root, home)
            run_alone(guest, folder, asked, {_BINARY: binary})
            return _verdict(trial, folder)
        except (RunError, OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"the guest failed: {error}") from error


def run_alone(
    guest: Guest,
    folder: Path,
    asked: Mapping[str, Any],
    readable: Mapping[str, Path],
    *,
    ipv6: bool = False,
    stall_s: float = STALL_S,
) -> None:
    """Run a command in a guest that has nothing else to do.

    `asked` has the command, its folder and its time limit; the folder gets what the guest leaves
    (vm/guest/packetdrill.py). `readable` are files and folders of the host, by their paths in the
    guest, which reports no progress for `stall_s`.

    Raises: RunError if the guest fails.
    """
    Plan(memory_mib=_MEMORY_MIB).write(folder / PLAN)
    home = folder / GUEST_FOLDER
    home.mkdir(exist_ok=True)
    (home / "request.json").write_text(json.dumps(asked))
    uml.run(
        guest,
        folder,
        lambda _: None,
        runner=_RUNNER,
        ipv6=ipv6,
        readable=readable,
        stall_s=stall_s,
    )


def _copy_files(script: Path, root: Path, home: Path) -> None:
    """Copy what a script may read: its folder's small files, and folders that it names by ../."""
    here = home.joinpath(*_HERE)
    here.mkdir(parents=True)
    sources = {script.name: script}
    for near in sorted(script.parent.iterdir()):
        if near.suffix in {".sh", ".py"} and _is_of_tree(near, root):
            sources[near.name] = near
    for up, name in sorted({found.groups() for found in _ABOVE.finditer(script.read_text())}):
        shared = script.parent / up / name
        for path in sorted(shared.rglob("*")) if shared.is_dir() else ():
            if _is_of_tree(path, (script.parent / up).resolve().parent):
                sources[f"{up}{name}/{path.relative_to(shared)}"] = path
    if sum(min(path.stat().st_size, _ALL_BYTES) for path in sources.values()) > _ALL_BYTES:
        raise TwowayError(f"{script}: the files beside it have more than {_ALL_BYTES >> 20} MiB")
    for name, path in sources.items():
        target = here / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        target.chmod(path.stat().st_mode & 0o777 | 0o444)


def _is_of_tree(path: Path, tree: Path) -> bool:
    """Tell whether a path is a file of a tree, or a link to a script of that tree."""
    found = path.resolve()
    return (
        found.is_file()
        and found.is_relative_to(tree.resolve())
        and (not path.is_symlink() or found.suffix in {".sh", ".py"})
    )


def _verdict(trial: Trial, folder: Path) -> Verdict:
    """Judge a trial by what its guest left."""
    ended = json.loads(read_run_file(folder, "ended.json"))
    said = read_run_file(folder, "stderr.txt", _SCRIPT_BYTES).strip()[-4000:]
    if ended["status"] == 0:
        return Verdict(trial.name)
    place = _PLACE.search(said)
    if not ended["ended"]:
        problem = f"it still ran after {LIMIT_S} s of its clock"
    elif _FORKS in said:
        problem = "it has more processes than a guest allows"
    elif "File size limit exceeded" in said or ended["status"] == -25:
        problem = "it writes a file larger than a guest allows"
    elif place:
        problem = place[2]
    else:
        last = said.rpartition("\n")[2][:200] or "no word on standard error"
        problem = f"exit status {ended['status']}: {last}"
    problem = printable(problem)
    capture = read_whole(folder, "tun.pcap", _CAPTURE_BYTES)
    return Verdict(trial.name, problem, int(place[1]) if place else None, said, capture)
