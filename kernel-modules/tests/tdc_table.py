"""The cases of tdc/*.yml as the kernel's tdc reads them: `python tdc_table.py dtm > dtm.json`.

A row of a table has:

    case: its id and its name
    pool: the slots of a pool named bus, which is made first
    others: devices that are made, each with a queue on medium 7
    before: commands that follow those that make $DUMMY
    add: the options of a qdisc that is made at $DUMMY's root; `change`: those of a change to it
    classes: instead, those of qdiscs 11:, 12: and so on in the classes of a prio 9:
    run: the command under test, if it is not the last of these
    refused: a pattern of the command's error; tc exits with 2 for the kernel's error, 1 for its own
    shows: a pattern of the output of `tc qdisc show dev $DUMMY`, found once
    json: the values in the output of `tc -s -j qdisc show dev $DUMMY`
    options: instead, those of the last qdisc that was made; `values`: others of it
    kind: a category; `change` if the row has that field

One of `refused`, `shows`, `json`, `options` and `values` is there. A row may set fields of tdc,
too.

Most rows are a list under their id and name: `pool`, if it is a number; the options of `add`, or
those of `add` and of `change`; and `options`, or these and `values`, or the error, as a sentence or
a pattern.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

UP = ("$IP link add dev $DUMMY type dummy", "$IP link set dev $DUMMY up")
DOWN = ("$IP link del dev $DUMMY",)
SHOW = "qdisc show dev $DUMMY"
ROOT = "dev $DUMMY root handle 1:"
OTHER = f"{ROOT} medium number 7 rate 8Mbit gap 100us turn 4"

Fields = dict[str, Any]


def read_table(qdisc: str) -> list[Fields]:
    """Return the cases of a qdisc's table as tdc reads them."""
    path = Path(__file__).parent / f"tdc/{qdisc}.yml"
    return [expand(qdisc, row) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]


def expand(qdisc: str, row: Fields) -> Fields:
    """Return a row of a qdisc's table as tdc reads it."""
    own = dict(row) if "case" in row else _of_list(qdisc, *next(iter(row.items())))
    number, _, name = own.pop("case").partition(" ")
    made: list[str] = []
    teardown, handle = [*DOWN], "1:"
    if "pool" in own:
        made.append(f"$DTM pool add bus slots {own.pop('pool')}")
        teardown.append("$DTM pool del bus")
    for device in own.pop("others", ()):
        made += [words.replace("$DUMMY", device) for words in (*UP, f"$TC qdisc add {OTHER}")]
        teardown.insert(0, f"$IP link del dev {device}")
    made += own.pop("before", ())
    if "add" in own:
        made.append(f"$TC qdisc add {ROOT} {qdisc} {own.pop('add')}".strip())
    if "change" in own:
        own.setdefault("kind", "change")
        made.append(f"$TC qdisc change {ROOT} {qdisc} {own.pop('change')}".strip())
    if "classes" in own:
        own.setdefault("kind", "nested")
        made.append("$TC qdisc add dev $DUMMY root handle 9: prio bands 3")
        for at, options in enumerate(own.pop("classes"), 1):
            handle = f"1{at}:"
            made.append(f"$TC qdisc add dev $DUMMY parent 9:{at} handle {handle} {qdisc} {options}")
    if own.keys() & {"options", "values"}:
        options = {"options": own.pop("options")} if "options" in own else {}
        own["json"] = [{"kind": qdisc, "handle": handle, **options, **own.pop("values", {})}]
    run = own.pop("run") if "run" in own else made.pop()
    refused, shown = own.pop("refused", None), own.pop("shows", None)
    kind = own.pop("kind", None)
    kind = "refusal" if refused else kind
    case = {
        "id": number,
        "name": name,
        "category": ["qdisc", qdisc, *([kind] if kind else [])],
        "setup": [*UP, *made],
        "cmdUnderTest": f"{run} 2> said" if refused else run,
        "expExitCode": "0" if not refused else "2" if refused.startswith("^Error: ") else "1",
    }
    if "json" in own:
        one = f" handle {own['json'][0]['handle']}" if kind == "nested" else ""
        case |= {"verifyCmd": f"$TC -s -j {SHOW}{one}", "matchJSON": own.pop("json")}
    else:
        verify = "cat said" if refused else f"$TC {SHOW}"
        case |= {"verifyCmd": verify, "matchPattern": refused or shown, "matchCount": "1"}
    return {**case, "teardown": teardown, **own}


def _of_list(qdisc: str, case: str, said: list[Any]) -> Fields:
    """Return the row that a list stands for."""
    row: Fields = {"case": case}
    if isinstance(said[0], int):
        row["pool"], *said = said
    words = [each for each in said if isinstance(each, str)]
    answers = said[len(words) :]
    error = "" if answers else words.pop()
    row |= zip(("add", "change"), words, strict=False)
    if answers:
        return row | dict(zip(("options", "values"), answers, strict=False))
    if not error.startswith("^"):
        text = error.replace(".", r"\.")
        error = f"^{text}$" if error.startswith(f"{qdisc}: ") else rf"^Error: {text}\.$"
    return row | {"refused": error}


if __name__ == "__main__":
    json.dump(read_table(sys.argv[1]), sys.stdout, indent=4)
