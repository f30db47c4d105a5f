"""Pure ACKs by kind, and their number for each data segment.

    ack_to_data = pure ACKs / data segments

Unit 1. Duplicates are those of RFC 5681, section 2, and ACKs with a SACK block. ACKs that are
neither of new data nor duplicates acknowledge nothing new: they are window updates, reordered, or
answers to probes. ACKs that data segments carry do not count. The ratio is 1 with an ACK for each
segment, about 0.5 with delayed ACKs, less if ACKs are thinned or an offload merges segments before
the tap.

Vantage: any; ACKs that were lost before the tap are missing.
"""

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override
from capture_analysis.tracking import Kind

ACKS = Definition("acks", "1", "pure ACKs at the tap")
ACKS_DUPLICATE = Definition(
    "acks_duplicate", "1", "duplicate ACKs at the tap, as in RFC 5681 or with a SACK block"
)
ACKS_WINDOW_UPDATE = Definition(
    "acks_window_update", "1", "pure ACKs at the tap that only change the window"
)
ACKS_OLD = Definition("acks_old", "1", "pure ACKs at the tap that were reordered or answer probes")
ACK_TO_DATA = Definition("ack_to_data", "1", "ratio of pure ACKs to data segments")


class Acks(FromOne):
    """Counts of each direction's pure ACKs by kind."""

    title = "ACKs by kind"
    picture = "ack-spacing"
    per_direction = (ACKS, ACKS_DUPLICATE, ACKS_WINDOW_UPDATE, ACKS_OLD, ACK_TO_DATA)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        acks, segments = tally.acks(direction), tally.segments(direction)
        return {
            ACKS: acks,
            ACKS_DUPLICATE: tally.count(direction, Kind.DUPLICATE_ACK),
            ACKS_WINDOW_UPDATE: tally.count(direction, Kind.WINDOW_UPDATE),
            ACKS_OLD: tally.count(direction, Kind.OLD_ACK),
            ACK_TO_DATA: acks / segments if segments else "no data",
        }
