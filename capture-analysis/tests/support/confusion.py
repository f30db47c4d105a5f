"""Compare verdicts with the truth of simulated captures.

    python confusion.py [CAPTURES [SEED]]

Prints docs/how-true.md's table for a number of captures of each kind.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from capture_analysis.facts.facts import Evidence
from capture_analysis.metrics.compression_verdict import verdict_word
from capture_analysis.one_capture.single import measure
from measured_captures import values
from truth_corpus import COMPRESSED, SPACED, SimulatedCapture, corpus

TRUTHS = ("compressed", "a little", "not")
SAYINGS = ("compressed", "not", "bunched", "cannot tell")
# Relative error from which a rate counts as wrong.
WRONG = 0.1


@dataclass(frozen=True)
class Told:
    """The truth on a direction, and the verdict.

    Attributes:
        true: one of TRUTHS.
        said: one of SAYINGS.
        evidence: of its rate.
        error: of its rate, as a share of it; NaN without one.
        tick_ns: of its time stamps; NaN without them.
        stamped: True if runs that its time stamps must show suffice to make it compressed.
    """

    kind: str
    place: str
    true: str
    said: str
    evidence: Evidence
    error: float
    tick_ns: float
    stamped: bool


def truth(share: float) -> str:
    """Return the word for a share of compressed ACKs."""
    return "compressed" if share >= COMPRESSED else "not" if share < SPACED else "a little"


def saying(verdict: float | str | None) -> str:
    """Return the word for a verdict."""
    word = verdict_word(verdict)
    return "not" if word == "spaced" else word


def told(simulated: SimulatedCapture) -> Iterator[Told]:
    """Measure a capture; yield truth and verdict of each direction."""
    measured = measure(simulated.capture)
    for direction, share in simulated.shares.items():
        said = saying(values(measured, direction).compression_verdict)
        evidence = Evidence(int(measured.facts.rate_evidence[direction]))
        error = abs(measured.facts.rate_bit[direction] / simulated.rates_bit[direction] - 1)
        yield Told(
            simulated.kind,
            simulated.place,
            truth(share),
            said,
            evidence,
            float(error),
            float(measured.facts.tick_ns[direction]),
            simulated.stamped[direction] >= COMPRESSED,
        )


def confusion(found: Iterable[Told]) -> Counter[tuple[str, str]]:
    """Count directions by truth and by verdict."""
    return Counter((each.true, each.said) for each in found)


def show(found: Sequence[tuple[str, str, str]]) -> None:
    """Print the matrix of kinds, truths and verdicts, by kind and in total."""
    sys.stdout.write(f"| captures | truth | {' | '.join(SAYINGS)} |\n|---|---|" + "--:|" * 4 + "\n")
    for kind in (*dict.fromkeys(kind for kind, *_ in found), "all"):
        table = Counter((true, said) for each, true, said in found if kind in (each, "all"))
        for true in TRUTHS:
            counts = [table[true, said] for said in SAYINGS]
            if any(counts):
                sys.stdout.write(f"| {kind} | {true} | {' | '.join(map(str, counts))} |\n")


def show_called(name: str, found: Sequence[Told]) -> None:
    """Print how many of some directions are called compressed."""
    called = sum(each.said == "compressed" for each in found)
    sys.stdout.write(f"{name}: {called} of {len(found)} called compressed\n")


def main(captures: int = 20, seed: int = 1) -> None:
    """Print the matrix by kind and in total, the result at each tap, and how good rates are."""
    found = [each for simulated in corpus(captures, seed) for each in told(simulated)]
    show([(each.kind, each.true, each.said) for each in found])
    compressed = [each for each in found if each.true == "compressed"]
    for place in dict.fromkeys(each.place for each in compressed):
        here = [each for each in compressed if each.place == place]
        show_called(place, here)
        longer = [each for each in here if each.stamped]
        show_called("  in runs that were sent over more than two ticks", longer)
        for tick_ns in sorted({each.tick_ns for each in here if each.tick_ns == each.tick_ns}):
            show_called(
                f"  ticks of {tick_ns / 1e6:g} ms", [e for e in here if e.tick_ns == tick_ns]
            )
    for evidence in (Evidence.MEASURED, Evidence.GUESSED):
        errors = np.array([each.error for each in found if each.evidence == evidence])
        sys.stdout.write(f"{len(errors)} rates {evidence}, {(errors > WRONG).sum()} wrong\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
