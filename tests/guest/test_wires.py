"""Packets between machines: bytes alone, and checksums that the guest does not verify."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from capture_analysis.reading.capture import read_capture
from support.plans import said_in_guest
from support.running import ROOT, metrics, write_experiment
from support.runs import carry_out

from twoway.guest.cache import Guest
from twoway.report.report import analyse_run

# Between two machines a packet carries its bytes, and nothing else of the kernel they share.

# 16 connections of one program, each with a mark and a priority, or the program that they go to.
BULK = """
import os, socket, sys, threading, time

def send():
    to = socket.socket()
    to.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)
    to.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 5)
    to.connect(("h2", 5000))
    end = time.monotonic() + 12
    while time.monotonic() < end:
        to.sendall(bytes(1 << 14))
    os._exit(0)

def drain(connection):
    while connection.recv(1 << 16):
        pass

if sys.argv[1:]:
    server = socket.create_server(("", 5000), backlog=64)
    while True:
        threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()
for _ in range(16):
    threading.Thread(target=send).start()
"""
# The slow line brings time-outs; at each time-out Linux draws a new hash for the socket.
LINE = {"rate_mbit": 0.831, "delay_ms": 10, "queue_packets": 100}
QUEUES = ("cake", "fq_codel", "fq_pie", "fq")
CARRIED = ("packets", "hashes", "marks", "priorities", "sockets", "stamps")


def _experiment(folder: Path, aqm: str, **more: Any) -> Path:
    """Write an experiment on the slow line behind a queue discipline."""
    profile = {
        "schema": 1,
        "title": "A slow line",
        "directions": {"forward": {**LINE, "aqm": aqm}, "reverse": {**LINE, "rate_mbit": 10}},
    }
    (folder / "slow.yml").write_text(yaml.safe_dump(profile), "utf-8")
    (folder / "bulk.py").write_text(BULK, "utf-8")
    document = {
        "schema": 1,
        "title": "A queue for each connection",
        "summary": "For tests.",
        "topology": {"name": "two_node"},
        "profile": "slow",
        "stack": {"acks": "delayed", "timestamps": True},
        "duration_s": 15,
        "warm_up_s": 5,
    }
    return write_experiment(folder, {**document, **more})


def _programs(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the program of 16 connections, from h1 to h2, and others."""
    bulk: dict[str, Any] = {"files": ["bulk.py"], "command": ["python3", "bulk.py"]}
    serve = {"command": [*bulk["command"], "serve"], "exit_code": None}
    return [
        {**bulk, **serve, "name": "server", "host": "h2"},
        {**bulk, "name": "client", "host": "h1", "start_s": 1},
        *more,
    ]


def _read(name: str, host: str, at_s: float, path: str) -> dict[str, Any]:
    """Return a program that prints a file."""
    return {"name": name, "host": host, "start_s": at_s, "command": ["cat", path]}


def _timeouts(run: Path) -> int:
    """Return the number of time-outs of h1, from its /proc/net/netstat."""
    names, values = (run / "programs/stat.out").read_text().splitlines()[:2]
    counts = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return counts["TCPTimeouts"]


def _overtaken(run: Path) -> int:
    """Count data packets that a later one of their connection overtook between the hosts.

    A connection numbers its packets, from its SYN on: in the order in which they left.
    """
    packets, _ = read_capture(run / "pcap/h2-eth0.pcap.zst")
    data = packets.where(packets.payload_bytes > 0).widen()
    late = 0
    for each in np.unique(data.flow):
        number = data.ip_id[data.flow == each]
        steps = (np.diff(number) + (1 << 15)) % (1 << 16) - (1 << 15)
        ordered = np.concatenate(([0], np.cumsum(steps)))
        late += int((ordered < np.maximum.accumulate(ordered)).sum())
    return late


def _failed(run: Path) -> list[dict[str, Any]]:
    """List the fidelity checks of a run that do not pass."""
    analyse_run(run, page=False)
    return [row for row in metrics(run)["fidelity"] if row["verdict"] != "pass"]


@pytest.mark.usefixtures("guest")
def test_what_arrives_is_bytes(tmp_path: Path) -> None:
    """No packet arrives with a hash, a mark, a priority, a socket or a time stamp of its sender."""
    shutil.copy(ROOT / "tests/support/guest/carried.c", tmp_path)
    paths = (
        _read(f"carried-{name}", "h1", 14, f"/sys/module/carried/parameters/{name}")
        for name in CARRIED
    )
    programs = _programs(*paths, _read("stat", "h1", 12.9, "/proc/net/netstat"))
    path = _experiment(tmp_path, "drop-tail", programs=programs, own_modules=["carried.c"])
    run = carry_out(path, tmp_path / "results")
    counts = [int((run / f"programs/carried-{name}.out").read_text()) for name in CARRIED]
    assert counts[0] > 1000
    assert _timeouts(run) > 0
    assert counts[1:] == [0] * 5


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("aqm", QUEUES)
def test_a_connection_keeps_its_queue(tmp_path: Path, aqm: str) -> None:
    """No packet of a connection overtakes an earlier one in a queue for each, despite time-outs."""
    programs = _programs(_read("stat", "h1", 12.9, "/proc/net/netstat"))
    run = carry_out(_experiment(tmp_path, aqm, programs=programs), tmp_path / "results")
    assert (_overtaken(run), _failed(run)) == (0, [])
    assert _timeouts(run) > 0


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("aqm", QUEUES)
def test_a_declared_flow_keeps_its_queue(tmp_path: Path, aqm: str) -> None:
    """Every fidelity check of 16 flows behind a queue for each holds."""
    flow = {"name": "up", "from": "h1", "to": "h2", "congestion": "cubic", "count": 16}
    run = carry_out(_experiment(tmp_path, aqm, flows=[flow]), tmp_path / "results")
    assert (_overtaken(run), _failed(run)) == (0, [])


