"""Sysctls of an experiment's nodes: those of network namespaces in the guest's kernel."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from twoway.contract.model import text
from twoway.messages import suggest

_NAME = r"^net\.[a-z0-9_-]+(\.[A-Za-z0-9_-]+)+$"
SysctlName = Annotated[str, text(_NAME, "a name that begins with net., with dots", most=128)]
_Words = Annotated[
    str, text(r"^[!-~]+( [!-~]+)*$", "of printed letters, one space apart", most=256)
]
Sysctls = Annotated[dict[SysctlName, int | _Words], Field(max_length=100)]

# What tests/support/guest/probe_sysctls.py finds in the guest: names by the least and the largest
# whole number that the kernel takes, [] for other values, null for what cannot be set.
# Settings of the interfaces "default" and "lo" that it lacks have the numbers of "all".
_TABLE = Path(__file__).with_name("sysctls.json")
# Sysctls that a field of the experiment sets.
_OF_FIELDS = {
    "net.ipv4.tcp_timestamps": "stack.timestamps",
    "net.core.default_qdisc": "hosts.HOST.qdisc",
}
# A sysctl whose largest number is the value of another one in the same namespace.
_MOST_IS = {"net.ipv4.tcp_reordering": "net.ipv4.tcp_max_reordering"}
# Sysctls that exist once per kernel; stack.sysctls sets them for all nodes.
OF_KERNEL = frozenset(
    f"net.{name}"
    for name in (
        *("core.rmem_default", "core.rmem_max", "core.wmem_default", "core.wmem_max"),
        *("core.netdev_max_backlog", "core.netdev_budget", "core.netdev_budget_usecs"),
        *("core.dev_weight", "core.dev_weight_rx_bias", "core.dev_weight_tx_bias"),
        *("core.gro_normal_batch", "core.skb_defer_max", "core.max_skb_frags"),
        *("core.high_order_alloc_disable", "core.mem_pcpu_rsv", "core.netdev_tstamp_prequeue"),
        *("ipv4.tcp_mem", "ipv4.udp_mem", "ipv4.tcp_max_orphans", "ipv4.inet_peer_threshold"),
        *("ipv4.inet_peer_minttl", "ipv4.inet_peer_maxttl"),
    )
)
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_INTERFACE = re.compile(r"^(net\.ipv[46])\.(conf|neigh)\.(?!all\.|default\.|lo\.)[^.]+\.")


@cache
def known_sysctls() -> Mapping[str, list[int] | None]:
    """Read the sysctls of a namespace in the guest's kernel, with the numbers that they take."""
    found: dict[str, list[int] | None] = {
        name: json.loads(numbers)
        for numbers, names in json.loads(_TABLE.read_text("utf-8")).items()
        for name in names
    }
    of_all = {name: numbers for name, numbers in found.items() if ".conf.all." in name}
    return found | {
        name.replace(".all.", f".{interface}."): numbers
        for name, numbers in of_all.items()
        for interface in ("default", "lo")
        if name.replace(".all.", f".{interface}.") not in found
    }


def in_order(sysctls: Mapping[str, int | str]) -> dict[str, int | str]:
    """Put a sysctl that bounds another one before it."""
    return dict(sorted(sysctls.items(), key=lambda each: each[0] in _MOST_IS))


def sysctl_problems(
    field: str, sysctls: Mapping[str, int | str], all_of_node: Mapping[str, int | str]
) -> Iterator[str]:
    """List sysctls that the guest's kernel lacks or cannot set, and values that it refuses.

    Args:
        field: the experiment's field that has them.
        sysctls: values by name.
        all_of_node: those and what other fields give the node.
    """
    known = known_sysctls()
    for name, value in sysctls.items():
        where, listed = f"{field}.{name}", _INTERFACE.sub(r"\1.\2.lo.", name)
        if name in _OF_FIELDS:
            yield f"{where}: the field {_OF_FIELDS[name]} sets it"
        elif name in OF_KERNEL:
            if field != "stack.sysctls":
                yield f"{where}: one value holds for the whole kernel: stack.sysctls has it"
        elif listed not in known:
            guess = suggest(listed, known)
            yield f"{where}: no namespace of the guest's kernel has it{guess}"
        elif (numbers := known[listed]) is None:
            yield f"{where}: one value holds for the whole kernel, which nothing can set"
        elif numbers:
            least, most = numbers[0], _most(name, numbers[1], all_of_node)
            if not (_NUMBER.fullmatch(str(value)) and least <= int(value) <= most):
                of = f" ({_MOST_IS[name]})" if name in _MOST_IS else ""
                yield f"{where}: must be a whole number from {least} to {most}{of}, got {value}"


def _most(name: str, most: int, all_of_node: Mapping[str, int | str]) -> int:
    """Return the largest number that the kernel takes for a sysctl of a node."""
    bound = str(all_of_node.get(_MOST_IS.get(name, ""), most))
    return int(bound) if _NUMBER.fullmatch(bound) else most
