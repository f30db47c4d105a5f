"""`make bench OF=native`: a segment of two-way TCP on this machine's own kernel, and in the guest.

One connection of CUBIC each way between two hosts with a router between them. On this machine each
is a network namespace, and links are pairs of veth with MTU 1500, without offloads and without a
rate, so that iperf3 sends as fast as the kernel forwards. In the guest the links have 1 Gbit/s and
six captures; its figure is the difference of a longer and a shorter run. Both are wall time over
the segments with data, and over all packets, ACKs included.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from capture_analysis import read_columns
from machine import machine
from timed_runs import many_flows, run_experiment

from twoway.manifest import read_manifest

ROUNDS, SECONDS = 3, 5
GUEST_S = (0.5, 2.5)
SEGMENT_BYTES = 1460
# In namespaces of their own, which vanish with the shell. It prints iperf3's document, and then the
# packets that each host received.
PAIR = f"""
set -e
mount -t tmpfs tmpfs /run
for n in a r b; do ip netns add $n; done
for n in a b; do
  ip link add eth0 netns $n type veth peer name to-$n netns r
  for side in "$n eth0" "r to-$n"; do
    set -- $side
    ip netns exec $1 ethtool -K $2 tso off gso off gro off tx off > /dev/null
    ip -n $1 link set dev $2 up
  done
done
ip -n r addr add 10.0.1.1/24 dev to-a
ip -n r addr add 10.0.2.1/24 dev to-b
ip -n a addr add 10.0.1.2/24 dev eth0
ip -n b addr add 10.0.2.2/24 dev eth0
ip -n a route add default via 10.0.1.1
ip -n b route add default via 10.0.2.1
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
for n in a b; do ip netns exec $n sysctl -qw net.ipv4.tcp_timestamps=0; done
ip netns exec b iperf3 -s -D
sleep 0.5
ip netns exec a iperf3 -c 10.0.2.2 -t {SECONDS} --bidir -C cubic -J
for n in a b; do ip netns exec $n cat /sys/class/net/eth0/statistics/rx_packets; done
"""


class Cost(NamedTuple):
    """Microseconds of wall time for a segment with data, and for a packet of any kind."""

    segment_us: float
    packet_us: float


def main() -> int:
    """Print a line for this machine's kernel, and one for the guest's."""
    print(f"{machine()}, two-way CUBIC with MTU 1500, medians of {ROUNDS}")
    try:
        _show("namespaces and veth, this kernel", [_native() for _ in range(ROUNDS)])
    except subprocess.CalledProcessError as error:
        why = (error.stderr or "no reason").strip().splitlines()[-1]
        print(f"this machine makes no namespaces with links for its user: {why}")
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        _show("guest, with captures", [_guest(Path(scratch)) for _ in range(ROUNDS)])
    return 0


def _show(what: str, costs: list[Cost]) -> None:
    segment_us, packet_us = (statistics.median(values) for values in zip(*costs, strict=True))
    print(f"{what:<34} {segment_us:6.2f} us a segment, {packet_us:6.2f} us a packet", flush=True)


def _native() -> Cost:
    """Measure the pair in namespaces.

    Raises: subprocess.CalledProcessError if the kernel refuses them.
    """
    words = ["unshare", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child"]
    done = subprocess.run(
        [*words, "--mount-proc", "bash", "-c", PAIR], capture_output=True, text=True, check=True
    )
    said, *counts = done.stdout.rpartition("}")[0] + "}", *done.stdout.rpartition("}")[2].split()
    end = json.loads(said)["end"]
    received = [end[name]["bytes"] for name in ("sum_received", "sum_received_bidir_reverse")]
    wall_us = end["sum_received"]["seconds"] * 1e6
    return Cost(wall_us * SEGMENT_BYTES / sum(received), wall_us / sum(map(int, counts)))


def _guest(folder: Path) -> Cost:
    """Measure the pair in the guest, without its boot and set-up."""
    (short_s, *short), (long_s, *long) = (_run(folder, seconds) for seconds in GUEST_S)
    segments, packets = (more - fewer for more, fewer in zip(long, short, strict=True))
    wall_us = (long_s - short_s) * 1e6
    return Cost(wall_us / segments, wall_us / packets)


def _run(folder: Path, seconds: float) -> tuple[float, int, int]:
    """Run the pair in the guest; return wall seconds, segments and packets."""
    document = many_flows(pairs=1, each=1, rate_mbit=1000, duration_s=seconds)
    run = run_experiment(folder, document)
    manifest = read_manifest(run)
    sizes = [
        read_columns(path)["payload_bytes"]
        for queue in manifest.queues
        for path in (run / "pcap").glob(f"{queue.interface}.pcap*")
    ]
    segments = sum(int(np.count_nonzero(each)) for each in sizes)
    return manifest.timing.wall_s, segments, sum(map(len, sizes))


if __name__ == "__main__":
    sys.exit(main())
