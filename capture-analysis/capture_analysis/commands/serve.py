"""Show a page in the browser, on this machine, on which a capture is dropped to get its report.

Prints the page's address, which has a random token, and serves until Ctrl-C. Nothing leaves the
machine: the page loads nothing from elsewhere, only this machine's browsers reach it, and pages of
other sites cannot use it. A capture is analysed in a process with limits (4 GB of memory, 600 s),
one at a time, and deleted when its report is done; `report` on the command line has no such limits.
"""

import argparse
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from capture_analysis.errors import AnalysisError
from capture_analysis.serving.analysis import Limits
from capture_analysis.serving.server import Server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve` to its parser."""
    parser.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="N",
        help="port on 127.0.0.1 (default: any free port)",
    )
    parser.add_argument(
        "--limit-mb",
        type=_megabytes,
        default=1000,
        metavar="N",
        help="largest upload to accept, MB (default: %(default)s)",
    )
    parser.add_argument("--open", action="store_true", help="show the page in the browser")


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it.

    Raises: AnalysisError if the port is taken, or no browser can be started.
    """
    try:
        server = Server(arguments.port, Limits(capture_bytes=arguments.limit_mb * 1_000_000))
    except OSError as error:
        raise AnalysisError(f"port {arguments.port}: {error.strerror}") from error
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server, ExitStack() as stack, suppress(KeyboardInterrupt):
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        if arguments.open:
            stack.enter_context(_shown(server.url))
        server.serve_forever()
    return 0


@contextmanager
def _shown(url: str) -> Iterator[None]:
    """Show a page in the browser by a file that leads there, which only this user can read.

    Every user of the machine sees the arguments of a browser, and the address is a secret.

    Raises: AnalysisError if no browser can be started.
    """
    with NamedTemporaryFile("w", prefix="capture-analysis-", suffix=".html") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">\n')
        file.flush()
        if not webbrowser.open(Path(file.name).as_uri()):
            raise AnalysisError("no browser could be started to show the page")
        yield


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text!r}")
    return int(text)


def _megabytes(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 1_000_000):
        raise argparse.ArgumentTypeError(f"must be a number of MB from 1 to 999999, got {text!r}")
    return int(text)
