"""Links, queues, connections and the clock: one description of each, for all stages."""

from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from twoway.contract.model import (
    Count,
    FileName,
    FilePath,
    Model,
    Nanoseconds,
    NonNegative,
    Port,
    Record,
)

# The guest's clock at boot: 2000-01-01 00:00:00 UTC. Traffic starts 30 s later, in virtual
# time, which costs nothing; connections are set up in between, at zero load.
BOOT_NS = 946_684_800_000_000_000
READY_NS = BOOT_NS + 8_000_000_000
CONNECT_NS = BOOT_NS + 10_000_000_000
START_NS = BOOT_NS + 30_000_000_000
# From the end of traffic to the end of the captures: tcpdump's ring may keep a block for 1 s.
SETTLE_NS = 3_000_000_000
# The longest time that a change of links during the traffic may take: one command per node, of some
# 15 us.
CHANGE_NS = 1_000_000

# A delay in ns: at most 116 days, which is longer than any experiment.
Duration = Annotated[int, Field(ge=0, le=10**16)]

IpVersion = Literal[4, 6]
ClockSource = Literal["virtual", "instructions", "host"]
ETHERNET_BYTES = 14


def netstat_file(node: str) -> str:
    """Name the file of a run's folder with a node's counters of TCP."""
    return f"stack/{node}-netstat.txt"


def _ip(text: str) -> str:
    ip_address(text)
    return text


def _prefix(text: str) -> str:
    ip_network(text)
    return text


Address = Annotated[str, AfterValidator(_ip)]
Prefix = Annotated[str, AfterValidator(_prefix)]


def ip_version(address: str) -> IpVersion:
    """Tell the version of IP of an address."""
    return 6 if ":" in address else 4


class Framing(Model):
    """The bytes that a link adds to a frame."""

    overhead_bytes: int = Field(
        default=0,
        ge=-53,  # an ACK's frame has 54 bytes
        le=1024,
        description="added to each frame's size (Ethernet header included) to get its size on "
        "the link; -14 charges the IP packet alone",
    )
    cell_bytes: Annotated[int, Field(ge=0, le=65535)] = Field(
        default=0, description="payload of a link cell (ATM: 48); 0 for none"
    )
    cell_overhead_bytes: Annotated[int, Field(ge=0, le=1024)] = Field(
        default=0, description="header of a link cell (ATM: 5)"
    )

    def link_bytes(self, frame_bytes: Any) -> Any:
        """Compute sizes on the link of frames, Ethernet header included.

        Args:
            frame_bytes: a number or an array.
        """
        size = frame_bytes + self.overhead_bytes
        if not self.cell_bytes:
            return size
        return -(-size // self.cell_bytes) * (self.cell_bytes + self.cell_overhead_bytes)


class Rerouted(Record):
    """Routes of a queue's router, from a time on."""

    at_ns: Nanoseconds = Field(description="time of the change, ns on the plan's clock")
    routes: dict[Prefix, str] = Field(description="as the queue's ways_out")


class Queue(Record, Framing):
    """A bottleneck queue: its place, its link and the taps around it."""

    direction: FileName = Field(description="the queue's name: a direction of the profile")
    link: FileName | None = Field(
        default=None, description="the direction of the profile; null in older runs"
    )
    interface: FileName = Field(description="the router's outgoing interface")
    rate_bit: Annotated[int, Field(ge=0, le=10**15)] = Field(
        description="link rate, bit/s; for a rate that changes "
        "the one at the start of traffic, or a "
        "trace's mean"
    )
    reallocations: FilePath | None = Field(
        default=None,
        description="file with the changes of a DTM channel's slots; null for other queues",
    )
    limit_packets: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        description="drop-tail limit, the packet in service included; of one that changes the "
        "largest"
    )
    limits: tuple[tuple[Nanoseconds, Count], ...] = Field(
        default=(),
        description="the first limit and its changes during the traffic, with times in ns on the "
        "plan's clock; empty for a limit that stays",
    )
    taps_in: tuple[FileName, ...] = Field(
        description="interfaces whose incoming packets may enter the queue"
    )
    ways_out: dict[Prefix, str] | None = Field(
        default=None,
        description="interfaces by destination prefix, of which the longest match decides where "
        "packets leave the queue's router; `lo` for packets to the router; null in older "
        "runs",
    )
    rerouted: tuple[Rerouted, ...] = Field(
        default=(), description="changes of ways_out during the traffic, by time"
    )
    delay_ns: Duration = Field(description="the longest propagation delay behind the queue")
    leaves_at_start: bool = Field(
        default=False,
        description="true if captures show a packet when its transmission begins, not when it ends",
    )
    managed: bool = Field(
        default=False,
        description="true if its manager may drop a packet that it has taken, or send a later one "
        "before it; older runs have it only as leaves_at_start",
    )
    credit_ns: Duration = Field(
        default=0, description="the most by which a packet may leave too early after an idle time"
    )

    @property
    def node(self) -> str:
        """The router of the queue."""
        return self.interface.rsplit("-", 1)[0]

    @property
    def is_managed(self) -> bool:
        """True if its manager may drop a packet that waits, or send a later one before it."""
        return self.managed or self.leaves_at_start

    def service_ns(self, frame_bytes: Any) -> Any:
        """Compute transmission times, cut to whole ns as netem does.

        netem counts rates in whole bytes/s, and at least one.
        """
        return self.link_bytes(frame_bytes) * 1_000_000_000 // max(self.rate_bit // 8, 1)


