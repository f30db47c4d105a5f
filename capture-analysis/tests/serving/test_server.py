"""The page for dropped captures: who may use it, what it refuses, and a drop in a browser."""

import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from capture_analysis.cli import main
from capture_analysis.commands.serve import _shown
from capture_analysis.errors import AnalysisError
from capture_analysis.serving.analysis import Analyst, Limits, plain_name
from capture_analysis.serving.server import EXAMPLE, Server
from chromium import launched  # noqa: F401 - a fixture
from hostile_files import files
from selenium.webdriver.support.wait import WebDriverWait

Answer = tuple[int, Any, http.client.HTTPMessage]
WAIT_S = 100


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Start a page that accepts captures of 1 MB."""
    with Server(limits=Limits(capture_bytes=1_000_000)) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield one
        one.shutdown()
        thread.join()


def ask(server: Server, path: str, body: bytes | None = None, **headers: str) -> Answer:
    """Return status, answer and headers; a body is posted."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=WAIT_S)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, body, named)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    kind = answer.headers["Content-Type"]
    return answer.status, json.loads(text) if kind == "application/json" else text, answer.headers


def test_page_loads_nothing_from_elsewhere(server: Server) -> None:
    """The page is served under its token, and its policy allows only its own scripts."""
    status, text, headers = ask(server, f"/{server.token}/")
    assert (status, headers["Referrer-Policy"]) == (200, "no-referrer")
    assert b"Drop a capture here" in text
    assert b"http" not in text.replace(b"http-equiv", b"")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none'; frame-anc")
    assert policy.endswith("connect-src 'self'")
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({"Host": "attacker.example"}, 421, "under its own address"),
        ({"Host": "attacker.example:{port}"}, 421, "under its own address"),
        ({"Host": "127.0.0.1:1"}, 421, "under its own address"),
        ({"Origin": "http://attacker.example"}, 403, "another page may not use this one"),
        ({"Origin": "null"}, 403, "another page may not use this one"),
        ({"Origin": "http://127.0.0.1:1"}, 403, "another page may not use this one"),
        ({"Sec_Fetch_Site": "cross-site"}, 403, "another page may not use this one"),
        ({"Sec_Fetch_Site": "same-site"}, 403, "another page may not use this one"),
    ],
)
def test_other_sites_are_refused(
    server: Server, headers: dict[str, str], status: int, said: str
) -> None:
    """Requests for another site's name, or from another origin, get no page and no report."""
    named = {name: text.format(port=server.server_port) for name, text in headers.items()}
    for path, body in (("", None), ("example", b"")):
        found, answer, _ = ask(server, f"/{server.token}/{path}", body, **named)
        assert found == status
        assert said in answer["error"]


def test_token_is_needed(server: Server) -> None:
    """Without the whole token nothing is served; each server has its own token."""
    for path in (
        "/",
        "/example",
        f"/{server.token[:-1]}/",
        f"/{server.token}x/",
        f"/%C3%A9/{server.token}",
    ):
        assert ask(server, path)[0] == 404
    with Server() as other:
        assert len(other.token) == 32
        assert other.token != server.token
    assert ask(server, f"/{server.token}/report/0")[0] == 404
    assert ask(server, f"/{server.token}/../../etc/passwd")[0] == 404
    assert ask(server, f"/{server.token}/other", b"")[0] == 404


def test_too_large(server: Server) -> None:
    """A capture that is too large is refused by its announced size, before it is sent."""
    path = f"/{server.token}/capture/a.pcap"
    status, said, _ = ask(server, path, b"", Content_Length="1000001")
    assert status == 422
    assert said["error"].startswith(
        "captures are limited to 1 MB here (--limit-mb); `capture-analysis"
    )
    assert ask(server, path, b"", Content_Length="-1")[0] == 411
    assert ask(server, path, b"", Content_Length="9" * 5000)[0] == 411


def test_one_at_a_time(server: Server) -> None:
    """While one capture is analysed another is refused; afterwards it is accepted."""
    path = f"/{server.token}/capture/b"
    answers = []

    class Slow(io.BytesIO):
        def read(self, _: int | None = -1) -> bytes:
            answers.append(ask(server, path, b"")[:2])
            return b""

    with pytest.raises(AnalysisError, match="a: 10 bytes did not arrive"):
        server.analyst.report("a", Slow(), 10)
    busy = "another capture is being analysed: wait until it is done"
    assert answers == [(503, {"error": busy})]
    assert ask(server, path, b"")[1] == {"error": "b: is empty"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "4 GB record first", "zstd with a window of 2 GiB"])
