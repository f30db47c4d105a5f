"""Network interfaces of this machine that the nodes of a bench are lent, and given back.

A node is a network namespace with a name, so that it and what it was lent outlive any process. An
interface that is moved loses its addresses and queues by itself; what else the plan changes of it
is noted before, and put back.
"""

import json
import os
import subprocess
from typing import Any

from twoway.errors import RunError


def namespace_name(node: str) -> str:
    """A node's namespace, as `ip netns` lists it."""
    return f"twoway-{node}"


def describe_link(interface: str) -> dict[str, Any]:
    """What an interface is now, for give_back().

    Raises: RunError if it is not there, or in use: then it may be the one that leads here.
    """
    shown = _ip("-j", "-d", "address", "show", "dev", interface)
    (link,) = json.loads(shown)
    uses = [f"has the address {a['local']}" for a in link["addr_info"] if a["scope"] != "link"]
    uses += [f"is part of {link['master']}"] if "master" in link else []
    if uses:
        raise RunError(
            f"{interface} {' and '.join(uses)}",
            "a bench takes whole interfaces: name one that nothing else uses in twoway_links",
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
    """Move an interface to its node, where it has the name that the plan knows it by."""
    _ip("link", "set", "dev", interface, "down")
    _ip("link", "set", "dev", interface, "name", name, "netns", namespace_name(node_of(name)))


def join(ends: list[str]) -> None:
    """A link between two nodes that are both ours.

    Args:
        ends: two interfaces as the plan has them; what is before "-eth" is the node.
    """
    one, other = (["name", end, "netns", namespace_name(node_of(end))] for end in ends)
    _ip("link", "add", *one, "type", "veth", "peer", *other)


def node_of(interface: str) -> str:
    """The node that an interface of a plan is of."""
    return interface.rsplit("-", 1)[0]


def give_back(name: str, was: dict[str, Any]) -> None:
    """Undo lend(), if it came about.

    Args:
        name: the plan's of an interface.
        was: as describe_link() had it.
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
    """A namespace for a node."""
    _ip("netns", "add", namespace_name(node))


def remove_namespace(node: str) -> None:
    """Remove it, with what is in it."""
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
