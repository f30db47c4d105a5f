"""The trace event of FAST's updates in the guest's kernel.

Runs in the guest as root: a flow runs for three seconds with the event off, then with it on. It
leaves /mnt/run/off.txt and on.txt, as tracefs has them.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.guest.fast_flows import Bottleneck
from support.guest.tcp_hosts import RUN, Connection, command, load

TRACING = Path("/sys/kernel/tracing")


def main() -> int:
    """Trace a flow."""
    load("tcp_fast")
    command(f"mount -t tracefs none {TRACING}")
    path = Bottleneck()
    path.reset()
    for switch, name in (("0", "off.txt"), ("1", "on.txt")):
        (TRACING / "events/fast/fast_update/enable").write_text(switch)
        connection = Connection(path, "a", "b", "fast")
        connection.run(3)
        connection.abort()
        (RUN / name).write_text((TRACING / "trace").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
