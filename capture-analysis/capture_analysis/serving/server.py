"""Serve the page on this machine only.

Other users and the pages of other sites must not reach it: it listens on the loopback interface,
its address has a random token, and Host and Origin must be its own (a name of another site that
points here is refused). Its pages may load nothing from anywhere.
"""

import json
import secrets
import sys
import threading
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote

from capture_analysis.errors import AnalysisError
from capture_analysis.serving.analysis import Analyst, BusyError, Limits, too_large

EXAMPLE = Path(__file__).with_name("example.pcap.zst")
_PAGE = Path(__file__).with_name("page.html")
_ADDRESS = "127.0.0.1"
# Number of reports kept in memory; the oldest is dropped.
_REPORTS = 8
_SILENCE_S = 60
# Most connections at a time; a browser opens six to one server.
_CONNECTIONS = 32
# A size with as many digits is none: it does not fit in 64 bits.
_DIGITS = 20
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_REPORT_POLICY = (
    f"{_NOTHING}; sandbox allow-scripts; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; connect-src data:"
)


class Server(ThreadingHTTPServer):
    """The page and its reports.

    Args:
        port: the port to listen on; 0 for any free one.
        limits: limits of each analysis.

    Attributes:
        url: address of the page.
    """

    daemon_threads = True

    def __init__(self, port: int = 0, limits: Limits | None = None) -> None:
        self.analyst = Analyst(limits or Limits())
        super().__init__((_ADDRESS, port), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://{_ADDRESS}:{self.server_port}/{self.token}/"
        self.hosts = {f"{name}:{self.server_port}" for name in (_ADDRESS, "localhost")}
        self._reports: OrderedDict[str, bytes] = OrderedDict()
        self._places = threading.Semaphore(_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, or close it if there are too many."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then make place for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def keep(self, page: bytes) -> str:
        """Keep a report; return its number."""
        number = secrets.token_urlsafe(12)
        self._reports[number] = page
        while len(self._reports) > _REPORTS:
            self._reports.popitem(last=False)
        return number

    def find_report(self, number: str) -> bytes | None:
        """Return a report, if it is still kept."""
        return self._reports.get(number)

    def handle_error(self, *asked: Any) -> None:
        """Ignore a browser that has gone away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*asked)

    def server_close(self) -> None:
        """Stop listening, and the analysis in progress."""
        super().server_close()
        self.analyst.stop()


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _SILENCE_S

    def do_GET(self) -> None:
        """Answer with the page, or with a report."""
        asked = self._asked()
        if asked == "":
            nonce = secrets.token_urlsafe(16)
            limit = self.server.analyst.limits.capture_bytes
            text = Template(_PAGE.read_text(encoding="utf-8")).substitute(
                nonce=nonce, limit=limit, too_large=json.dumps(too_large(limit))
            )
            sources = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:"
            policy = f"{_NOTHING}; {sources}; connect-src 'self'"
            self._answer(200, text.encode(), "text/html; charset=utf-8", policy)
        elif (
            asked
            and asked.startswith("report/")
            and (page := self.server.find_report(asked.removeprefix("report/")))
        ):
            self._answer(200, page, "text/html; charset=utf-8", _REPORT_POLICY)
        elif asked is not None:
            self._say(404, "no such page; reports are kept until the next ones come")

    def do_POST(self) -> None:
        """Analyse an uploaded capture, or the example."""
        self.close_connection = True  # unread bytes of a refused capture must not be parsed
        asked = self._asked()
        if asked is None:
            return
        length = self.headers.get("Content-Length", "")
        plain = length.isascii() and length.isdecimal() and len(length) < _DIGITS
        size = int(length) if plain else None
        try:
            if asked == "example":
                with EXAMPLE.open("rb") as file:
                    page = self.server.analyst.report(EXAMPLE.name, file, EXAMPLE.stat().st_size)
            elif not asked.startswith("capture/"):
                self._say(404, "no such page")
                return
            elif size is None:
                self._say(411, "the size of the capture is not given")
                return
            else:
                name = unquote(asked.removeprefix("capture/"))
                page = self.server.analyst.report(name, self.rfile, size)
        except BusyError as error:
            self._say(503, str(error))
        except (AnalysisError, OSError) as error:
            self._say(422, str(error))
        else:
            self._say(200, self.server.keep(page), "report")

    def _asked(self) -> str | None:
        """Return the path behind the token; None after a refusal."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        token, _, asked = self.path.removeprefix("/").partition("/")
        # `serve --open` shows a file that leads here, which the browser counts as another site.
        opened = self.command == "GET" and not asked and self._navigates()
        if host not in self.server.hosts:
            self._say(421, "this page is only for this machine, under its own address")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._say(404, "no such page: the command printed its address")
        elif origin not in (None, f"http://{host}") or not (
            opened or site in ("none", "same-origin")
        ):
            self._say(403, "another page may not use this one")
        else:
            return asked
        return None

    def _navigates(self) -> bool:
        """Tell whether a browser asks for a page to show in a tab."""
        named = (self.headers.get(f"Sec-Fetch-{each}") for each in ("Mode", "Dest"))
        return [*named] == ["navigate", "document"]

    def _say(self, status: int, text: str, what: str = "error") -> None:
        self._answer(status, json.dumps({what: text}).encode(), "application/json", _NOTHING)

    def _answer(self, status: int, body: bytes, kind: str, policy: str) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", policy),
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        if status >= 400 or self.close_connection:
            self.close_connection = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return no versions."""
        return "capture-analysis"

    def log_message(self, *_: object) -> None:
        """Log nothing: the address is a secret."""
