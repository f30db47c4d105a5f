"""The `capture-analysis` command."""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from capture_analysis.errors import AnalysisError
from capture_analysis.printable import only_printable, printable, terminal

# Seconds before the first line of progress: shorter work needs none.
_PATIENCE_S = 2.0
_EVERY_S = 0.5
# The packages, and the extra that installs each.
EXTRAS = {"pyarrow": "parquet", "matplotlib": "figures", "distributed": "cluster"}


def explain_missing(error: ModuleNotFoundError) -> str:
    """Write which package of an extra is missing, and how to install it.

    Raises: ModuleNotFoundError, unchanged, if the package belongs to no extra.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRAS:
        raise error
    hint = f"hint: pip install 'capture-analysis[{EXTRAS[package]}]'"
    return f"this needs {package}, which is not installed\n\n{hint}"


# Name and help; each is a module of capture_analysis.commands.
COMMANDS = {
    "report": "a page with pictures: of a capture, or of two of one path",
    "flows": "the connections of a capture, as a table",
    "metrics": "every metric of a capture or of a folder of captures, as JSON",
    "match": "two captures of one path: loss, delays and compression between them, as JSON",
    "plot": "one picture, as PNG, SVG or HTML",
    "export": "every packet, as Parquet or CSV",
    "annotate": "the same packets with comments that Wireshark shows",
}
DESCRIPTION = """\
Are acknowledgements compressed, by how much, and what does it cost? Measured from packet
captures: pcap or pcapng, plain or compressed (gz, zst, xz), or - for standard input."""
EXIT_STATUS = """\
exit status: 0 on success, 2 if the command line or the input cannot be used.
A capture of more connections than memory is left for, or than 1000000, is refused: each takes
3 kB. CAPTURE_ANALYSIS_CONNECTIONS in the environment sets another limit."""
EXAMPLES = """\
examples:
  capture-analysis flows a.pcap.gz          who talks to whom, and what to look at
  capture-analysis report a.pcap            a report on the ACKs, in words and pictures
  capture-analysis report a.pcap b.pcapng   from two points of a path: much surer
  capture-analysis annotate a.pcap          the same for Wireshark, packet by packet
  tcpdump -w - | capture-analysis metrics -

`capture-analysis COMMAND --help` explains each."""


def main(argv: list[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments after the command's name; the process's own by default.

    Returns: the exit status, see EXIT_STATUS.
    """
    with only_printable():
        return _main(sys.argv[1:] if argv is None else argv)


def _main(words: list[str]) -> int:
    # Load only the requested command, so that each starts in a tenth of a second.
    name = words[0] if words and words[0] in COMMANDS else _first_word(words)
    # Nothing here multiplies matrices; numpy's waiting threads would take 40 ms of a processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The modules live to the end: collecting garbage among them takes 30 ms, mostly at exit.
    gc.disable()
    command = import_module(f"capture_analysis.commands.{name}")
    gc.freeze()
    gc.enable()
    parser = argparse.ArgumentParser(
        prog=f"capture-analysis {name}",
        description=command.__doc__,
        epilog=EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(parser)
    arguments = parser.parse_args(words[1:])
    try:
        with _progress():
            status: int = command.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AnalysisError, OSError) as error:
        sys.stderr.write(f"capture-analysis: {error}\n")
        return 2
    except MemoryError:
        sys.stderr.write(f"capture-analysis: {name}: not enough memory\n")
        return 2
    except ModuleNotFoundError as error:
        sys.stderr.write(f"capture-analysis: {name}: {explain_missing(error)}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return status


class ProgressLine:
    """Writes to stderr now and then while captures are read.

    Set as `ByteSource.watch`.
    """

    def __init__(self) -> None:
        self._began = self._written = time.monotonic()
        # For each capture: the position, and time and position at the start of its present reading.
        self._seen: dict[Path, tuple[int, float, int]] = {}
        self._visible = False

    def __call__(self, path: Path, position: int) -> None:
        """Note that a capture was read up to a byte; update the line if it is due."""
        now = time.monotonic()
        last, since, origin = self._seen.get(path, (0, now, position))
        if position < last:  # the capture is read a second time
            since, origin = now, position
        self._seen[path] = position, since, origin
        if now - self._began < _PATIENCE_S or now - self._written < _EVERY_S:
            return
        self._written, self._visible = now, True
        size = max(path.stat().st_size, 1)
        done = max(position - origin, 1)
        left_s = (now - since) * (size - position) / done
        terminal().write(
            f"\r{printable(path.name)}: {position / size:.0%} of {size / 1e6:,.0f} MB read,"
            f" {left_s:.0f} s left\033[K"
        )
        terminal().flush()

    def clear(self) -> None:
        """Erase the line."""
        if self._visible:
            terminal().write("\r\033[K")


@contextmanager
def _progress() -> Iterator[None]:
    """Show the progress of long work on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from capture_analysis.reading.byte_source import ByteSource  # noqa: PLC0415 - see above

    ByteSource.watch = line = ProgressLine()
    try:
        yield
    finally:
        line.clear()


def _first_word(words: list[str]) -> str:
    """Parse the command's name; exit with usage or version without one."""
    from importlib.metadata import version  # noqa: PLC0415 - takes as long as all the rest

    commands = "".join(f"\n  {name:<9} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="capture-analysis",
        description=f"{DESCRIPTION}\n\ncommands:{commands}",
        epilog=f"{EXAMPLES}\n\n{EXIT_STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version("capture-analysis"))
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of the above")
    name: str = parser.parse_args(words[:1]).command
    return name


if __name__ == "__main__":
    sys.exit(main())
