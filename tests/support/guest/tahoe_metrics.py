"""The host's TCP metrics of a destination after flows of tahoe.

Runs in the guest as root, with the stock sysctls of metrics and one that makes the stack record
more. It leaves /mnt/run/metrics.json, a row for each flow.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.guest.tcp_hosts import (
    RUN,
    SEGMENT_BYTES,
    Connection,
    Network,
    command,
    inside,
    load,
    sysctl,
)

CONTROLS = ("tahoe", "tahoe_rto")
# Which end closes first.
ENDINGS = ("sender", "receiver", "both", "half")
# Segments per flow, so that flows end in slow start, in recovery, or after a timeout.
SEGMENTS = (3, 20, 25, 40, 60)
# The module's documented effect needs the classic stack's sysctls.
CLASSIC = ("tcp_sack", "tcp_recovery", "tcp_early_retrans", "tcp_frto")


def metrics() -> dict[str, str]:
    """Return what host a's kernel remembers of b, without the age; {} if nothing."""
    words = command("ip tcp_metrics show", "a").split()
    if not words:
        return {}
    found = dict(zip(words[1::2], words[2::2], strict=False))
    del found["age"]
    return found


def flow(network: Network, control: str, segments: int, ending: str) -> None:
    """Send this number of segments and close the connection."""
    connection = Connection(network, "a", "b", control)
    connection.write(segments)
    for _ in range(60):
        connection.run(1, busy=False, step_s=1)
        if connection.received == segments * SEGMENT_BYTES:
            break
    connection.close(ending)


def open_sockets() -> list[str]:
    """Return states, in hexadecimal, of a's connections except those in TIME_WAIT (06)."""
    with inside("a"):
        rows = Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]
    return [state for row in rows if (state := row.split()[3]) != "06"]


def reordering(network: Network) -> int:
    """Return the reordering with which a new flow of cubic to b starts."""
    connection = Connection(network, "a", "b", "cubic")
    found = connection.info().reordering
    connection.abort()
    return found


def main() -> int:
    """Try every control, ending and length, to an unknown host and to a known one."""
    load("tcp_tahoe")
    network = Network("ar rb")
    network.netem("r-b", "rate 2mbit", limit=5)
    network.netem("r-a", "delay 40ms")
    sysctl("a", "net.ipv4.tcp_no_ssthresh_metrics_save", 0)
    for name in CLASSIC:
        sysctl("a", f"net.ipv4.{name}", 0)
    rows = []
    for control in CONTROLS:
        for ending in ENDINGS:
            for segments in SEGMENTS:
                command("ip tcp_metrics flush", "a")
                flow(network, control, segments, ending)
                fresh = metrics()
                flow(network, "reno", 60, "sender")
                before = metrics()
                flow(network, control, segments, ending)
                rows.append(
                    {
                        "control": control,
                        "ending": ending,
                        "segments": segments,
                        "fresh": fresh,
                        "before": before,
                        "after": metrics(),
                        "open": open_sockets(),
                        "reordering": reordering(network),
                    }
                )
    (RUN / "metrics.json").write_text(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
