"""Answers: the time from the other end's data to the data that answer them.

An end that hears data and then sends some has answered; the time between is its application's, and,
if the tap is elsewhere, the path's from the tap to this end and back. Time to the first byte, at a
client, is the server's first answer with that path; at the server it is the server's own. If the
tap's place and the round trip are known, the path's part is subtracted:

    answers         = number of times that this end's data follow the other's
    first_answer    = time to the first byte of the first answer, as the tap sees it
    answer_own      = the same without the path to this end: the time that its application took
    answer_mean     = mean over all answers, as the tap sees them
    answer_longest_own = the longest without the path

Units: 1 and s. A server's answers are think times; a client's are its own, between an answer and
its next question. Data that both ends send at the same time make answers that are none.

Vantage: any; own times need the tap's place.
"""

import numpy as np

from capture_analysis.definition import Definition
from capture_analysis.facts.facts import Facts
from capture_analysis.one_capture.from_one import FromOne, Values
from capture_analysis.one_capture.tally import Tally
from capture_analysis.overriding import override

NO_ANSWER = "no data that follow the other end's"
UNKNOWN_PATH = "the capture's place on the path, or its round trip, is not known"

ANSWERS = Definition("answers", "1", "times that this end's data follow the other's")
FIRST_ANSWER = Definition(
    "first_answer", "s", "time to the first byte of the first answer, at the tap"
)
ANSWER_OWN = Definition("answer_own", "s", "the same without the path between tap and this end")
ANSWER_MEAN = Definition("answer_mean", "s", "mean time to the first byte of an answer, at the tap")
ANSWER_LONGEST_OWN = Definition(
    "answer_longest_own", "s", "longest time to an answer, without the path to this end"
)


class Answers(FromOne):
    """Think times and time to first byte of each direction."""

    title = "Think times and time to first byte"
    per_direction = (ANSWERS, FIRST_ANSWER, ANSWER_OWN, ANSWER_MEAN, ANSWER_LONGEST_OWN)

    @override
    def of_direction(self, direction: int, tally: Tally, facts: Facts) -> Values:
        found = tally.symptoms(direction)
        if not found.answers:
            return {ANSWERS: 0} | dict.fromkeys(self.per_direction[1:], NO_ANSWER)
        path_ns = float(facts.round_trip_ns[direction] * facts.tap_at[direction])
        own = [
            UNKNOWN_PATH if np.isnan(path_ns) else max(each_ns - path_ns, 0) / 1e9
            for each_ns in (found.first_ns, found.longest_ns)
        ]
        return {
            ANSWERS: found.answers,
            FIRST_ANSWER: found.first_ns / 1e9,
            ANSWER_OWN: own[0],
            ANSWER_MEAN: found.answered_ns / found.answers / 1e9,
            ANSWER_LONGEST_OWN: own[1],
        }
