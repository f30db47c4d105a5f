"""The findings of a capture near the data's receiver, in a sentence and in a few words.

It names segments lost before the tap and sent again, and segments that came out of order; delayed
ACKs and a shut window only from a share of NOTABLE on (receiving). A window that only shrinks is
not named: data that wait for a lost segment shrink it, too.
"""

from collections.abc import Iterator

from capture_analysis.one_capture.trouble import Numbers

# Smaller shares are not named: a timer or two at the ends of a transfer reach them.
NOTABLE = 0.01
NOTHING = "nothing"
_NONE = "no segment was lost before the tap or came out of order, and few ACKs were delayed"


def receiver_sentence(values: Numbers) -> str:
    """Say in a sentence what the receiver's side shows; "" if the capture was made elsewhere.

    Args:
        values: the direction's metrics by name; a text, or None, for an undefined one.
    """
    if not _is_seen(values):
        return ""
    said = [sentence for _, sentence in _findings(values)]
    return f"Seen at the receiver: {'; '.join(said) or _NONE}."


def receiver_words(values: Numbers) -> str:
    """Describe the receiver in a table: "lost 12, delayed 40%"; NOTHING, or "-" if not near it."""
    words = [word for word, _ in _findings(values)]
    return (", ".join(words) or NOTHING) if _is_seen(values) else "-"


def _is_seen(values: Numbers) -> bool:
    return isinstance(values.get("repaired_segments"), int | float)


def _findings(values: Numbers) -> Iterator[tuple[str, str]]:
    lost, overtaken = _number(values, "repaired_segments"), _number(values, "reordered_segments")
    delayed, shut = _number(values, "acks_delayed"), _number(values, "window_shut")
    reads = _number(values, "application_reads")
    if lost:
        yield f"lost {lost:.0f}", f"{_count(lost)} lost before the tap and sent again"
    if overtaken:
        yield f"reordered {overtaken:.0f}", f"{_count(overtaken)} overtaken by later ones"
    if delayed >= NOTABLE:
        yield f"delayed {delayed:.0%}", f"{delayed:.1%} of the ACKs were delayed by 10 ms or more"
    if shut >= NOTABLE:
        opened = f", and {reads:,.0f} reads of its application opened it" if reads else ""
        yield f"shut {shut:.0%}", f"its window was shut for {shut:.1%} of the time{opened}"


def _count(segments: float) -> str:
    return f"{segments:,.0f} {'segment was' if segments == 1 else 'segments were'}"


def _number(values: Numbers, name: str) -> float:
    found = values.get(name)
    return float(found) if isinstance(found, int | float) else 0.0
