"""A film: frames of an MPEG-like video, from a formula and a seed.

Groups of twelve frames I B B P B B P B B P B B, with sizes in the ratio 6 (I) to 2 (P) to 1 (B), in
scenes of four groups on average; the frames of a scene are larger by 2^u, u uniform in -1..1. Sizes
are scaled to the mean rate and rounded. Over long films the coefficient of variation is 0.97, and
the largest frames are 6.7 times the mean. The frames are part of the plan (decision 0026).
Here they travel over TCP; `film` of `datagrams` sends them over UDP (decision 0027).
"""

import itertools
import random
from collections.abc import Iterator
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from twoway.contract.model import Model
from twoway.contract.network import whole_ns
from twoway.description.draws import BY_DEFAULT, Draw
from twoway.description.traffic.traffic import Span, Traffic

_GROUP = "IBBPBBPBBPBB"
_RELATIVE_SIZE = {"I": 6, "P": 2, "B": 1}
_NEW_SCENE = 1 / 4  # probability that a group begins a scene
# The most bytes that the program `stream` writes at once.
_MOST_BYTES = 1 << 20
# The most frames in a program's command line: an argument has at most 128 KiB.
MOST_FRAMES = 15_000


class Film(Model, Traffic):
    """Frames at equal intervals, each written at once.

    The first frame is at the flow's `start_s`.
    """

    FIELD: ClassVar = "film"
    DESCRIPTION: ClassVar = "frames of a video instead of unlimited data"

    mean_mbit: Annotated[float, Field(gt=0, le=10_000)] = Field(
        description="mean rate of the frames, without headers, in Mbit/s"
    )
    frames_per_s: Annotated[float, Field(ge=0.001, le=100_000)] = Field(description="frame rate")
    seed: Draw = Field(default=None, description=f"which film it is; {BY_DEFAULT}")

    @property
    @override
    def given_seed(self) -> int | None:
        return self.seed

    @override
    def problems(self, span: Span) -> list[str]:
        """Refuse more frames than `stream` accepts, or frames larger than it writes at once."""
        count = frames_within(span.seconds, self.frames_per_s)
        if count > MOST_FRAMES:
            return [f".frames_per_s: {count} frames, at most {MOST_FRAMES} are sent"]
        largest = max(self.frame_bytes(span))
        if largest <= _MOST_BYTES:
            return []
        return [
            f".mean_mbit: the largest frame has {largest} bytes, at most {_MOST_BYTES} are sent"
        ]

    @override
    def source_options(self, span: Span) -> list[str]:
        """Return the options that write one frame in each interval."""
        sizes = ",".join(map(str, self.frame_bytes(span)))
        return [f"interval {round(1e9 / self.frames_per_s)}", f"sizes {sizes}"]

    @override
    def packet_mbit(self, span: Span) -> float:
        """Compute the mean rate of the frames' packets, headers included."""
        frames, header_bytes = self.frame_bytes(span), span.mtu_bytes - span.segment_bytes
        sent = sum(size + -(-size // span.segment_bytes) * header_bytes for size in frames)
        return sent * 8 / 1e6 / (len(frames) / self.frames_per_s)

    def frame_bytes(self, span: Span) -> list[int]:
        """Compute the sizes of the frames of a film of this length, at least one."""
        sizes = relative_sizes(span.seed, self.frames_per_s, span.seconds)
        total_bytes = self.mean_mbit * 1e6 / 8 * len(sizes) / self.frames_per_s
        scale = total_bytes / sum(sizes)
        return [max(round(size * scale), 1) for size in sizes]


def frames_within(seconds: float, frames_per_s: float) -> int:
    """Count the whole intervals between frames in a time."""
    return int(whole_ns(seconds) * frames_per_s / 1e9)


def relative_sizes(seed: int, frames_per_s: float, seconds: float) -> list[float]:
    """Draw the sizes of the frames of a film of this length, at least one, in any unit."""
    count = max(frames_within(seconds, frames_per_s), 1)
    source = random.Random(seed)  # noqa: S311 - a repeatable one
    return list(itertools.islice(_endless_sizes(source), count))


def _endless_sizes(source: random.Random) -> Iterator[float]:
    scene = 1.0
    for number in itertools.count():
        if number == 0 or source.random() < _NEW_SCENE:
            scene = 2 ** (2 * source.random() - 1)
        for kind in _GROUP:
            yield scene * _RELATIVE_SIZE[kind]
