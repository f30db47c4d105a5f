"""The numbers of include/uapi/linux/pkt_dtm.h, and the sentences with which sch_dtm refuses."""

import re
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2]
HEADER = MODULES / "include/uapi/linux/pkt_dtm.h"
# Files that answer requests.
REFUSING = ("dtm_options.c", "dtm_link.c", "dtm_netlink.c", "dtm_qdisc.c")


def uapi_numbers() -> dict[str, int]:
    """Every enumerator of the header by its whole name."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = {}
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, re.DOTALL):
        names = [name.strip() for name in body.split(",") if name.strip()]
        found.update({name: number for number, name in enumerate(names)})
    return found


def refusals() -> set[str]:
    """Every sentence of the module's own with which it refuses a request."""
    sources = "".join((MODULES / "dtm" / name).read_text(encoding="utf-8") for name in REFUSING)
    return set(re.findall(r'NL_SET_ERR_MSG\w*\([^"]*"([^"]+)"\)', sources))
