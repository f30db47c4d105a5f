"""Checksums that the guest's kernel has computed itself, which it does not check (vm/patches)."""

from pathlib import Path

from plans import said_in_guest

from twoway.guest.build import Guest

# One datagram whose checksum the sender's interface leaves to the kernel, and one that a program
# has made with a wrong one.
SCRIPT = """
set -e
ip netns add one; ip netns add two
ip link add name one0 netns one type veth peer name two0 netns two
ip -netns one address add 10.9.0.1/24 dev one0; ip -netns one link set one0 up
ip -netns two address add 10.9.0.2/24 dev two0; ip -netns two link set two0 up
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
    """A checksum by the kernel is right on the wire; a wrong one by a program is dropped."""
    assert said_in_guest(guest, tmp_path / "run", SCRIPT) == [
        "sum True",
        "sum False",
        "right!",
        "no other",
        "wrong 1",
    ]
