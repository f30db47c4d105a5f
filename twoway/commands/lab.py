"""The subcommands about archives for lab hosts: bundle, pack, gather."""

import argparse
import json
import sys
from contextlib import nullcontext

from twoway.commands.options import shown
from twoway.contract.writing import written_aside


def bundle(args: argparse.Namespace) -> int:  # noqa: ARG001 - as all commands
    """Make the archives that lab hosts need and print their list as JSON."""
    from twoway.guest.cache import built_guest
    from twoway.lab.bundles import make_bundles

    print(json.dumps([each.document() for each in make_bundles(built_guest())], indent=1))
    return 0


def pack(args: argparse.Namespace) -> int:
    """Write finished runs into one archive."""
    from twoway.runs.archive import finished_runs, pack_runs

    with written_aside(args.to) if args.to else nullcontext(sys.stdout.buffer) as archive:
        pack_runs(args.results, args.runs or finished_runs(args.results), archive)
    return 0


def gather(args: argparse.Namespace) -> int:
    """Unpack the runs of archives, check every file and print their folders."""
    from twoway.runs.archive import unpack_runs

    for path in args.archives:
        with path.open("rb") as archive:
            for folder in unpack_runs(archive, args.results):
                print(shown(folder))
    return 0
