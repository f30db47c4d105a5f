"""The numbers of include/uapi/linux/pkt_dtm.h, and the sentences of each qdisc's refusals."""

import re
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2]
HEADER = MODULES / "include/uapi/linux/pkt_dtm.h"
# Files with each qdisc's answers to requests.
REFUSING = {"dtm": "dtm/*.c", "medium": "medium*.c", "timetable": "timetable*.c"}


def uapi_numbers() -> dict[str, int]:
    """Return every enumerator of the header by its full name."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = {}
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, re.DOTALL):
        names = [name.strip() for name in body.split(",") if name.strip()]
        found.update({name: number for number, name in enumerate(names)})
    return found


def refusals(qdisc: str = "dtm") -> set[str]:
    """Return every sentence of a module's own refusals."""
    sources = "".join(path.read_text(encoding="utf-8") for path in MODULES.glob(REFUSING[qdisc]))
    return set(re.findall(r'(?:NL_SET_ERR_MSG|twoway_refuse)\w*\([^"]*"([^"]+)"\)', sources))
