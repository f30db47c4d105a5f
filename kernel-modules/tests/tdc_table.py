"""The cases of tdc/*.yml as the kernel's tdc reads them: `python tdc_table.py dtm > dtm.json`.

A row of a table has:

    case: its id and its name
    before: commands that follow those that make $DUMMY
    run: the command under test
    refused: a pattern of the command's error; tc exits with 2 for the kernel's error, 1 for its own
    shows: a pattern of the output of `tc qdisc show dev $DUMMY`, found once
    json: the values in the output of `tc -s -j qdisc show dev $DUMMY`
    kind: a category

One of `refused`, `shows` and `json` is there. A row may set any field of tdc by its own name.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

UP = ("$IP link add dev $DUMMY type dummy", "$IP link set dev $DUMMY up")
DOWN = ("$IP link del dev $DUMMY",)
SHOW = "qdisc show dev $DUMMY"

Fields = dict[str, Any]


def read_table(qdisc: str) -> list[Fields]:
    """Return the cases of a qdisc's table as tdc reads them."""
    path = Path(__file__).parent / f"tdc/{qdisc}.yml"
    return [expand(qdisc, row) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


def expand(qdisc: str, row: Fields) -> Fields:
    """Return a row of a qdisc's table as tdc reads it."""
    own = dict(row)
    number, _, name = own.pop("case").partition(" ")
    run, refused, shown = own.pop("run"), own.pop("refused", None), own.pop("shows", None)
    kind = "refusal" if refused else own.pop("kind", None)
    case = {
        "id": number,
        "name": name,
        "category": ["qdisc", qdisc, *([kind] if kind else [])],
        "setup": [*UP, *own.pop("before", ())],
        "cmdUnderTest": f"{run} 2> said" if refused else run,
        "expExitCode": "0" if not refused else "2" if refused.startswith("^Error: ") else "1",
    }
    if "json" in own:
        case |= {"verifyCmd": f"$TC -s -j {SHOW}", "matchJSON": own.pop("json")}
    else:
        verify = "cat said" if refused else f"$TC {SHOW}"
        case |= {"verifyCmd": verify, "matchPattern": refused or shown, "matchCount": "1"}
    return {**case, "teardown": [*DOWN], **own}


if __name__ == "__main__":
    json.dump(read_table(sys.argv[1]), sys.stdout, indent=4)
