"""The real captures of the corpus: tcpdump on Linux's TCP, in a network namespace.

Run as a program inside the namespace; `build` does that.
"""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from corpus import Specimen

# tcpdump's options; the loopback's segments are as large as offload makes them.
CAPTURES = {
    "loopback": ["-i", "lo"],
    "loopback-nano": ["-i", "lo", "--time-stamp-precision=nano"],
    "loopback-snap": ["-i", "lo", "-s", "96"],
    "any-sll": ["-i", "any", "-y", "LINUX_SLL"],
    "any-sll2": ["-i", "any", "-y", "LINUX_SLL2", "--time-stamp-precision=nano"],
}
SENT_BYTES = 300_000


def build(folder: Path) -> list[Specimen]:
    """Capture some traffic.

    Raises: RuntimeError if this machine has no user namespaces, which the guest needs as well.
    """
    # tcpdump must not try to change its user, which it may not do here.
    unshare = ["unshare", "--map-user=1000", "--map-group=1000", "--keep-caps", "--net"]
    words = [*unshare, sys.executable, __file__, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    return [Specimen(f"real/{name}", folder / f"real-{name}.pcap") for name in CAPTURES]


def main() -> None:
    """Bring the loopback up, and capture two conversations on it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    paths = {name: Path(sys.argv[1]) / f"real-{name}.pcap" for name in CAPTURES}
    taps = [_tap(paths[name], options) for name, options in CAPTURES.items()]
    for address in ("127.0.0.1", "::1"):
        _converse(address)
    sizes: list[int] = []
    while sizes != (sizes := [path.stat().st_size for path in paths.values()]):
        time.sleep(0.2)  # tcpdump has written all when its file stops growing
    for tap in taps:
        tap.terminate()
        tap.wait()


def _tap(path: Path, options: list[str]) -> subprocess.Popen[str]:
    """Start a tcpdump and wait until it captures."""
    words = ["tcpdump", "--immediate-mode", "-U", *options, "-w", str(path), "tcp"]
    tap = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert tap.stderr is not None
    complaint = ""
    while "listening on" not in (line := tap.stderr.readline()):
        if not line:
            raise RuntimeError(f"{' '.join(words)}: {complaint}")
        complaint = line
    return tap


def _converse(address: str) -> None:
    """Make a connection that sends some data in both directions, and closes."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        answer = threading.Thread(target=_answer, args=(listener,))
        answer.start()
        with socket.create_connection(listener.getsockname()[:2]) as client:
            client.sendall(bytes(SENT_BYTES))
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass
        answer.join()


def _answer(listener: socket.socket) -> None:
    """Send back all received data until it ends."""
    connection, _ = listener.accept()
    with connection:
        while content := connection.recv(1 << 16):
            connection.sendall(content)


if __name__ == "__main__":
    main()
