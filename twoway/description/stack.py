"""The TCP stack of an experiment's hosts: the papers', Linux's own, or a mixture."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from twoway.contract.model import Model, Name, NonNegative, text
from twoway.contract.network import IpVersion
from twoway.description import own_setup
from twoway.description.sysctls import Sysctls
from twoway.links.tc_words import Qdisc

MOST_RECEIVE_BUFFER_BYTES = 1 << 29
Preset = Annotated[
    str,
    text(
        r"^(papers|linux(-[0-9]+\.[0-9]+)?)$", "papers, linux, or linux-X.Y with a kernel's version"
    ),
    Field(json_schema_extra={"examples": ["papers", "linux", "linux-6.12"]}),
]
# Modes of `ecn` besides off and on; ECN_MODES has the kernel's numbers (include/net/tcp_ecn.h).
EcnMode = Literal["accept", "accecn", "accecn-in-ecn-out", "accecn-accept"]
ECN_MODES: Mapping[bool | EcnMode, int] = {
    mode: number for number, mode in enumerate((False, True, *get_args(EcnMode)))
}
# Values of fields in presets, where they differ from the defaults of the fields, which are the
# papers'.
_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "linux": {"timestamps": True, "acks": "delayed", "gso_max_segs": 65535, "ecn": None}
}
# Fields that all hosts of an experiment share.
_SHARED = ("ip", "mtu_bytes")


class Stack(Model):
    """The TCP stack's personality: a preset, and fields that override it."""

    preset: Preset = Field(
        default="papers",
        description="`linux`: the kernel's own defaults, none overridden; `linux-6.12`: these of "
        "Linux 6.12, refused on any other kernel; `papers`: the TCP of the papers, in exact and "
        "repeatable form (docs/limits.md, Hosts). The other fields override it; their defaults are "
        "those of `papers`",
    )
    ip: IpVersion = Field(
        default=4,
        description="version of IP; a flow may set its own. Each host has an address of each "
        "version: in IPv6 fd00:: and the 32 bits of the IPv4 address",
    )
    mtu_bytes: Annotated[int, Field(ge=88, le=65535)] = Field(
        default=1500, description="IP packet size limit of every interface"
    )
    timestamps: bool = Field(default=False, description="TCP timestamps (12 bytes a segment)")
    sack: bool = Field(default=True, description="selective acknowledgements")
    acks: Literal["every-segment", "delayed"] = Field(
        default="every-segment",
        description="when the receiver acknowledges: each segment as in the papers, or `delayed` "
        "as Linux. In the preset `papers` ACKs are not compressed or deferred as Linux does",
    )
    ecn: bool | EcnMode | None = Field(
        default=False,
        description="connections ask for ECN: queues may mark what they would drop. `accept`: "
        "accepts ECN that others ask for, and never asks; null, the default in `linux`: the "
        "kernel's own, which is `accept`. From Linux 6.18 on (`kernel: newest`) `accecn`: asks for "
        "AccECN and accepts it; `accecn-in-ecn-out`: accepts AccECN and asks for ECN; "
        "`accecn-accept`: accepts AccECN and never asks",
    )
    tail_loss_probe: bool = Field(  # decisions 0011 and 0012
        default=True,
        description="probe for a lost tail after two round trips; off for the papers' TCP",
    )
    rack: bool = Field(
        default=True,
        description="detect loss by time (RACK) where there is sack; off for the papers' TCP",
    )
    spurious_timeout_detection: bool = Field(
        default=True,
        description="F-RTO: after a timeout, check whether "
        "it was spurious before sending all again; "
        "off for the papers' TCP",
    )
    pacing: bool = Field(
        default=False,
        description="senders spread a window over its round trip instead of sending with each ACK; "
        "`fixed` and `tahoe` cannot",
    )
    gso_max_segs: Annotated[int, Field(ge=1, le=65535)] = Field(  # decision 0023
        default=1,
        description="the most segments that a sender builds as one packet, which the kernel cuts "
        "before it leaves; Linux's own is 65535",
    )
    rto_min_ms: Annotated[int, Field(ge=1, le=120_000)] = Field(
        default=200,
        description="the least that the retransmission timer adds to the round-trip time",
    )
    initial_window_packets: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=10,
        description="the window with which a connection starts, in segments, unless its "
        "congestion control sets another",
    )
    receive_window_packets: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="the largest window that a receiver offers, in full segments; by "
        "default as its "
        "buffer allows",
    )
    receive_buffer_bytes: Annotated[int, Field(ge=65536, le=MOST_RECEIVE_BUFFER_BYTES)] | None = (
        Field(
            default=None,
            description="SO_RCVBUF of sinks, which the kernel doubles; by default 16 MiB, and more "
            "where windows or paths hold more; in `linux` the kernel tunes the buffer",
        )
    )

    sysctls: Sysctls = Field(
        default={},
        description="sysctls of hosts by name, such as net.ipv4.tcp_retries2; they win over the "
        "preset and over other fields",
    )

    def header_bytes(self, ip: IpVersion) -> int:
        """Count the headers of a segment: IP's, TCP's and its options."""
        return (40 if ip == 4 else 60) + (12 if self.timestamps else 0)

    def segment_bytes(self, ip: IpVersion) -> int:
        """Count the payload of a full segment."""
        return self.mtu_bytes - self.header_bytes(ip)

    def receive_window_bytes(self, ip: IpVersion) -> int:
        """Compute the largest window a receiver offers; 0: no limit but its buffer."""
        return (self.receive_window_packets or 0) * self.segment_bytes(ip)

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, given: Any) -> Any:
        """Fill in the values of the preset."""
        if not isinstance(given, dict) or not isinstance(preset := given.get("preset"), str):
            return given
        return {**_PRESETS.get(preset.partition("-")[0], {}), **given}

    @property
    def is_linux(self) -> bool:
        """True if the kernel's own defaults hold where no field overrides them."""
        return self.preset != "papers"

    @property
    def version(self) -> str:
        """The version of Linux whose defaults hold, such as 6.12; empty: the running kernel's."""
        return self.preset.partition("-")[2]


