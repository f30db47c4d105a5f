"""The subcommand for courses: many hand-ins against one suite, ranked."""  # noqa: N999 - its name

import argparse
import shlex
from pathlib import Path

from twoway.commands.options import (
    KERNEL,
    LONGEST,
    NEW_RUNS,
    WORKERS,
    at_least_one,
    option,
    results_folder,
    shorten_path,
)
from twoway.commands.score import refuse_unknown_metrics
from twoway.contract.writing import chown_like_parent
from twoway.errors import UsageError
from twoway.messages import console, say

HELP = "hand-ins of a class against one suite: a ranked page, and a file for Gradescope for each"
OPTIONS = (
    option(
        "folder",
        nargs="?",
        type=Path,
        help="the folder of hand-ins: STUDENT.c, STUDENT.yml, or STUDENT/ with one of them",
    ),
    option("--suite", required=True, help="a name under suites/, or a file"),
    option(
        "--student",
        metavar="NUMBER",
        help="instead: print the runs of this student, whose values follow from the number",
    ),
    option(
        "--seeds",
        type=at_least_one,
        default=1,
        metavar="N",
        help="runs of each number, with seeds of their own (default: %(default)s)",
    ),
    option(
        "--secret",
        type=Path,
        metavar="FILE",
        help="a file; its content draws the seeds, so that students cannot know them",
    ),
    *NEW_RUNS,
    LONGEST,
    WORKERS,
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Mark a folder of hand-ins, or print the runs of one student."""
    from twoway.backends.registry import find_backend
    from twoway.description.experiment import MOST_SEEDS
    from twoway.description.reading import text_of
    from twoway.description.suite import load_suite
    from twoway.progress import SweepBar
    from twoway.report.class_page import class_table, write_class
    from twoway.sweeps.classes import hidden_seeds, jobs_of, mark_class, read_hand_ins

    suite = load_suite(args.suite)
    refuse_unknown_metrics(suite)
    if not suite.experiments:
        raise UsageError(f"--suite: {args.suite:.80}: no row of it has runs")
    if bool(args.student) == bool(args.folder):
        raise UsageError("class: needs a folder of hand-ins, or --student; one of both")
    if args.student:
        return _print_runs(args)
    if not args.folder.is_dir():
        raise UsageError(f"{args.folder}: no folder")
    if args.seeds > MOST_SEEDS:
        raise UsageError(f"--seeds: must be at most {MOST_SEEDS}, got {args.seeds}")
    secret = text_of(args.secret).strip() if args.secret else ""
    if args.secret and not secret:
        raise UsageError(f"--secret: {args.secret}: is empty")
    into = results_folder(args) / "class" / suite.name
    hand_ins = read_hand_ins(args.folder, suite)
    jobs = jobs_of(suite, hand_ins, hidden_seeds(secret, args.seeds))
    backend = find_backend("uml", args.kernel)
    each = "1 hand-in" if len(hand_ins) == 1 else f"{len(hand_ins)} hand-ins"
    say(f"{len(jobs)} runs: of {each}, and of the suite's own columns")
    with SweepBar(len(jobs), len(jobs)) as bar:
        marked = mark_class(
            suite,
            args.suite,
            hand_ins,
            jobs,
            backend,
            count=args.workers,
            longest_s=args.longest,
            on_answer=lambda text, kept: bar.show(text, 1, kept=kept),
        )
    if not console().quiet:
        print(*class_table(suite, marked), sep="\n")
    page = write_class(suite, marked, into)
    chown_like_parent(into.parent)
    say(f"report: {shorten_path(page)}")
    return 0


def _print_runs(args: argparse.Namespace) -> int:
    """Print the commands that make a student's own runs."""
    from twoway.description.suite import load_suite
    from twoway.sweeps.classes import draws_of, student_of

    suite = load_suite(args.suite)
    draws = draws_of(suite, student_of(args.student))
    for row in suite.experiments:
        values = ",".join(
            f"{axis}={value}" for axis, value in draws.items() if axis in row.document["matrix"]
        )
        name = f"{args.suite}/{row.id.removeprefix(f'{suite.name}-')}"
        print(shlex.join(["twoway", "run", f"{name}@{values}" if values else name]))
    return 0