def whole_ns(seconds: float) -> int:
    """Round a time to whole ns: limits on times are checked in them, not in fractions of a s."""
    return round(seconds * 1e9)


def mean_interval_ns(packet_bytes: int, rate_mbit: float) -> int:
    """Compute the mean time between two packets at a rate, ns."""
    return round(packet_bytes * 8e3 / rate_mbit)


class _Sent(Record):
    """Data from one host to another."""

    name: FileName = Field(description="its name in metrics")
    from_: FileName = Field(description="the host that sends data")
    to: FileName = Field(description="the host that receives it")
    source: Address = Field(description="address of the host that sends data")
    destination: Address = Field(description="address of the host that receives it")
    source_port: Port = Field(description="the sender's port")
    port: Port = Field(description="the receiver's port")
    source_interface: FileName = Field(description="the sender's interface, captured")
    sink_interface: FileName = Field(description="the receiver's interface, captured")
    directions: tuple[FileName, ...] = Field(description="the queues that its data pass, in order")


class DatagramFlow(_Sent):
    """A UDP flow from one host to another, with times from the experiment alone."""

    packet_bytes: Count = Field(description="size of its IP packets")
    rate_mbit: NonNegative = Field(description="rate of its packets while it sends")
    poisson: bool = Field(
        description="true if its packets are a Poisson process; otherwise they have equal intervals"
    )
    frames_per_s: NonNegative | None = Field(
        default=None, description="frame rate of its film; null: its packets leave one by one"
    )
    mean_on_s: NonNegative | None = Field(description="mean time of sending; null: it never pauses")
    mean_off_s: NonNegative | None = Field(description="mean time of a pause")
    start_ns: Nanoseconds = Field(description="start, ns on the plan's clock")
    stop_ns: Nanoseconds = Field(description="end, ns on the plan's clock")


class Ended(Record):
    """The end of a program that the experiment names."""

    end_ns: Nanoseconds = Field(description="time of the end, ns on the plan's clock")
    exit_status: Annotated[int, Field(ge=-(2**31), lt=2**31)] = Field(
        description="its exit code; minus the signal's number"
    )


class ProgramRun(Ended):
    """A program that the experiment names, and how it ended."""

    name: FileName = Field(description="its name in metrics")
    host: FileName = Field(description="the host that it ran on")
    command: tuple[str, ...] = Field(description="the program and its arguments")
    start_ns: Nanoseconds = Field(description="start, ns on the plan's clock")
    by_itself: bool = Field(description="true if it ended by itself")
    udp_port: Port | None = Field(default=None, description="the UDP port that it sends from")
    kept: tuple[FilePath, ...] = Field(default=(), description="the files that it left")


class Connection(_Sent):
    """One TCP connection of a flow."""

    ack_directions: tuple[FileName, ...] = Field(
        description="the queues that its ACKs pass, in order"
    )
    direction: FileName = Field(description="of these the slowest at the start of traffic")
    ack_direction: FileName = Field(description="of these the slowest at the start of traffic")
    congestion: str = Field(description="the congestion control")
    congestion_in_kernel: str = Field(description="its name in the kernel, with a parameter")
    window_packets: Count | None = Field(default=None, description="the constant window of `fixed`")
    alpha_packets: Count | None = Field(default=None, description="the alpha of `fast`")
    rate_mbit: NonNegative | None = Field(
        default=None, description="mean rate of its packets; null if only the path limits it"
    )
    transfer_bytes: Count | None = Field(
        default=None, description="payload to send; null if unlimited"
    )
    paced: bool = Field(
        default=False,
        description="true if a kind of traffic or its socket's pacing rate limits its sending",
    )
    connect_ns: Nanoseconds = Field(description="time of its set-up, ns on the plan's clock")
    start_ns: Nanoseconds = Field(description="time of its first data, ns on the plan's clock")
    stop_ns: Nanoseconds | None = Field(
        default=None,
        description="time of its end, ns on the plan's clock; null: the end of traffic",
    )

    @property
    def start_s(self) -> float:
        """Time of its first data after the start of traffic, s."""
        return (self.start_ns - START_NS) / 1e9
