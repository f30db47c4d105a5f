"""Print INET_DIAG_VEGASINFO of each established TCP connection; runs in the guest.

One JSON object per connection, by source port: whether the control is in charge, the number of
round trips it measured, and its averaged and its base round trip in us.
"""

import json
import socket
import struct
import sys

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_DONE = 3
ESTABLISHED = 1 << 1
INET_DIAG_VEGASINFO = 3
MESSAGE_BYTES = 72  # struct inet_diag_msg
SOURCE_PORT_AT = 4


def main() -> None:
    """Query the kernel and print."""
    diag = struct.pack("=BBBBI48x", socket.AF_INET, socket.IPPROTO_TCP, 1 << 2, 0, ESTABLISHED)
    header = struct.pack(
        "=IHHII", 16 + len(diag), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 1, 0
    )
    found: dict[int, dict[str, int]] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
        netlink.send(header + diag)
        done = False
        while not done:
            answer = netlink.recv(1 << 16)
            while answer:
                size, kind = struct.unpack_from("=IH", answer)
                done |= kind == NLMSG_DONE
                if kind == SOCK_DIAG_BY_FAMILY:
                    found |= _connection(answer[16:size])
                answer = answer[(size + 3) & ~3 :]
    sys.stdout.write(json.dumps(found))


def _connection(message: bytes) -> dict[int, dict[str, int]]:
    (port,) = struct.unpack_from("!H", message, SOURCE_PORT_AT)
    attributes = message[MESSAGE_BYTES:]
    while len(attributes) >= 4:
        size, kind = struct.unpack_from("=HH", attributes)
        if kind == INET_DIAG_VEGASINFO:
            values = struct.unpack_from("=IIII", attributes, 4)
            names = ("enabled", "samples", "rtt_us", "base_rtt_us")
            return {port: dict(zip(names, values, strict=True))}
        attributes = attributes[(size + 3) & ~3 :]
    return {}


if __name__ == "__main__":
    main()
