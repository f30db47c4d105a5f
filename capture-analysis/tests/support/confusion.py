"""Compare verdicts with the truth of simulated captures.

    python confusion.py [CASES [SEED]]

Prints docs/how-true.md's table for so many cases of each kind.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from capture_analysis.metrics.compression_verdict import verdict_word
from capture_analysis.one_capture.facts import Evidence
from capture_analysis.one_capture.single import measure
from measured_captures import values
from truth_corpus import COMPRESSED, SPACED, Case, corpus

TRUTHS = ("compressed", "a little", "not")
SAYINGS = ("compressed", "not", "bunched", "cannot tell")
# A rate this far from the link's is wrong.
WRONG = 0.1


@dataclass(frozen=True)
class Told:
    """What is true of a direction, and what is said of it.

    Attributes:
        true: one of TRUTHS.
        said: one of SAYINGS.
        evidence: of its rate.
        error: of its rate, as a share of it; NaN without one.
    """

    kind: str
    place: str
    true: str
    said: str
    evidence: Evidence
    error: float


def told(case: Case) -> Iterator[Told]:
    """Measure a case's capture."""
    measured = measure(case.capture)
    for direction, share in case.shares.items():
        true = "compressed" if share >= COMPRESSED else "not" if share < SPACED else "a little"
        word = verdict_word(values(measured, direction).compression_verdict)
        said = "not" if word == "spaced" else word
        evidence = Evidence(int(measured.facts.rate_evidence[direction]))
        error = abs(measured.facts.rate_bit[direction] / case.rates_bit[direction] - 1)
        yield Told(case.kind, case.place, true, said, evidence, float(error))


def confusion(found: Iterable[Told]) -> Counter[tuple[str, str]]:
    """Count directions by truth and by what is said."""
    return Counter((each.true, each.said) for each in found)


def main(cases: int = 20, seed: int = 1) -> None:
    """Print the matrix, by kind and in all, and how true the rates are."""
    found = [each for case in corpus(cases, seed) for each in told(case)]
    sys.stdout.write(f"| captures | truth | {' | '.join(SAYINGS)} |\n|---|---|" + "--:|" * 4 + "\n")
    for kind in (*dict.fromkeys(each.kind for each in found), "all"):
        table = confusion(each for each in found if kind in (each.kind, "all"))
        for true in TRUTHS:
            counts = [table[true, said] for said in SAYINGS]
            if any(counts):
                sys.stdout.write(f"| {kind} | {true} | {' | '.join(map(str, counts))} |\n")
    for evidence in (Evidence.MEASURED, Evidence.GUESSED):
        errors = np.array([each.error for each in found if each.evidence == evidence])
        sys.stdout.write(f"{len(errors)} rates {evidence}, {(errors > WRONG).sum()} wrong\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
