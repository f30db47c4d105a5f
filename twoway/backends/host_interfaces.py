"""Network interfaces that a multi-host run lends to its nodes.

A node is a network namespace with a name, so that the namespace and the interfaces lent to it
outlive any process. An interface loses its addresses and queues when it is moved; its other
settings are noted before the run and restored after it.
"""

import json
import os
import subprocess
from typing import Any

from twoway.errors import RunError


def namespace_name(node: str) -> str:
    """Return the name of a node's namespace, as `ip netns` lists it."""
    return f"twoway-{node}"


def describe_link(interface: str) -> dict[str, Any]:
    """Read an interface's settings, for give_back().

    Raises: RunError if the interface does not exist, or is in use: this machine may be reached
        through it.
    """
    shown = _ip("-j", "-d", "address", "show", "dev", interface)
    (link,) = json.loads(shown)
    uses = [f"has the address {a['local']}" for a in link["addr_info"] if a["scope"] != "link"]
    uses += [f"is part of {link['master']}"] if "master" in link else []
    if uses:
        raise RunError(
            f"{interface} {' and '.join(uses)}",
            "name in twoway_links an interface that nothing else uses: a run needs it for itself",
        )
    said = _call("ethtool", "--json", "-k", interface)
    (features,) = json.loads(said)
    return {
        "interface": interface,
        "settings": [
            *("address", link["address"], "mtu", str(link["mtu"])),
            *("gso_max_segs", str(link["gso_max_segs"]), "up" if "UP" in link["flags"] else "down"),
        ],
        "features": [
            word
            for name, feature in features.items()
            if name != "ifname" and not feature["fixed"]
            for word in (name, "on" if feature["active"] else "off")
        ],
    }


def lend(interface: str, name: str) -> None:
    """Move an interface into its node's namespace, with its name in the plan, "NODE-ethN"."""
    _ip("link", "set", "dev", interface, "down")
    _ip("link", "set", "dev", interface, "name", name, "netns", namespace_name(node_of(name)))


def node_of(interface: str) -> str:
    """Return the node of a plan's interface: NODE of "NODE-ethN"."""
    return interface.rsplit("-", 1)[0]


def give_back(name: str, was: dict[str, Any]) -> None:
    """Undo lend(): move an interface back to this machine, and restore what describe_link() told.

    An interface that lend() has not moved stays where it is.
    """
    there = ["-n", namespace_name(node_of(name))]
    if _has(*there, name):
        here = str(os.getpid())
        _ip(*there, "link", "set", "dev", name, "down")
        _ip(*there, "link", "set", "dev", name, "name", was["interface"], "netns", here)
    if _has(was["interface"]):
        _ip("link", "set", "dev", was["interface"], *was["settings"])
        if was["features"]:
            _call("ethtool", "-K", was["interface"], *was["features"])


def _has(*where: str) -> bool:
    *options, name = where
    argv = ["ip", *options, "link", "show", "dev", name]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def add_namespace(node: str) -> None:
    """Make a node's network namespace."""
    _ip("netns", "add", namespace_name(node))


def remove_namespace(node: str) -> None:
    """Remove a node's network namespace with everything in it."""
    subprocess.run(
        ["ip", "netns", "delete", namespace_name(node)], capture_output=True, check=False
    )


def _ip(*words: str) -> str:
    return _call("ip", *words)


def _call(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunError(f"{' '.join(argv)}: {' '.join(done.stderr.split())}")
    return done.stdout
