"""The subcommands about this machine: doctor, shell, build."""

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twoway.guest.source import Choice


def doctor(args: argparse.Namespace) -> int:
    """Print what this machine can do, and what is missing."""
    from twoway.backends.doctor import disk_use, examine

    findings = [*examine(), *(disk_use() if args.disk else ())]
    if args.json:
        print(json.dumps(findings, indent=1))
    else:
        for finding in findings:
            mark = "ok     " if finding["ok"] else "missing"
            print(f"{mark} {finding['what']:<28} {finding['found']}")
            if not finding["ok"]:
                print(f"        {finding['remedy']}")
    return 0 if all(f["ok"] for f in findings if f["required"]) else 1


def shell(args: argparse.Namespace) -> int:
    """Open an experiment's network in the guest, with Mininet's prompt.

    The guest has the host's clock.
    """
    from twoway.guest.cache import built_guest
    from twoway.runs.cases import load_case
    from twoway.runs.shell import open_shell

    return open_shell(load_case(args.experiment), built_guest())


def build(args: argparse.Namespace) -> int:
    """Build the guest kernel, its modules and programs into the cache."""
    from twoway.errors import UsageError
    from twoway.guest.cache import build_guest, copy_guest, find_guest
    from twoway.guest.seals import BrokenBuildError
    from twoway.guest.source import kernel_named
    from twoway.progress import Steps

    if args.sanitized and args.kernel:
        raise UsageError(f"--sanitized: is the guest's own kernel, got --kernel {args.kernel:.80}")
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
