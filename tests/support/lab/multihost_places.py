"""Three hosts for the topology two_node: h1, both routers, h2; two cables."""

from typing import Any

# For each host, as in its line of the inventory.
PLACES: dict[str, dict[str, Any]] = {
    "left": {"twoway_nodes": ["h1"], "twoway_links": {"h1-eth0": "enp1s0"}},
    "middle": {
        "twoway_nodes": ["r1", "r2"],
        "twoway_links": {"r1-eth0": "enp1s0", "r2-eth0": "enp2s0"},
    },
    "right": {"twoway_nodes": ["h2"], "twoway_links": {"h2-eth0": "enp1s0"}},
}
# Host and interface at each end.
CABLES = ((("left", "enp1s0"), ("middle", "enp1s0")), (("middle", "enp2s0"), ("right", "enp1s0")))
