"""UDP flows between hosts; their packets leave at times from the experiment alone."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Literal

from pydantic import Field

from twoway.contract.model import Model, Name, NonNegative, Positive
from twoway.contract.network import IpVersion, mean_interval_ns, whole_ns
from twoway.description.draws import BY_DEFAULT, Draw
from twoway.description.traffic.film import MOST_FRAMES, frames_within, relative_sizes

# The most packets of all UDP flows together: 4 GB in the captures of a two_node.
_MOST_PACKETS = 10_000_000
_Mean = Annotated[float, Field(ge=1e-6, le=1e6)]


class OnOff(Model):
    """Times of sending and of silence, both exponential; the first is a time of sending."""

    mean_on_s: _Mean = Field(description="mean time of sending")
    mean_off_s: _Mean = Field(description="mean time of silence")


class Frames(Model):
    """Frames of an MPEG-like video, as a TCP flow's `film` has them, at equal intervals."""

    frames_per_s: Annotated[float, Field(ge=0.001, le=100_000)] = Field(description="frame rate")


# Headers of IP and UDP, and the payload that holds the datagram's number.
UDP_HEADER_BYTES: Mapping[IpVersion, int] = {4: 28, 6: 48}
LEAST_PACKET_BYTES = {ip: size + 8 for ip, size in UDP_HEADER_BYTES.items()}


class Datagrams(Model):
    """UDP packets of one size from one host to another, without any control of their rate."""

    name: Name = Field(description="as it appears in metrics")
    from_: str = Field(alias="from", description="host that sends")
    to: str = Field(description="host that receives")
    packet_bytes: Annotated[int, Field(ge=LEAST_PACKET_BYTES[4], le=65535)] = Field(
        default=1000, description="size of an IP packet, headers (28 bytes, in IPv6 48) included"
    )
    ip: IpVersion | None = Field(default=None, description="version of IP; by default stack.ip")
    rate_mbit: Annotated[float, Field(ge=1e-6, le=10_000)] = Field(
        description="mean rate of the IP packets while it sends, in Mbit/s"
    )
    arrivals: Literal["constant", "poisson"] = Field(
        default="constant",
        description="when packets leave: at equal intervals, or as a Poisson process",
    )
    on_off: OnOff | None = Field(default=None, description="pauses; none by default")
    film: Frames | None = Field(
        default=None,
        description="frames of a video, whose packets leave at once, instead of single packets",
    )
    seed: Draw = Field(
        default=None,
        description=f"seed of the times, if they are random, and of a film's frames; {BY_DEFAULT}",
    )
    dscp: Annotated[int, Field(ge=0, le=63)] = Field(
        default=0, description="DSCP of the packets, such as 46 for EF"
    )
    start_s: NonNegative = Field(default=0, description="start, after the traffic's start")
    stop_s: Positive | None = Field(
        default=None, description="end, after the traffic's start; by default the end of traffic"
    )

    def frame_packets(self, seed: int, seconds: float) -> list[int]:
        """Compute the number of packets of each frame of a film, whose mean rate is `rate_mbit`."""
        assert self.film is not None
        sizes = relative_sizes(seed, self.film.frames_per_s, seconds)
        sent = [0.0, *accumulate(sizes)]
        bits = self.rate_mbit * 1e6 * len(sizes) / self.film.frames_per_s
        scale = bits / (self.packet_bytes * 8) / sent[-1]
        return [round(after * scale) - round(before * scale) for before, after in pairwise(sent)]


def datagram_problems(
    datagrams: Sequence[Datagrams], duration_s: float, mtu_bytes: int, ip: IpVersion
) -> list[str]:
    """List contradictions in UDP flows, each after its field."""
    problems, packets = [], 0
    for index, each in enumerate(datagrams):
        where, end_s = f"datagrams.{index}", each.stop_s or duration_s
        sending_ns = whole_ns(end_s) - whole_ns(each.start_s)
        interval_ns = mean_interval_ns(each.packet_bytes, each.rate_mbit)
        packets += -(-max(sending_ns, 0) // interval_ns)
        if each.packet_bytes < LEAST_PACKET_BYTES[each.ip or ip]:
            problems.append(
                f"{where}.packet_bytes: must be at least {LEAST_PACKET_BYTES[each.ip or ip]} in "
                f"IPv{each.ip or ip}, got {each.packet_bytes}"
            )
        if each.packet_bytes > mtu_bytes:
            problems.append(
                f"{where}.packet_bytes: must be at most stack.mtu_bytes ({mtu_bytes}), "
                f"got {each.packet_bytes}"
            )
        if whole_ns(end_s) > whole_ns(duration_s):
            problems.append(
                f"{where}.stop_s: must be at most duration_s ({duration_s:g}), got {end_s:g}"
            )
        if each.film:
            problems += [f"{where}{problem}" for problem in _film_problems(each, sending_ns)]
        if sending_ns <= 0:
            field = "stop_s" if each.stop_s else "duration_s"
            problems.append(
                f"{where}.start_s: must be below {field} ({end_s:g}), got {each.start_s:g}"
            )
    if packets > _MOST_PACKETS:
        problems.append(f"datagrams: {packets} packets together, at most {_MOST_PACKETS}")
    return problems


def _film_problems(flow: Datagrams, sending_ns: int) -> list[str]:
    assert flow.film is not None
    count = frames_within(sending_ns / 1e9, flow.film.frames_per_s)
    problems = []
    if count > MOST_FRAMES:
        problems.append(f".film.frames_per_s: {count} frames, at most {MOST_FRAMES} are sent")
    if flow.arrivals != "constant":
        problems.append(".arrivals: frames of a film leave at equal intervals")
    if flow.on_off:
        problems.append(".on_off: a film has no pauses")
    return problems
