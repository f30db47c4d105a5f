"""The subcommand that examines this machine."""

import argparse
import json

from twoway.commands.options import JSON, option

HELP = "the abilities of this machine, and what is missing"
OPTIONS = (
    option(
        "--disk", action="store_true", help="also print the disk space that runs and the cache take"
    ),
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Print the abilities of this machine, and what is missing."""
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
