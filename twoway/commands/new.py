"""The subcommand that writes a new experiment to start from."""

import argparse
import re
from pathlib import Path

from twoway.commands.options import option
from twoway.errors import SpecError, UsageError
from twoway.messages import say
from twoway.paths import SCHEMAS

HELP = "write an experiment, with comments, and the link it runs over; both pass `vet`"

_FLOWS = ("down=h1>h2:cubic", "up=h2>h1:cubic")
_FLOW = re.compile(r"([^=>:]+)=([^=>:]+)>([^=>:]+):([^=>:]+)")
_EXPERIMENT = """\
{schema}
schema: 1
title: {title}
# A file of `topologies/`, or of your own beside this one. In two_node, h1 > h2 is forward.
topology: {{name: {topology}}}
# The file of a link: {link}
profile: {profile}
# Hosts have the kernel's own defaults. More fields of `stack` override them; `preset: papers` gives
# hosts the papers' TCP: an ACK for each segment, packets of one segment, windows without limits of
# buffers. docs/limits.md has all.
stack: {{preset: linux}}
# Each sends from start_s (default: 0) to the end; one with `transfer` sends that amount.
flows:
{flows}
duration_s: {duration}
# Left out of every metric.
warm_up_s: {warm_up}
# Any field may vary: then this is a sweep, with a page of figures over all points.
# matrix:
#   queue: {{set: [profile.forward.queue_packets, profile.reverse.queue_packets], to: [10, 99]}}
#   control: {{set: [flows.{first}.congestion], to: [cubic, bbr]}}
"""
_LINK = """\
{schema}
schema: 1
title: A link of {down:g} and {up:g} Mbit/s, {delay:g} ms each way
directions:
  # A drop-tail queue, in packets of any size. For active queue management add aqm: fq_codel
  forward: {{rate_mbit: {down:g}, delay_ms: {delay:g}, queue_packets: {queue}}}
  reverse: {{rate_mbit: {up:g}, delay_ms: {delay:g}, queue_packets: {queue}}}
"""
OPTIONS = (
    option("file", type=Path, help="the experiment's file, such as mine.yml"),
    option("--title", default="A question in one line", help="(default: %(default)s)"),
    option("--topology", default="two_node", help="(default: %(default)s)"),
    option("--profile", help="an existing link profile to use instead of a new one"),
    *(
        option(name, type=float, default=usual, metavar="N", help=f"{unit} (default: %(default)s)")
        for name, usual, unit in (
            ("--down", 20, "Mbit/s, forward"),
            ("--up", 5, "Mbit/s, in reverse"),
            ("--delay", 20, "ms, each way"),
            ("--duration", 20, "s of traffic"),
        )
    ),
    option("--queue", type=int, default=100, metavar="N", help="packets (default: %(default)s)"),
    option(
        "--flow",
        action="append",
        metavar="NAME=FROM>TO:CONTROL",
        help=f"a TCP connection; may be repeated (default: {' and '.join(_FLOWS)})",
    ),
)


def run(args: argparse.Namespace) -> int:
    """Write an experiment's file, and its link's beside it.

    Raises: UsageError if a file exists already, or a flow has another form; SpecError if the result
        would be invalid; then no file is left.
    """
    from twoway.runs.points import load_point

    file: Path = args.file
    if file.suffix not in (".yml", ".yaml"):
        raise UsageError(f"{file}: the name must end in .yml")
    link = file.with_name(f"{file.stem}-link.yml")
    texts = {file: _experiment(args, link)}
    if args.profile is None:
        values = {name: getattr(args, name) for name in ("down", "up", "delay", "queue")}
        texts[link] = _LINK.format(schema=_schema("profile"), **values)
    for path in texts:
        if path.exists():
            raise UsageError(f"{path}: exists already")
    written = []
    try:
        for path, text in texts.items():
            with path.open("x") as opened:
                written.append(path)
                opened.write(text)
        load_point(str(file))
    except (SpecError, OSError):
        for path in written:
            path.unlink()
        raise
    say(f"written: {', '.join(map(str, texts))}")
    say(f"twoway run {file}")
    return 0


def _experiment(args: argparse.Namespace, link: Path) -> str:
    flows = []
    for text in args.flow or _FLOWS:
        found = _FLOW.fullmatch(text)
        if found is None:
            raise UsageError(f"--flow: must be NAME=FROM>TO:CONTROL, got {text:.80}")
        fields = zip(("name", "from", "to", "congestion"), found.groups(), strict=True)
        flows.append(f"  - {{{', '.join(f'{key}: {value}' for key, value in fields)}}}")
    return _EXPERIMENT.format(
        schema=_schema("experiment"),
        title=_quoted(args.title),
        topology=args.topology,
        profile=args.profile or link.stem,
        link=f"{args.profile or link.stem}.yml",
        flows="\n".join(flows),
        first=flows[0].partition("name: ")[2].partition(",")[0],
        duration=f"{args.duration:g}",
        warm_up=f"{args.duration / 4:g}",
    )


def _schema(kind: str) -> str:
    """Write the line by which editors complete fields without a network."""
    return f"# yaml-language-server: $schema={(SCHEMAS / kind).as_uri()}.json"


def _quoted(text: str) -> str:
    """Quote a text for YAML if necessary."""
    import yaml

    return yaml.safe_dump(text, width=1000).removesuffix("...\n").strip()
