"""The subcommand that runs scripts of packetdrill."""

import argparse
import json
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.sax.saxutils import quoteattr

from twoway.commands.options import KERNEL, NEW_RUNS, Option, at_least_one, option, results_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from twoway.runs.packetdrill import Trial, Verdict
    from twoway.runs.selftests import Selftest

HELP = "scripts of packetdrill, each in a guest of its own, in virtual time"
_TOLERANCE = re.compile(r"(\d+)(us|ms)")
_MOST_US = 4000


def _tolerance_us(text: str) -> int:
    """Read a tolerance."""
    found = _TOLERANCE.fullmatch(text)
    us = int(found[1]) * (1000 if found[2] == "ms" else 1) if found else 0
    if not 1 <= us <= _MOST_US:
        raise argparse.ArgumentTypeError(f'must be from 1us to 4ms, got "{text}"')
    return us


def _writable(text: str) -> Path:
    """Read the name of a file that is written when all has run."""
    path = Path(text)
    there = text if path.exists() else f"{path.parent}/"
    if path.is_dir() or not os.access(there, os.W_OK):
        raise argparse.ArgumentTypeError(f'must be a file that can be written, got "{text}"')
    return path


def _percent(text: str) -> float:
    """Read a share."""
    if not re.fullmatch(r"\d{1,3}(\.\d+)?", text) or float(text) > 100:
        raise argparse.ArgumentTypeError(f'must be from 0 to 100, got "{text}"')
    return float(text)


def _variants() -> dict[str, Any]:
    from twoway.runs.packetdrill import VARIANTS

    return {
        "action": "append",
        "choices": tuple(VARIANTS),
        "help": "may be repeated (default: all, but for scripts named ...v4.pkt and ...v6.pkt)",
    }


# All that is not a place: of `selftests`, too.
OF_SCRIPTS = (
    option("--packetdrill", type=Path, metavar="FILE", help="the program (default: that on PATH)"),
    Option(("--variant",), _variants),
    option(
        "--tolerance",
        type=_tolerance_us,
        default=_MOST_US,
        metavar="TIME",
        help="of each event's time, from 1us to 4ms (default: 4ms)",
    ),
    option(
        "--percent",
        type=_percent,
        default=12.5,
        metavar="P",
        help="or this share of the gap before an event, if that is more (default: 12.5)",
    ),
    option(
        "--workers",
        type=at_least_one,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="number of guests at once (default: one per processor, %(default)s)",
    ),
    option("--junit", type=_writable, metavar="FILE", help="also write JUnit's XML"),
    option("--json", type=_writable, metavar="FILE", help="also write JSON"),
    KERNEL,
    *NEW_RUNS,
)
OPTIONS = (
    option("places", nargs="+", type=Path, metavar="FILE|FOLDER", help="scripts, .pkt"),
    *OF_SCRIPTS,
)


def run(args: argparse.Namespace) -> int:
    """Run scripts of packetdrill; print KTAP, and keep a capture of each that fails."""
    from twoway.contract.files import sha256
    from twoway.guest.cache import built_guest
    from twoway.guest.source import kernel_named
    from twoway.runs.packetdrill import VARIANTS, find_binary, find_trials, run_trial

    trials = list(find_trials(args.places, args.variant or list(VARIANTS)))
    binary, guest = find_binary(args.packetdrill), built_guest(kernel_named(args.kernel or "wide"))
    limits = (f"--tolerance_usecs={args.tolerance}", f"--tolerance_percent={args.percent}")
    task = partial(run_trial, guest=guest, binary=binary, tolerance=limits)
    about = (
        f"kernel {guest.release} ({guest.key}), packetdrill {sha256(binary)[:12]}, "
        f"tolerance {args.tolerance} us, or {args.percent:g} % of the gap before an event"
    )
    return report(args, "packetdrill", about, trials, task)


def report(
    args: argparse.Namespace,
    kind: str,
    about: str,
    trials: "Sequence[Trial | Selftest]",
    task: "Callable[[Any], Verdict]",
) -> int:
    """Run trials and report each as KTAP, and all of them as files; return the exit code.

    What failures leave is in the folder `kind`; the task is called in other processes.
    """
    kept = results_folder(args) / kind
    print(f"KTAP version 1\n# {about}\n1..{len(trials)}", flush=True)
    verdicts = []
    for number, verdict in enumerate(_run_all(trials, task, args.workers), 1):
        verdicts.append(verdict)
        _print(number, verdict, kept)
    failed = sum(bool(each.problem) for each in verdicts)
    skipped = sum(bool(each.skipped) for each in verdicts)
    passed = f"pass {len(verdicts) - failed - skipped}, fail {failed}"
    print(f"# {passed}, skip {skipped}" if skipped else f"# {passed}")
    if args.json:
        rows = [each.document() for each in verdicts]
        args.json.write_text(json.dumps({"about": about, "scripts": rows}, indent=1) + "\n")
    if args.junit:
        args.junit.write_text("\n".join(_junit(kind, verdicts, failed)) + "\n")
    return 1 if failed else 0


def _run_all(
    trials: "Sequence[Trial | Selftest]", task: "Callable[[Any], Verdict]", count: int
) -> "Iterator[Verdict]":
    """Yield the verdicts in the order of the trials."""
    from twoway.progress import Steps
    from twoway.runs.packetdrill import Verdict
    from twoway.sweeps.sweep import Outcome
    from twoway.sweeps.workers import workers

    with Steps() as steps, workers(min(count, len(trials)), task) as (threads, run_one):
        steps.begin("scripts", len(trials))
        for found in threads.map(run_one, trials):
            steps.advance()
            killed = isinstance(found, Outcome)
            yield Verdict(found.name, f"{found.error}") if killed else cast("Verdict", found)


def _print(number: int, verdict: "Verdict", kept: Path) -> None:
    """Print a verdict's lines, and keep what a failure left."""
    for line in verdict.checks:
        print(f"# {line}")
    if verdict.problem:
        where = f"line {verdict.line}: " if verdict.line else ""
        print(f"# {where}{verdict.problem}")
        files = kept / verdict.name.replace("/", ",").replace(" ", ".")
        kept.mkdir(parents=True, exist_ok=True)
        left = (("packets", ".pcap", verdict.capture), ("output", ".txt", verdict.said.encode()))
        for what, suffix, content in left:
            if content:
                files.with_name(files.name + suffix).write_bytes(content)
                print(f"# {what}: {files}{suffix}")
    skipped = f" # SKIP {verdict.skipped}" if verdict.skipped else ""
    print(f"{'not ' if verdict.problem else ''}ok {number} {verdict.name}{skipped}", flush=True)


def _junit(kind: str, verdicts: "Sequence[Verdict]", failed: int) -> "Iterator[str]":
    yield f'<testsuite name="{kind}" tests="{len(verdicts)}" failures="{failed}">'
    for each in verdicts:
        script, _, variant = each.name.rpartition(" ")
        case = f"<testcase classname={quoteattr(script)} name={quoteattr(variant)}"
        where = f"line {each.line}: " if each.line else ""
        ended = f"<failure message={quoteattr(f'{where}{each.problem}')}/>" if each.problem else ""
        if each.skipped:
            ended = f"<skipped message={quoteattr(each.skipped)}/>"
        yield f"{case}>{ended}</testcase>" if ended else f"{case}/>"
    yield "</testsuite>"
