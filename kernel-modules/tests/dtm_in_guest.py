"""Runs the cases of dtm/*.yml in the guest, as root, with the real tc; see dtm/README.md.

    python -I dtm_in_guest.py [only=FILE]        # writes /mnt/run/results.json

A case is not over with its command: what was refused must have changed nothing, and what a
channel shows must give the same channel when it is fed back to tc.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import dtm_event_scenarios  # noqa: E402 - python -I leaves the folder out
import dtm_scenarios  # noqa: E402
from dtm_claims import RUN, ClaimError, expect, run  # noqa: E402
from rtnetlink import Handle, Rtnetlink, attribute, u8, u32, u64  # noqa: E402

MODULE = "/mnt/bin/sch_dtm.ko"
SCENARIOS = {**vars(dtm_scenarios), **vars(dtm_event_scenarios)}
VALUES = {"u8": u8, "u32": u32, "s32": u32, "u64": u64}
BITS = {"u8": 8, "u32": 32, "s32": 32, "u64": 64}
NOBODY = 65534

Case = dict[str, Any]


def main() -> int:
    """Run every case; a failure is a result, not an error."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    names = attribute_names()
    # The kernel has arguments of its own to add.
    only = next((a.removeprefix("only=") for a in sys.argv if a.startswith("only=")), "")
    cases = {name: case for name, case in all_cases().items() if name.startswith(only)}
    without = [name for name, case in cases.items() if case.get("module") == "absent"]
    results = {name: judge(cases.pop(name), names) for name in without}
    run(f"insmod {MODULE}")
    for interface in ("d0", "d1"):
        run(f"ip link add {interface} type dummy", f"ip link set {interface} up")
    for name, case in cases.items():
        results[name] = judge(case, names)
    (RUN / "results.json").write_text(json.dumps(results, indent=1))
    return 0


def all_cases() -> dict[str, Case]:
    """Every case by file and name, in the order of the files."""
    return {
        f"{path.stem}: {case['name']}": case
        for path in sorted((HERE / "dtm").glob("*.yml"))
        for case in expand(yaml.safe_load(path.read_text(encoding="utf-8")))
    }


def clear(*interfaces: str) -> None:
    """Back to no qdisc."""
    with Rtnetlink() as route:
        for interface in interfaces:
            route.qdisc("del", interface, options=None, kind=None)


def has_device(kind: str) -> bool:
    """The kernel knows a kind of network device."""
    added = subprocess.run(["ip", "link", "add", "probe", "type", kind], check=False)
    if added.returncode == 0:
        run("ip link del probe")
    return added.returncode == 0


def attribute_names() -> dict[str, int]:
    """Numbers of the attributes of pkt_dtm.h, without TCA_DTM_."""
    header = (HERE.parent / "pkt_dtm.h").read_text(encoding="utf-8")
    found = re.findall(r"^\tTCA_DTM_(\w+),", header, re.MULTILINE)
    return {name: number for number, name in enumerate(found)}


def expand(document: dict[str, Any]) -> list[Case]:
    """The cases of a file; a row of `ranges` is several."""
    cases: list[Case] = list(document.get("cases", []))
    for row in document.get("ranges", []):
        cases += range_cases(row)
    return cases