class RouteChange(Model):
    """Another way to a host, from a time on: a handover."""

    to: Name = Field(description="the host that packets are for")
    via: Name = Field(description="the neighbour that gets them")
    at_s: NonNegative = Field(description="time of the change, after the traffic's start")


class RouterSettings(Model):
    """The settings of one router."""

    routes: Annotated[list[RouteChange], Field(max_length=1000)] = Field(
        default=[], description="other ways to hosts, each from a time on, as after a handover"
    )
    sysctls: Sysctls = Field(default={}, description="its sysctls by name")
    qdisc: Qdisc | None = Field(
        default=None,
        description="the qdisc of its interfaces that have no queue or delay of a link: a name, or "
        "{tc: WORDS}; by default the kernel's",
    )
    setup: own_setup.Setup | None = Field(default=None, description=own_setup.DESCRIPTION)


class HostSettings(Model):
    """The settings of one host."""

    stack: Stack = Field(
        default=Stack(),
        description="its stack: a preset of its own, or fields that override the experiment's",
    )
    qdisc: Qdisc | None = Field(
        default=None,
        description="the qdisc of its interface: a name, or {tc: WORDS}; by default pfifo_fast in "
        "`linux`, and a pfifo of 10000 packets in `papers`",
    )
    txqueuelen: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None,
        description="length of its interface's queue, which pfifo_fast and pfifo take as their "
        "limit; by default the device's, 1000",
    )
    gso: bool = Field(
        default=False,
        description="its interface, and those of all routers, take packets of many segments: the "
        "link carries and counts them whole, as captures show; by default the kernel cuts them as "
        "they leave",
    )
    gro: bool = Field(
        default=False,
        description="its interface merges segments that arrive at once, as captures show",
    )
    setup: own_setup.Setup | None = Field(default=None, description=own_setup.DESCRIPTION)


def with_stacks(given: Any) -> Any:
    """Complete the stack of each host in an experiment's document with the experiment's fields."""
    if not isinstance(given, dict) or not isinstance(hosts := given.get("hosts"), dict):
        return given
    shared = given.get("stack")
    if not isinstance(shared, dict):
        shared = shared.model_dump() if isinstance(shared, Stack) else {}
    completed = {host: _with_stack(each, shared) for host, each in hosts.items()}
    return {**given, "hosts": completed}


def _with_stack(given: Any, shared: Mapping[str, Any]) -> Any:
    if not isinstance(given, dict) or not isinstance(own := given.get("stack", {}), dict):
        return given
    inherited = shared
    if "preset" in own:
        inherited = {name: shared[name] for name in (*_SHARED, "sysctls") if name in shared}
    stack = {**inherited, **own}
    both = [each.get("sysctls", {}) for each in (inherited, own)]
    if all(isinstance(each, dict) for each in both):
        stack["sysctls"] = {**both[0], **both[1]}
    return {**given, "stack": stack}


def shared_problems(stack: Stack, hosts: Mapping[str, HostSettings]) -> list[str]:
    """List fields of hosts' stacks that all hosts must share, and that differ."""
    return [
        f"hosts.{host}.stack.{field}: all hosts have stack.{field} ({getattr(stack, field)}), "
        f"got {getattr(each.stack, field)}"
        for host, each in hosts.items()
        for field in _SHARED
        if getattr(each.stack, field) != getattr(stack, field)
    ]
