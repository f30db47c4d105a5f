"""The subcommand that tells what a patch of the kernel changes."""

import argparse
import shlex
from pathlib import Path

from twoway.commands.options import (
    KEEP,
    NEW_RUNS,
    SUITE,
    WORKERS,
    at_least_one,
    option,
    results_folder,
    shorten_path,
)
from twoway.commands.score import card_on, read_columns, say_failed
from twoway.contract.writing import chown_like_parent
from twoway.errors import UsageError
from twoway.messages import say

HELP = "what a patch of the kernel changes: a suite before and after, as a mail"
OPTIONS = (
    option(
        "patch",
        metavar="FILE|FOLDER",
        help="a patch, an mbox or a diff; or the folder of an unpacked source that has the change",
    ),
    option("controls", nargs="*", help="more columns than the suite's own, as for `twoway score`"),
    option(
        "--against",
        default="guest",
        metavar="SOURCE",
        help="the kernel without the change, as for --kernel (default: %(default)s)",
    ),
    SUITE,
    WORKERS,
    KEEP,
    *NEW_RUNS,
    option(
        "--seeds",
        type=at_least_one,
        default=5,
        metavar="N",
        help="runs of each cell, with the seeds 1 to N (default: %(default)s)",
    ),
)


def run(args: argparse.Namespace) -> int:
    """Build the kernel without a patch and with it, run a suite on both, and write a mail."""
    from twoway.guest.cache import build_guest
    from twoway.guest.patched import messages_of
    from twoway.guest.seals import content_hash
    from twoway.guest.source import kernel_named
    from twoway.progress import Steps
    from twoway.report.card_text import change_mail
    from twoway.runs.manifest import git_revision

    args.backend, args.scheduler = "uml", None
    patch = Path(args.patch).expanduser()
    if not patch.exists():
        raise UsageError(f"{patch}: no patch, and no folder of a source")
    about, title, after = "", str(patch), str(patch)
    if patch.is_file():
        title = str(messages_of(patch)[0]["subject"] or patch.name).replace("\n", "")
        about, after = f"patch {content_hash(patch.read_bytes())}, ", f"{args.against}+{patch}"
    suite, others = read_columns(args)
    into = results_folder(args) / "patch" / suite.name
    kernels = {"before": args.against, "after": after}
    with Steps() as steps:
        guests = [build_guest(steps, kernel_named(name)) for name in kernels.values()]
    (before, first), (card, second) = (
        card_on(kernel, args, suite, others, into / name) for name, kernel in kernels.items()
    )
    words = ["patch", args.patch, *args.controls, "--against", args.against, "--suite", args.suite]
    command = shlex.join(["twoway", *words, "--seeds", str(args.seeds)])
    identities = (
        f"{about}kernels {' and '.join(guest.key for guest in guests)}, suite "
        f"{card.suite_sha256[:12]}, twoway {git_revision()}"
    )
    mail = change_mail(before, card, title, ["To repeat:", f"  {command}", "", identities])
    (into / "mail.txt").write_text(mail)
    chown_like_parent(args.results / "patch")
    print(mail, end="")
    ended = say_failed([*first, *second])
    say(f"mail: {shorten_path(into / 'mail.txt')}; cards: {', '.join(kernels)} beside it")
    return ended
