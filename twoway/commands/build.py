"""The subcommand that builds the guest."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from twoway.commands.options import KERNEL, option

if TYPE_CHECKING:
    from twoway.guest.source import Choice

HELP = "build the guest into the cache, if any of its sources changed"
OPTIONS = (
    option(
        "--kernel-dir",
        action="store_true",
        help="print the kernel's build folder, to build modules against",
    ),
    option(
        "--copy",
        type=Path,
        metavar="FOLDER",
        help="copy the files that runs need to this folder, in a package's layout",
    ),
    option(
        "--sanitized",
        action="store_true",
        help="the guest with KASAN, lockdep and others, for `make test LAYER=sanitized`",
    ),
    KERNEL,
)


def run(args: argparse.Namespace) -> int:
    """Build the guest kernel, its modules and programs into the cache."""
    from twoway.errors import UsageError
    from twoway.guest.cache import build_guest, copy_guest, find_guest
    from twoway.guest.seals import BrokenBuildError
    from twoway.guest.source import kernel_named
    from twoway.progress import Steps

    if args.sanitized and args.kernel:
        raise UsageError(
            f"--sanitized: takes only the guest's own kernel, got --kernel {args.kernel:.80}"
        )
    choice: Choice = "sanitized" if args.sanitized else kernel_named(args.kernel)
    try:
        guest = find_guest(choice)
    except BrokenBuildError:
        guest = None
    if guest is None:
        with Steps() as steps:
            guest = build_guest(steps, choice)
    if args.copy:
        copy_guest(guest, args.copy)
    if args.kernel_dir:
        print(guest.kernel.parent)
    return 0
