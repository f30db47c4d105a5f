"""Check claims on twoway_testbed, as root in the guest; write the findings to found.json.

The module is loaded with a single block for each tap.
"""

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DEVICE = "/dev/twoway_testbed"
MS = 1_000_000
CLONE_NEWNET = 0x40000000
SO_SNDBUFFORCE = 32
# Frames of a VLAN: longer than a tap's snap length, about equal, and shorter.
PAYLOADS = (1000, 80, 70, 46)
# More packets than fit into a block of 128 KiB.
PACKETS_OF_A_BLOCK = 1200
PCAP_HEADER, PACKET_HEADER = 24, struct.Struct("<4I")


def call(command: str) -> str:
    """Run a command that must succeed; return its output."""
    return subprocess.run(command.split(), check=True, stdout=subprocess.PIPE, text=True).stdout


@contextlib.contextmanager
def instrument(*lines: str) -> Iterator[int]:
    """Return an open device to which lines were written."""
    device = os.open(DEVICE, os.O_RDWR)
    try:
        for line in lines:
            os.write(device, line.encode())
        yield device
    finally:
        os.close(device)


def refusal(line: str) -> str:
    """Return the name of the error that refuses a line; empty if it is accepted."""
    try:
        with instrument(line):
            return ""
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def without_capability() -> bool:
    """Tell whether the device refuses root without CAP_NET_ADMIN."""
    bounds = ["setpriv", "--inh-caps=-net_admin", "--bounding-set=-net_admin"]
    done = subprocess.run([*bounds, "cat", DEVICE], check=False, stderr=subprocess.PIPE, text=True)
    return done.returncode == 1 and "not permitted" in done.stderr


def not_ethernet() -> dict[str, str]:
    """Return the error and the log's words that refuse a tap of nlmon."""
    call("ip link add n0 type nlmon")
    said = {"error": refusal("tap n0 in 96 /tmp/n0.pcap")}
    return {**said, "log": call("dmesg -t").splitlines()[-1]}


def not_regular() -> dict[str, str]:
    """Return the errors that refuse files to which a write may wait."""
    os.mkfifo("/tmp/fifo")
    unread = refusal("tap lo in 96 /tmp/fifo")
    reader = os.open("/tmp/fifo", os.O_RDONLY | os.O_NONBLOCK)
    read = refusal("tap lo in 96 /tmp/fifo")
    os.close(reader)
    return {"unread": unread, "read": read, "device": refusal("tap lo in 96 /dev/null")}


def records(path: str) -> int:
    """Return the whole packets of a capture file that has nothing else."""
    data, at, found = Path(path).read_bytes(), PCAP_HEADER, 0
    while at < len(data):
        at += PACKET_HEADER.size + PACKET_HEADER.unpack_from(data, at)[2]
        found += 1
    assert at == len(data)
    return found


def burst() -> dict[str, int]:
    """Return a tap's report on two datagrams of 1250 fragments, each sent by one call."""
    call("ip link add d0 mtu 68 type dummy")
    call("ip addr add 10.8.0.1/24 dev d0")
    call("ip link set d0 up")
    with (
        instrument("tap d0 out 96 /tmp/d0.pcap") as device,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        sender.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 24)
        for _ in range(2):
            sender.sendto(bytes(60_000), ("10.8.0.2", 9))
        captured, received, dropped = (
            int(line.split()[0]) for line in os.read(device, 4096).decode().splitlines()
        )
    sent = int(Path("/sys/class/net/d0/statistics/tx_packets").read_text())
    return {
        "sent": sent,
        "received": received,
        "dropped": dropped,
        "captured": captured,
        "in_file": records("/tmp/d0.pcap"),
    }


