"""The corpus's captures by other programs: Wireshark's, tcprewrite, and tcpdump on real traffic.

Run as a program inside a network namespace, it captures Linux's TCP; `build_real` does that.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from corpus import Specimen

# Without nokiapcap, rh6_1pcap and suse6_3pcap: these have pcap's magic numbers and other record
# headers, so that Wireshark guesses.
EDITCAP_FORMATS = ("pcap", "nsecpcap", "modpcap", "pcapng")
FILTERS = {
    "tcp": "tcp",
    "data": "ip[2:2] > 60",
    "port": "tcp port 40001",
    "source": "src host 10.0.1.2",
    "syn": "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "every-other": "ip[5] & 1 = 0",
}


def build(folder: Path, plain: dict[str, Specimen]) -> list[Specimen]:
    """Write captures that programs make from those of `corpus.build`."""
    return [
        Specimen(name, path)
        for part in (_editcap, _mergecap, _reordercap, _tcpdump, _tcprewrite)
        for name, path in part(folder, {name: s.path for name, s in plain.items()})
    ]


def run(*arguments: str | Path) -> None:
    """Run a program that must succeed; show its output if it does not."""
    done = subprocess.run(
        [str(argument) for argument in arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{arguments}: {done.stderr}")


def _editcap(folder: Path, plain: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Make other formats, truncated frames, selections, shifted times, files without duplicates."""
    flows = plain["tcp/flows-7"]
    for form in EDITCAP_FORMATS:
        for source in ("format/ns-big-flows", "format/ng-little-flows"):
            path = folder / f"editcap-{form}-{Path(source).name}.pcap"
            run("editcap", "-F", form, plain[source], path)
            yield f"editcap/{form}-{Path(source).name}", path
    edits = {
        "snap-60": ("-s 60",),
        "snap-96-pcap": ("-s 96 -F pcap",),
        "snap-and-length": ("-s 70 -L",),
        "later": ("-t 86400.000000001",),
        "earlier": ("-t -3600.5",),
        "forward-only": ("-S 0.000001",),
        "half": ("-r", "1-60"),
        "without": ("-F nsecpcap", "5-20"),
        "no-copies": ("-d",),
        "as-raw": ("-C 14 -L -T rawip",),
    }
    for name, (options, *selected) in edits.items():
        path = folder / f"editcap-{name}.pcap"
        run("editcap", *options.split(), flows, path, *selected)
        yield f"editcap/{name}", path
    run("editcap", "-d", plain["tcp/each-four-times"], folder / "editcap-once.pcap")
    yield "editcap/once", folder / "editcap-once.pcap"
    run("editcap", "-c", "100", plain["tcp/flows-30"], folder / "editcap-split.pcap")
    for n, path in enumerate(sorted(folder.glob("editcap-split_*.pcap"))):
        yield f"editcap/split-{n}", path


def _mergecap(folder: Path, plain: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Merge files of the same and of different link types and resolutions."""
    merges = {
        "same-link": ("format/us-little", "format/ns-big"),
        "links": ("link/raw-4", "link/sll-6", "format/ng-big-flows"),
        "same-twice": ("tcp/holes", "tcp/holes"),
        "many": tuple(name for name in plain if name.startswith("link/"))[:20],
    }
    for name, sources in merges.items():
        for how in ((), ("-a",), ("-I", "none")):
            path = folder / f"mergecap-{name}{''.join(how)}.pcapng"
            run("mergecap", *how, "-w", path, *(plain[source] for source in sources))
            yield f"mergecap/{name}{''.join(how)}", path
    path = folder / "mergecap-classic.pcap"
    run("mergecap", "-F", "nsecpcap", "-w", path, *(plain[s] for s in merges["same-link"]))
    yield "mergecap/classic", path


def _reordercap(folder: Path, plain: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Sort files whose times run backward."""
    for source in ("tcp/times-backward", "tcp/flows-30", "mid"):
        if source in plain:
            path = folder / f"reordercap-{Path(source).name}.pcap"
            run("reordercap", plain[source], path)
            yield f"reordercap/{Path(source).name}", path


def _tcpdump(folder: Path, plain: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Write with tcpdump the packets that pass a filter."""
    read = ("tcpdump", "-Z", "root", "-r")
    for name, expression in FILTERS.items():
        path = folder / f"tcpdump-{name}.pcap"
        run(*read, plain["format/ns-little-flows"], "-w", path, "-n", expression)
        yield f"tcpdump/{name}", path
    for precision in ("micro", "nano"):
        for source in ("format/ng-big-flows", "link/sll2-4", "snap/96"):
            path = folder / f"tcpdump-{precision}-{Path(source).name}.pcap"
            run(*read, plain[source], f"--time-stamp-precision={precision}", "-w", path)
            yield f"tcpdump/{precision}-{Path(source).name}", path


def _tcprewrite(folder: Path, plain: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Change addresses, ports, tags and sizes, but not where TCP lies relative to IP's length."""
    rewrites = {
        "ports": ("--portmap=40001:80,20001:443", "--fixcsum"),
        "addresses": ("--pnat=10.0.1.0/24:192.168.7.0/24", "--fixcsum"),
        "random-addresses": ("--seed=7", "--fixcsum"),
        "vlan": ("--enet-vlan=add", "--enet-vlan-tag=45", "--enet-vlan-cfi=0", "--enet-vlan-pri=2"),
        "macs": ("--enet-dmac=00:55:22:AF:C6:37", "--enet-smac=00:44:66:FC:29:AF"),
        "cut": ("--mtu=600", "--mtu-trunc"),
        "tos": ("--tos=50", "--fixcsum"),
        "sequences": ("--tcp-sequence=12345",),
    }
    for name, options in rewrites.items():
        path = folder / f"tcprewrite-{name}.pcap"
        run("tcprewrite", *options, "-i", plain["format/us-little-flows"], "-o", path)
        yield f"tcprewrite/{name}", path
    path = folder / "tcprewrite-unvlan.pcap"
    run("tcprewrite", "--enet-vlan=del", "-i", plain["link/vlan-4"], "-o", path)
    yield "tcprewrite/vlan-removed", path


# tcpdump's options; the loopback's segments are as large as offload makes them.
CAPTURES = {
    "loopback": ["-i", "lo"],
    "loopback-nano": ["-i", "lo", "--time-stamp-precision=nano"],
    "loopback-snap": ["-i", "lo", "-s", "96"],
    "any-sll": ["-i", "any", "-y", "LINUX_SLL"],
    "any-sll2": ["-i", "any", "-y", "LINUX_SLL2", "--time-stamp-precision=nano"],
}
SENT_BYTES = 300_000


def build_real(folder: Path) -> list[Specimen]:
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
