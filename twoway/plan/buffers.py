"""Sizes of socket buffers: they follow the path, and limit no window unless a file asks."""

import math
from collections import Counter

from twoway.contract.network import Connection
from twoway.description.point import Point
from twoway.description.stack import MOST_RECEIVE_BUFFER_BYTES

# The first is the initial size of a send buffer: a large buffer is refilled in few, large copies.
# The second is the memory that the buffers of all endless connections share, because they are full
# from the first nanosecond.
LEAST_SEND_BUFFER_BYTES, LEAST_SEND_BUFFERS_BYTES = 1 << 20, 1 << 26
# The least send buffer of a connection: the kernel doubles it, and it then holds a hundred
# segments.
SMALLEST_SEND_BUFFER_BYTES = 1 << 16
LEAST_RECEIVE_BUFFER_BYTES = 1 << 24
# The names of the queues of the data, and of those of the ACKs, in order.
Path = tuple[tuple[str, ...], tuple[str, ...]]


def send_buffer_bytes(point: Point, connection: Connection) -> int:
    """Compute the initial SO_SNDBUF of a connection.

    With this size a known window never lacks data. If the window is not known, the kernel's
    autotuning raises the buffer as the window grows. The kernel doubles SO_SNDBUF and wakes the
    writer when a third of it is free. A transfer needs no more than its bytes.
    """
    ends = connection.transfer_bytes is not None
    least = LEAST_SEND_BUFFER_BYTES if ends else _endless_buffer_bytes(len(point.connections))
    return max(least, _known_packets(point, connection) * _truesize_bytes(point))


def _endless_buffer_bytes(connections: int) -> int:
    """Compute the least SO_SNDBUF of each endless connection."""
    share = LEAST_SEND_BUFFERS_BYTES // connections
    return max(SMALLEST_SEND_BUFFER_BYTES, min(LEAST_SEND_BUFFER_BYTES, share))


def receive_buffers(point: Point) -> dict[str, int | None]:
    """Compute SO_RCVBUF of each host's sinks; None: the kernel tunes the buffer."""
    chosen = _chosen_receive_buffer_bytes(point)
    stacks = {host: point.experiment.stack_of(host) for host in point.graph.hosts}
    return {
        host: stack.receive_buffer_bytes or (None if stack.is_linux else chosen)
        for host, stack in stacks.items()
    }


def _chosen_receive_buffer_bytes(point: Point) -> int:
    """Compute SO_RCVBUF: for a window of twice the path's capacity, or a constant window.

    The kernel offers at least as many bytes as SO_RCVBUF has. Slow start sends a second window
    before it learns of losses in the first.
    """
    packets = [connection.window_packets or 0 for connection in point.connections]
    packets += [_path_packets(point, path) for path in _open_paths(point)]
    needed = 2 * max(packets, default=0) * point.experiment.stack.mtu_bytes
    return min(max(LEAST_RECEIVE_BUFFER_BYTES, needed), MOST_RECEIVE_BUFFER_BYTES)


def most_buffer_bytes(point: Point) -> int | None:
    """Return the limit of each buffer, including those that the kernel tunes; None: the kernel's.

    It is the kernel's if no host sets a buffer.
    """
    given = [buffer for buffer in receive_buffers(point).values() if buffer]
    return max(2 * max(given), 2 * LEAST_RECEIVE_BUFFER_BYTES) if given else None


def buffers_mib(point: Point) -> int:
    """Compute the memory of all buffers of a guest, MiB.

    They hold the data that sources have written, and the kernel's overhead: twice what a path
    holds.
    """
    written = sum(2 * send_buffer_bytes(point, c) for c in point.connections)
    most, added = most_buffer_bytes(point) or 2 * LEAST_RECEIVE_BUFFER_BYTES, 0
    endless = _endless_buffer_bytes(max(len(point.connections), 1))
    for path, flows in _open_paths(point).items():
        held = 2 * _path_packets(point, path) * _truesize_bytes(point)
        added += max(min(held, flows * most) - flows * 2 * endless, 0)
    return (written + added) >> 20


def _open_paths(point: Point) -> Counter[Path]:
    """Count the connections on each path whose windows only the path limits."""
    if point.experiment.stack.receive_window_packets:
        return Counter()
    return Counter((c.directions, c.ack_directions) for c in point.connections if not _is_known(c))


def _path_packets(point: Point, path: Path) -> int:
    """Estimate the packets on a path with full queues.

    These are the data in queues, and the data that their slowest link sends in a round trip. ACKs,
    too, wait in full queues: behind data, or behind ACKs if no data passes there.
    """
    directions, stack = point.profile.directions, point.experiment.stack
    placed = {queue.name: directions[queue.direction] for queue in point.graph.placed_queues}
    data, acks = path
    loaded = {name for each in point.connections for name in each.directions}
    loaded |= {name for each in point.datagrams for name in each.directions}
    wait_us = sum(each.delay_ns for each in directions.values()) / 1e3
    for name in acks:
        is_loaded = name in loaded or point.experiment.programs
        packet_bytes = stack.mtu_bytes if is_loaded else stack.header_bytes(6)
        wait_us += placed[name].queue_packets * packet_bytes * 8 / placed[name].start_mbit
    mbit = min(placed[name].most_mbit for name in data)
    sent = math.ceil(mbit * wait_us / (8 * stack.mtu_bytes))
    return sent + sum(placed[name].queue_packets for name in data)


def _is_known(connection: Connection) -> bool:
    """Tell whether a bound of a connection's window is known."""
    return bool(connection.window_packets or connection.alpha_packets)


def _truesize_bytes(point: Point) -> int:
    """Return the memory of a segment: the next power of two, and a page for headers."""
    return (1 << (point.experiment.stack.mtu_bytes + 320 - 1).bit_length()) + 4096


def _known_packets(point: Point, connection: Connection) -> int:
    """Bound a connection's window, in packets; 0 if not known.

    Known bounds are fixed windows and FAST's: a flow of FAST has in flight at most its direction's
    packets of one round trip without queues, and in queues at most the sum of all flows' alphas.
    """
    if connection.alpha_packets is None:
        return connection.window_packets or 0
    data = point.profile.directions[connection.direction]
    delay_ns = sum(each.delay_ns for each in point.profile.directions.values())
    packet_bit = point.experiment.stack.mtu_bytes * 8
    alphas = sum(c.alpha_packets or 0 for c in point.connections)
    return alphas + math.ceil(data.most_mbit * delay_ns / 1e3 / packet_bit)
