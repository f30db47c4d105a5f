"""Checksums of packets from the guest's own kernel, which does not verify them (vm/patches).

Packets that netem corrupts are the exception.
"""

from pathlib import Path

from support.plans import said_in_guest

from twoway.guest.cache import Guest

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