def on_the_host() -> dict[str, int]:
    """Return the packets of a capture on the host, read while it is written and at its end.

    `resident` is the bytes of it in the guest's page cache before the first read.
    """
    path = "/mnt/run/lo.pcap"
    with (
        instrument(f"tap lo out 96 {path}") as device,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        found: dict[str, int] = {}
        for _ in range(2):
            for _ in range(PACKETS_OF_A_BLOCK):
                sender.sendto(bytes(100), ("127.0.0.1", 9))
            time.sleep(0.001)
            if not found:
                resident = int(call(f"fincore --noheadings --bytes --output RES {path}"))
                found = {"resident": resident, "first": records(path)}
        captured = int(os.read(device, 4096).split()[0])
        return {**found, "captured": captured, "in_file": records(path)}


def vlan() -> list[str]:
    """Return a tap's capture and tcpdump's of tagged frames, as hexadecimal digits."""
    call("ip link add v0 type veth peer name v1")
    for name in ("v0", "v1"):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        call(f"ip link set {name} up")
    command = f"tcpdump -Z root -n -i v0 -Q in -s 96 --time-stamp-precision=nano -c {len(PAYLOADS)}"
    with (
        subprocess.Popen(
            [*command.split(), "-w", "/tmp/tcpdump.pcap"], stderr=subprocess.PIPE, text=True
        ) as tcpdump,
        instrument("tap v0 in 96 /tmp/v0.pcap") as device,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        assert tcpdump.stderr is not None
        assert "listening" in tcpdump.stderr.readline()
        sender.bind(("v1", 0))
        for size in PAYLOADS:
            tag = struct.pack("!HHH", 0x8100, 0x2005, 0x88B5)
            sender.send(b"\xff" * 6 + b"\x02\0\0\0\0\1" + tag + bytes(size))
        tcpdump.communicate()
        os.read(device, 4096)
    return [Path(path).read_bytes().hex() for path in ("/tmp/v0.pcap", "/tmp/tcpdump.pcap")]


def multiqueue() -> list[str]:
    """Return the row of an interface with two queues, in which three packets wait."""
    call("ip link add d1 numtxqueues 2 type dummy")
    Path("/proc/sys/net/ipv6/conf/d1/disable_ipv6").write_text("1")
    call("ip addr add 10.9.0.1/24 dev d1")
    call("tc qdisc add dev d1 root handle 1: mq")
    for queue in (1, 2):
        call(f"tc qdisc add dev d1 parent 1:{queue} netem delay 100s")
    call("ip link set d1 up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3):
            sender.sendto(b"", ("10.9.0.2", 9))
    sampled("queue d1")
    (row,) = rows("queues.csv")
    return row[1:5]


def sampled(*lines: str) -> None:
    """Take one sample of the objects in lines, and wait for its end."""
    start = time.time_ns() + MS
    with instrument(*lines, f"sample {start} {start + 1} {MS} {MS} /tmp") as device:
        os.read(device, 4096)


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table in /tmp."""
    lines = [line for line in Path("/tmp", name).read_text().splitlines() if line[0] != "#"]
    return [line.split(",") for line in lines[1:]]


class InterruptedRead(Exception):  # noqa: N818 - a signal, no error
    """A signal interrupts a read."""


def interrupted() -> dict[str, Any]:
    """Return the rows of a read that was interrupted and repeated: all of ten samples."""

    def interrupt(*_: object) -> None:
        raise InterruptedRead

    signal.signal(signal.SIGALRM, interrupt)
    start = time.time_ns() + 10 * MS
    stop = start + 10 * MS
    with instrument("queue lo", f"sample {start} {stop} {MS} {MS} /tmp") as device:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        try:
            os.read(device, 4096)
        except InterruptedRead:
            early = time.time_ns() < start
        else:
            early = False
        os.read(device, 4096)
    return {"early": early, "rows": len(rows("queues.csv"))}


def namespaces() -> list[str]:
    """Return the names of two namespaces' connections; the second has its own hash table."""
    with connection(), instrument("sockets first") as device:
        Path("/proc/sys/net/ipv4/tcp_child_ehash_entries").write_text("128")
        assert ctypes.CDLL(None).unshare(CLONE_NEWNET) == 0
        call("ip link set lo up")
        with connection():
            start = time.time_ns() + MS
            os.write(device, b"sockets second")
            os.write(device, f"sample {start} {start + 1} {MS} {MS} /tmp".encode())
            os.read(device, 4096)
    return [row[1] for row in rows("tcp-info.csv")]


@contextlib.contextmanager
def connection() -> Iterator[None]:
    """Make a TCP connection of this namespace with itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with client, accepted:
            yield


def main() -> None:
    """Check every claim, and unload the module."""
    call("insmod /mnt/bin/twoway_testbed.ko most_blocks=1")
    call("ip link set lo up")
    found = {
        "without_capability": without_capability(),
        "not_ethernet": not_ethernet(),
        "not_regular": not_regular(),
        "burst": burst(),
        "on_the_host": on_the_host(),
        "vlan": vlan(),
        "multiqueue": multiqueue(),
        "interrupted": interrupted(),
        "namespaces": namespaces(),
    }
    call("rmmod twoway_testbed")
    Path("/mnt/run/found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
