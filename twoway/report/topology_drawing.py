"""A drawing of a run's topology: nodes, links and bottlenecks."""

from collections import deque
from html import escape

from twoway.contract.network import Queue
from twoway.links.element import RateShaper
from twoway.manifest import Manifest

_COLUMN, _ROW, _NODE = 190, 64, 44
# In a column with more nodes only the first and the last are drawn, with a gap between them.
_TALLEST = 8


def topology_svg(manifest: Manifest) -> str:
    """Draw an SVG element: nodes in columns, bottlenecks with labels."""
    positions = _positions(manifest)
    width = max(x for x, _ in positions.values()) + 70
    height = max(y for _, y in positions.values()) + 56
    parts = [
        (
            f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="topology" '
            'class="topology" xmlns="http://www.w3.org/2000/svg">'
        )
    ]
    queues = {q.interface: q for q in manifest.queues}
    node_of = {i.name: i.node for i in manifest.interfaces}
    drawn = set()
    for interface in manifest.interfaces:
        link = frozenset((interface.name, interface.peer))
        if link in drawn:
            continue
        drawn.add(link)
        if not all(node_of[name] in positions for name in link):
            continue
        (x1, y1), (x2, y2) = (positions[node_of[name]] for name in sorted(link))
        shaped = [queues[name] for name in sorted(link) if name in queues]
        parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" '
            f'class="{"bottleneck" if shaped else "access"}"/>'
        )
        for row, queue in enumerate(shaped):
            right = x2 > x1 if queue.interface == min(link) else x1 > x2
            said = manifest.profile.directions.get(queue.link or queue.direction)
            label = _label(
                queue,
                said.elements.find(RateShaper) if said else None,
                "\N{RIGHTWARDS ARROW}" if right else "\N{LEFTWARDS ARROW}",
            )
            label += ", half-duplex" if manifest.profile.half_duplex else ""
            y = (y1 + y2) / 2 + (-10 if row == 0 else 20)
            parts.append(f'<text x="{(x1 + x2) / 2}" y="{y}" class="label">{escape(label)}</text>')
    for node, (x, y) in positions.items():
        if node not in (*manifest.nodes.hosts, *manifest.nodes.routers):
            parts.append(f'<text x="{x}" y="{y + 5}" class="node">{escape(node)}</text>')
            continue
        kind = "host" if node in manifest.nodes.hosts else "router"
        parts.append(
            f'<rect x="{x - _NODE / 2}" y="{y - 16}" width="{_NODE}" height="32" rx="'
            f'{4 if kind == "host" else 16}" class="{kind}"/>'
            f'<text x="{x}" y="{y + 5}" class="node">{escape(node)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _label(queue: Queue, changes: RateShaper | None, arrow: str) -> str:
    rate = f"{queue.rate_bit / 1e6:g} Mbit/s"
    if queue.reallocations:
        rate = f"DTM, {rate}"
    if changes:
        rate += f" {changes.rate_note}"
    delay = queue.delay_ns / 1e6
    return f"{arrow} {rate}, {delay:g} ms, {queue.limit_packets} packets"


def _positions(manifest: Manifest) -> dict[str, tuple[float, float]]:
    """Place nodes in columns by distance from the first router of their connected part.

    Within a column rows are in the order of names.
    """
    neighbours: dict[str, list[str]] = {}
    node_of = {i.name: i.node for i in manifest.interfaces}
    for interface in manifest.interfaces:
        neighbours.setdefault(interface.node, []).append(node_of[interface.peer])
    hosts, routers = manifest.nodes.hosts, manifest.nodes.routers
    column: dict[str, int] = {}
    for start in (*routers, *hosts):
        if start in column:
            continue
        column[start] = 1
        ahead = deque([start])
        while ahead:
            node = ahead.popleft()
            for other in neighbours.get(node, []):
                if other not in column:
                    column[other] = column[node] + (-1 if node == start and other in hosts else 1)
                    ahead.append(other)
    rows: dict[int, list[str]] = {}
    for node in sorted(column):
        rows.setdefault(column[node], []).append(node)
    rows = {number: _with_gap(nodes) for number, nodes in rows.items()}
    tallest = max(len(nodes) for nodes in rows.values())
    widths = sorted(rows)
    # The bottleneck's label needs room, so columns of routers stand further apart.
    x: dict[int, float] = {}
    at = 40.0
    for index, number in enumerate(widths):
        if index:
            both = set(rows[widths[index - 1]] + rows[number])
            at += 2 * _COLUMN if both <= set(routers) else _COLUMN * 0.6
        x[number] = at
    return {
        node: (x[number], 40 + _ROW * (tallest - len(nodes)) / 2 + _ROW * index)
        for number, nodes in rows.items()
        for index, node in enumerate(nodes)
    }


def _with_gap(nodes: list[str]) -> list[str]:
    """Replace the middle of a long column by the number of its nodes."""
    if len(nodes) <= _TALLEST:
        return nodes
    ends = _TALLEST // 2
    left_out = nodes[ends : 1 - ends]
    return [*nodes[:ends], f"{left_out[0]} ... {left_out[-1]}: {len(left_out)}", *nodes[1 - ends :]]
