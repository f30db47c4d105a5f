"""Goodput: new payload over the life of the connection's data.

    goodput   = 8 * (new payload) / (end - begin)
    data_time = end - begin - pauses

Unit Mbit/s. The time begins with the direction's first data, and the first segment's payload is
then left out because its transmission time is, too; or, if these data answer the other end's, with
the other end's first data: the time that the answer takes belongs to it. It ends with the last
data, or, near the data's sender, which may send into a queue faster than the path carries, with the
last ACK of new data. A pause is a time of a second or more with nothing outstanding and an open
window, in which neither end owes the other an answer: the end that opened the connection asks, and
the other answers. Goodput counts it: chunks of data that pauses part would otherwise have the pace
of their bursts. `answer_longest` is the longest time from the other end's last data to the next
data of this direction: of a server, how long it took to answer; of a client, how long it took to
ask again. RFC 2647, 3.17, defines goodput alike. In a run of the testbed it is the payload that
arrived in the steady window over the flow's own sending time in that window.

Data that all came within one round trip have no goodput: their pace is that of a burst, and not of
the path.

Vantage: any. Packets that the capture lost (`unseen`) are missing; data that was sent again before
the tap and lost behind it counts once, whether it arrived or not.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import NEAR, Facts, FloatArray
from capture_analysis.one_capture.from_one import FromOne, Value, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

TOO_FEW = "fewer than two data segments"
ONE_BURST = "all of its data came within one round trip: too short to tell"
NO_ANSWER = "no data that follow the other end's"

GOODPUT = Definition(
    "goodput", "Mbit/s", "payload that was not seen before, over the time from first to last data"
)
PAYLOAD = Definition("payload", "bytes", "payload that was not seen before")
DATA_TIME = Definition("data_time", "s", "time in which data was sent, pauses left out")
PAUSES = Definition(
    "pauses",
    "s",
    "total time of a second or more at once with nothing outstanding, and no answer owed",
)
ANSWER_LONGEST = Definition(
    "answer_longest", "s", "longest time from the other end's last data to the next data"
)


class Goodput(FromOne):
    """Goodput of each direction, and its pauses."""

    title = "Goodput"
    picture = "rates"
    per_direction = (GOODPUT, PAYLOAD, DATA_TIME, PAUSES, ANSWER_LONGEST)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        life_ns, payload = _life_ns(direction, tally), int(tally.new_payload.value_of(direction))
        pause_ns = int(tally.pause_ns.value_of(direction))
        answers = tally.first_ns.value_of(direction ^ 1) < tally.first_ns.value_of(direction)
        late_ns = int(tally.acked_ns.value_of(direction) - tally.last_ns.value_of(direction))
        if life_ns and facts.tap_at[direction] <= NEAR and late_ns > 0:
            life_ns += late_ns
        elif not answers:
            payload -= int(tally.first_new.value_of(direction))
        goodput: Value = 8e3 * payload / life_ns if life_ns else TOO_FEW
        if life_ns < facts.round_trip_ns[direction] and life_ns:
            goodput = ONE_BURST
        answer_ns = tally.answer_ns.value_of(direction)
        return {
            GOODPUT: goodput,
            PAYLOAD: tally.new_payload.value_of(direction),
            DATA_TIME: max(life_ns - pause_ns, 0) / 1e9,
            PAUSES: pause_ns / 1e9,
            ANSWER_LONGEST: answer_ns / 1e9 if answer_ns >= 0 else NO_ANSWER,
        }


def _life_ns(direction: int, tally: Tally) -> int:
    """Return the time of a direction's data, with that until its answer; 0 for a single packet."""
    asked_ns, first_ns = (int(tally.first_ns.value_of(each)) for each in (direction ^ 1, direction))
    life_ns = tally.life_ns(direction)
    return life_ns + max(first_ns - asked_ns, 0) if life_ns else 0


def goodputs_bit(tally: Tally) -> FloatArray:
    """Compute the rate of payload from the first data to the last, bit/s.

    Returns: one for each direction with data from two times on.
    """
    rows = tally.directions()
    life_ns = tally.spans_ns(rows)[0]
    rows, life_ns = rows[life_ns > 0], life_ns[life_ns > 0]
    payload = tally.new_payload.values_of(rows) - tally.first_new.values_of(rows)
    return np.asarray(8e9 * payload / life_ns)


def later_payload(direction: int, tally: Tally) -> int:
    """Return the new payload behind a direction's first segment, bytes."""
    return int(tally.new_payload.value_of(direction) - tally.first_new.value_of(direction))