def range_cases(row: dict[str, Any]) -> list[Case]:
    """Both ends of an option's range, what is beyond them, and values of a wrong size."""
    name, kind, low, high = row["attribute"], row["type"], row["min"], row["max"]
    bits = BITS[kind]
    lowest, highest = (-(1 << 31), (1 << 31) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    beyond = {value for value in (low - 1, high + 1, lowest, highest) if not low <= value <= high}
    others = row.get("with", {})
    cases: list[Case] = [
        {
            "name": f"{name} {value} is refused",
            "netlink": {**others, name: f"{kind} {value}"},
            "errno": row.get("errno", "ERANGE"),
            "extack": row["refusal"],
        }
        for value in sorted(beyond)
        if lowest <= value <= highest
    ]
    cases += [
        {"name": f"{name} {value} is taken", "netlink": {**others, name: f"{kind} {value}"}}
        for value in (low, high)
    ]
    cases += [
        {
            "name": f"{name} of {size} bytes is refused",
            "netlink": {name: "hex " + "01" * size},
            "errno": "EINVAL",
            "extack": "invalid attribute length",
        }
        for size in sorted({0, bits // 8 - 1, bits // 8 + 1})
    ]
    return cases


def judge(case: Case, names: dict[str, int]) -> dict[str, str]:
    """Run a case; {} if it holds, else what does not, or why it could not be tried."""
    missing = [tool for tool in case.get("needs", []) if not shutil.which(tool)]
    if missing:
        return {"skipped": f"{', '.join(missing)}: not on this machine"}
    if "device" in case and not has_device(case["device"]):
        return {"skipped": f"{case['device']}: not in this guest's kernel"}
    try:
        if "scenario" in case:
            SCENARIOS[case["scenario"]](**case.get("arguments", {}))
        elif "netlink" in case:
            try_netlink(case, names)
        else:
            try_command(case)
        run(*case.get("teardown", []))
    except ClaimError as failed:
        return {"failed": str(failed)}
    except Exception:  # noqa: BLE001 - the other cases are to be run
        return {"failed": traceback.format_exc()}
    finally:
        if case.get("module") != "absent":
            clear("d0", "d1")
    return {}


def try_netlink(case: Case, names: dict[str, int]) -> None:
    """Send attributes as they are; compare the answer, and read back what was taken."""
    sent = {
        name: encode(value) for name, value in case["netlink"].items() if not str(name).isdigit()
    }
    options = b"".join(
        attribute(names.get(name, name), encode(value)) for name, value in case["netlink"].items()
    )
    for command in case.get("setup", []):
        run(command)
    with Rtnetlink() as route:
        before = route.show("d0")
        ack = route.qdisc(case.get("verb", "add"), "d0", Handle(1), options=options)
        expect("errno", errno.errorcode.get(ack.errno, 0), case.get("errno", 0))
        expect("extack", ack.message, case.get("extack", ""))
        shown = route.show("d0")
    if ack.errno:
        expect("qdiscs after a refusal", [q.options for q in shown], [q.options for q in before])
        return
    for name, value in sent.items():
        found = shown[0].options.get(names[name])
        # What concerns another allocator, or no pool, is not shown.
        if found is not None or name in ("SLOTS", "LIMIT", "CHANGE"):
            expect(name, found, value)


def encode(value: str) -> bytes:
    """The bytes of "u32 5" or "hex 0500"."""
    kind, _, text = value.partition(" ")
    if kind == "hex":
        return bytes.fromhex(text)
    return VALUES[kind](int(text))


def try_command(case: Case) -> None:
    """Run a command; compare its status, its words, and what tc shows afterwards."""
    for command in case.get("setup", []):
        run(command)
    before = show()
    done = subprocess.run(
        ["bash", "-c", case["command"]],
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY if case.get("user") == "nobody" else None,
    )
    expect("standard error", done.stderr.splitlines(), lines(case.get("error", [])))
    expect("exit status", done.returncode, case.get("exit", 0))
    if done.returncode:
        expect("qdiscs after a refusal", show(), before)
    handle = case.get("handle", "1:")
    found: dict[str, Any] = next((q for q in show() if q["handle"] == handle), {})
    for name, value in case.get("options", {}).items():
        expect(name, found.get("options", {}).get(name), value)
    for name, value in case.get("statistics", {}).items():
        expect(name, found.get(name), value)
    if "text" in case:
        expect("text", text_options(handle), case["text"])
    if not done.returncode and found.get("kind") == "dtm":
        check_symmetry(handle)


def lines(error: str | list[str]) -> list[str]:
    """One line or several."""
    return [error] if isinstance(error, str) else error


def show() -> list[Any]:
    """What `tc -j` says about d0, without the clocks."""
    shown: list[Any] = json.loads(run("tc -s -j qdisc show dev d0"))
    for qdisc in shown:
        for clock in ("age_ns", "slot_seconds", "slot_ns", "last_change_ns"):
            qdisc.pop(clock, None)
    return shown


def text_options(handle: str) -> str:
    """What `tc qdisc show` prints as the options of a dtm."""
    said = run("tc qdisc show dev d0")
    pattern = rf"^qdisc dtm {handle} (?:root refcnt \d+|parent \S+) (.*?) ?$"
    found = re.search(pattern, said, re.MULTILINE)
    if not found:
        raise ClaimError(f"no dtm {handle} in {said!r}")
    return found[1]


def check_symmetry(handle: str) -> None:
    """The options that tc shows, given to a new channel elsewhere, are shown again."""
    text = text_options(handle)
    run(f"tc qdisc replace dev d1 root handle {handle} dtm {text}")
    twin = json.loads(run("tc -j qdisc show dev d1"))[0]["options"]
    again = run("tc qdisc show dev d1").split(" dtm ", 1)[1]
    expect("options fed back", twin, next(q for q in show() if q["handle"] == handle)["options"])
    if text not in again:
        raise ClaimError(f"fed back, {text!r} is shown as {again!r}")


if __name__ == "__main__":
    sys.exit(main())
