"""Print what the congestion control of each established TCP connection tells; runs in the guest.

A line of JSON: by source port, the values of INET_DIAG_VEGASINFO or INET_DIAG_BBRINFO; gains are in
256ths. Arguments: the seconds between two lines, and the number of lines; none prints one line.
"""

import json
import socket
import struct
import sys
import time

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_DONE = 3
ESTABLISHED = 1 << 1
# The bit of INET_DIAG_VEGASINFO asks for either.
VALUES = {
    3: ("enabled", "samples", "rtt_us", "base_rtt_us"),
    16: ("bw_low", "bw_high", "min_rtt_us", "pacing_gain", "cwnd_gain"),
}
MESSAGE_BYTES = 72  # struct inet_diag_msg
SOURCE_PORT_AT = 4


def main() -> None:
    """Query the kernel and print."""
    interval_s, lines = (float(sys.argv[1]), int(sys.argv[2])) if sys.argv[1:] else (0, 1)
    for _ in range(lines):
        sys.stdout.write(json.dumps(_connections()) + "\n")
        sys.stdout.flush()
        time.sleep(interval_s)


def _connections() -> dict[int, dict[str, int]]:
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
    return found


def _connection(message: bytes) -> dict[int, dict[str, int]]:
    (port,) = struct.unpack_from("!H", message, SOURCE_PORT_AT)
    attributes = message[MESSAGE_BYTES:]
    while len(attributes) >= 4:
        size, kind = struct.unpack_from("=HH", attributes)
        if names := VALUES.get(kind):
            values = struct.unpack_from(f"={len(names)}I", attributes, 4)
            return {port: dict(zip(names, values, strict=True))}
        attributes = attributes[(size + 3) & ~3 :]
    return {}


if __name__ == "__main__":
    main()