# Checksums of packets from the guest's own kernel, which does not verify them (vm/patches).
# Packets that netem corrupts are the exception.

# Two hosts and a cable.
HOSTS = """
set -e
ip netns add one; ip netns add two
ip link add name one0 netns one type veth peer name two0 netns two address 2:0:0:0:0:2
ip -netns one address add 10.9.0.1/24 dev one0; ip -netns one link set one0 up
ip -netns two address add 10.9.0.2/24 dev two0; ip -netns two link set two0 up
ip -netns one neigh add 10.9.0.2 lladdr 2:0:0:0:0:2 dev one0
"""
# One datagram whose checksum the sender's interface leaves to the kernel, and one with a wrong
# checksum from a program.
SCRIPT = """
PYTHONPATH=/mnt/twoway/vm/guest /mnt/venv/bin/python - > /mnt/run/said <<'END'
import socket, struct
from pathlib import Path
from network import namespace
from offloads import switch_off

def folded(data):
    words = sum(struct.unpack(f"!{len(data) // 2}H", data))
    return (words & 0xFFFF) + (words >> 16)

with namespace("two"):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("10.9.0.2", 7))
    receiver.settimeout(1)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x800))
with namespace("one"):
    switch_off("one0", ["tx"])
    address = ("10.9.0.2", 7)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"right!", address)
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    raw.sendto(struct.pack("!HHHH", 9, 7, 14, 0xDEAD) + b"wrong!", address)
for _ in range(2):
    packet = wire.recv(99)
    pseudo = packet[12:20] + struct.pack("!BBH", 0, 17, 14)
    print("sum", folded(pseudo + packet[20:]) == 0xFFFF)
print(receiver.recv(99).decode())
try:
    print(receiver.recv(99).decode())
except TimeoutError:
    print("no other")
with namespace("two"):
    names, counts = (l.split() for l in Path("/proc/thread-self/net/snmp").read_text().splitlines()
                     if l.startswith("Udp:"))
print("wrong", dict(zip(names, counts))["InCsumErrors"])
END
"""


def test_a_checksum_is_right_and_a_programs_own_is_checked(guest: Guest, tmp_path: Path) -> None:
    """The kernel's checksum on the link is right; a packet with a wrong one is dropped."""
    assert said_in_guest(guest, tmp_path / "run", HOSTS + SCRIPT) == [
        "sum True",
        "sum False",
        "right!",
        "no other",
        "wrong 1",
    ]


# 400 datagrams, each with a flipped bit somewhere in the frame, after netem has computed the
# checksum. A longer length in UDP's header is an error without a checksum.
CORRUPTED = """
PYTHONPATH=/mnt/twoway/vm/guest /mnt/venv/bin/python - > /mnt/run/said <<'END'
import socket, subprocess
from collections import Counter
from pathlib import Path
from network import namespace

UDP, LENGTH = 34, 38  # where in the frame

def received():
    try:
        return receiver.recv(2000)
    except TimeoutError:
        return None

def counted():
    names, counts = (l.split() for l in Path("/proc/thread-self/net/snmp").read_text().splitlines()
                     if l.startswith("Udp:"))
    return int(dict(zip(names, counts))["InCsumErrors"])

with namespace("two"):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("10.9.0.2", 7))
    receiver.settimeout(0.01)
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x3))
    wire.bind(("two0", 0x3))
    wire.settimeout(1)
with namespace("one"):
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # IP_MTU_DISCOVER: all datagrams have the same headers, without an identification.
    sender.setsockopt(socket.SOL_IP, 10, 2)
sent, address = bytes(1400), ("10.9.0.2", 7)
netem = "ip netns exec one tc qdisc add dev one0 root netem corrupt 100%"
subprocess.run(netem.split(), check=True)
frames, outcomes = [], Counter()
for _ in range(400):
    with namespace("two"):
        before = counted()
    sender.sendto(sent, address)
    data = received()
    with namespace("two"):
        wrong = counted() - before
    frames.append(wire.recv(2000))
    outcomes["checksum" if wrong else "changed" if data not in (None, sent) else "other"] += 1
# Each byte as most frames have it.
sound = bytes(Counter(column).most_common(1)[0][0] for column in zip(*frames))
flips = [(at, byte) for frame in frames for at, byte in enumerate(frame) if byte != sound[at]]
in_udp = [at for at, byte in flips
          if at >= UDP and not (at in (LENGTH, LENGTH + 1) and byte > sound[at])]
print(len(flips), "flips")
print(len(in_udp) - outcomes["checksum"], "in UDP not counted")
print(outcomes["changed"], "delivered changed")
END
"""


def test_what_netem_corrupts_is_checked(guest: Guest, tmp_path: Path) -> None:
    """UDP drops and counts each of the 400 corrupted datagrams that reach it."""
    assert said_in_guest(guest, tmp_path / "run", HOSTS + CORRUPTED) == [
        "400 flips",
        "0 in UDP not counted",
        "0 delivered changed",
    ]