def test_hostile_file(server: Server, name: str) -> None:
    """An unreadable file is refused with the sentence of the command line, and nothing else."""
    hostile = next(each for each in files() if each.name == name)
    status, said, _ = ask(server, f"/{server.token}/capture/..%2Fh.pcap", hostile.content())
    assert status == 422
    assert said["error"].startswith("h.pcap: ")
    assert hostile.said in said["error"]
    assert "/tmp" not in said["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(memory_bytes=100_000_000), "0.1 GB of memory and 600 s"),
        (Limits(seconds=0), "4.0 GB of memory and 0 s"),
    ],
)
def test_process_has_limits(limits: Limits, said: str) -> None:
    """An analysis that exceeds its memory or time ends with a sentence."""
    with EXAMPLE.open("rb") as file, pytest.raises(AnalysisError) as refused:
        Analyst(limits).report("a.pcap.zst", file, EXAMPLE.stat().st_size)
    assert str(refused.value) == f"a.pcap.zst: the analysis did not end: it may take {said}"


def test_names() -> None:
    """A dropped file's name becomes one in its folder that is neither hidden nor an option."""
    for name, plain in (
        ("a b.pcap", "a_b.pcap"),
        ("../../etc/passwd", "passwd"),
        ("--open", "open"),
        ("-", "capture"),
        ("", "capture"),
        (".pcap", "pcap"),
        ("<b>.pcap\x1b", "b_.pcap_"),
        ("x" * 300, "x" * 100),
    ):
        assert plain_name(name) == plain


@pytest.mark.slow
def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the address, serves there, and ends with status 0 on a signal."""
    command = [sys.executable, "-m", "capture_analysis.cli", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            _, _, host, token, _ = process.stdout.readline().split("/")
            connection = http.client.HTTPConnection(host, timeout=WAIT_S)
            connection.request("GET", f"/{token}/")
            assert connection.getresponse().status == 200
            port = host.split(":")[1]
            assert main(["serve", "--port", port]) == 2
            said = f"capture-analysis: port {port}: Address already in use\n"
            assert capsys.readouterr().err == said
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0


def test_few_connections_at_a_time() -> None:
    """Idle connections take a limited number of threads, and places for others when they end."""
    with Server() as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        before = threading.active_count()
        idle = [socket.create_connection(("127.0.0.1", one.server_port), WAIT_S) for _ in range(60)]
        for each in idle[40:]:
            assert each.recv(1) == b""  # closed at once
        assert threading.active_count() - before <= 32
        for each in idle:
            each.close()
        while threading.active_count() > before:
            time.sleep(0.01)
        assert ask(one, f"/{one.token}/")[0] == 200
        one.shutdown()
        thread.join()


def test_the_address_is_no_argument_of_the_browser(
    server: Server, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--open` shows a file that only its user can read, and that leads to the page."""
    shown = []

    def start(url: str) -> bool:
        assert server.token not in url
        assert Path(url.removeprefix("file://")).stat().st_mode & 0o777 == 0o600
        browser.get(url)
        WebDriverWait(browser, WAIT_S).until(lambda b: b.current_url == server.url)
        shown.append(browser.find_element("tag name", "body").text)
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    with _shown(server.url):
        assert "Drop a capture here" in shown[0]


def test_another_site_may_only_lead_to_the_page(server: Server) -> None:
    """A link of another site may show the page in a tab, in no frame, and reads no report."""
    led = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    for path, body, dest, status in (
        ("", None, "document", 200),
        ("", None, "iframe", 403),
        ("report/0", None, "document", 403),
        ("example", b"", "document", 403),
    ):
        found = ask(server, f"/{server.token}/{path}", body, Sec_Fetch_Dest=dest, **led)
        assert found[0] == status, (path, dest)


@pytest.mark.slow
def test_dropped_file(server: Server, browser: Any, tmp_path: Path) -> None:
    """A capture dropped on the page in a browser becomes its report; a text file is refused."""
    text, capture = tmp_path / "text.pcap", tmp_path / "my capture.pcap.zst"
    text.write_text("no capture at all" * 10)
    capture.write_bytes(EXAMPLE.read_bytes())
    browser.set_window_size(1000, 900)
    browser.get(server.url)

    def drop(path: Path) -> None:
        data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            event = {"type": kind, "x": 300, "y": 200, "data": data}
            browser.execute_cdp_cmd("Input.dispatchDragEvent", event)

    def shown(script: str) -> Any:
        return WebDriverWait(browser, WAIT_S).until(lambda b: b.execute_script(script))

    drop(text)
    said = shown("return said.classList.contains('bad') && said.textContent")
    assert said == "text.pcap: neither pcap nor pcapng: it starts with 6e 6f 20 63 (text?)"
    drop(capture)
    assert shown("return document.body.dataset.plots") == "drawn"
    assert browser.current_url.startswith(f"{server.url}report/")
    assert "my_capture.pcap.zst" in browser.title
    assert shown("return document.querySelectorAll('canvas').length") > 3
    errors = [each for each in browser.get_log("browser") if "422" not in each["message"]]
    assert errors == []
