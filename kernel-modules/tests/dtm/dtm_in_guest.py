"""Run all cases for sch_dtm in the guest, as root, with the real tc; see README.md.

    python -I dtm_in_guest.py [only=PREFIX]        # writes /mnt/run/results.json

The kernel's own tdc runs the cases of ../tdc, also those of our other qdiscs. The cases of dtm are
then run once more, for checks that tdc does not make: a refused request changes nothing, and the
options that a channel shows change nothing when they are set again, and make an equal channel
elsewhere.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import yaml

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE / "dtm"), str(HERE)]

import dtm_event_scenarios  # noqa: E402 - python -I leaves the folder out
import dtm_interface_scenarios  # noqa: E402
import dtm_scenarios  # noqa: E402
import qdisc_scenarios  # noqa: E402
from claims import RUN, ClaimError, Events, expect, mount_tracing, run  # noqa: E402
from dtm_raw import Raw, raw_cases  # noqa: E402
from rtnetlink import Dtm, Handle, Pool, Rtnetlink  # noqa: E402
from tdc_table import read_table  # noqa: E402

MODULES = Path("/mnt/bin")
SCENARIOS = {
    name: function
    for module in (
        dtm_scenarios,
        dtm_event_scenarios,
        dtm_interface_scenarios,
        qdisc_scenarios,
    )
    for name, function in vars(module).items()
}
# Our other qdiscs, whose cases tdc has all.
OTHERS = ("medium", "timetable")
# The kernel's tdc, copied here by the host.
TDC = RUN / "tools/testing/selftests/tc-testing"

Case = dict[str, Any]
Result = dict[str, str]


def main() -> int:
    """Run every case; a failure is a result, not an error."""
    os.environ["TC_LIB_DIR"] = "/mnt/bin"
    os.environ["PATH"] += ":/mnt/bin"
    # The kernel adds its own arguments.
    only = next((a.removeprefix("only=") for a in sys.argv if a.startswith("only=")), "")
    mount_tracing()
    scenarios = {n: case for n, case in scenario_cases().items() if n.startswith(only)}
    results = {
        name: judge(case) for name, case in scenarios.items() if case.get("module") == "absent"
    }
    run(*(f"insmod {MODULES / f'sch_{qdisc}.ko'}" for qdisc in ("dtm", *OTHERS)))
    if "tdc".startswith(only) or only.startswith("tdc"):
        for qdisc in ("dtm", *OTHERS):
            results |= run_tdc(qdisc)
    run("ip link add d1 type dummy", "ip link set d1 up")
    for name, case in tdc_cases().items():
        if f"again: {name}".startswith(only):
            results[f"again: {name}"] = attempt(try_again, case)
    run("ip link add d0 type dummy", "ip link set d0 up")
    for name, raw in raw_cases().items():
        if name.startswith(only):
            results[name] = attempt(try_raw, raw)
    for name, case in scenarios.items():
        if name not in results:
            results[name] = judge(case)
    (RUN / "results.json").write_text(json.dumps(results, indent=1))
    return 0


def all_names() -> list[str]:
    """List every case by its name in the results."""
    tdc = tdc_cases()
    return [
        *(f"tdc: {name}" for qdisc in ("dtm", *OTHERS) for name in tdc_cases(qdisc)),
        *(f"again: {name}" for name in tdc),
        *raw_cases(),
        *scenario_cases(),
    ]


def tdc_cases(qdisc: str = "dtm") -> dict[str, Case]:
    """Return the cases of a table in tdc/ by name."""
    return {case["name"]: case for case in read_table(qdisc)}


def scenario_cases() -> dict[str, Case]:
    """Return the cases of dtm/cases.yml by section and name.

    A case with `each` instead of a name runs once for each of our qdiscs.
    """
    sections = yaml.safe_load((HERE / "dtm/cases.yml").read_text(encoding="utf-8"))
    qdiscs = sections.pop("each")
    cases: dict[str, Case] = {}
    for section, content in sections.items():
        for case in content["cases"]:
            if "each" not in case:
                cases[f"{section}: {case['name']}"] = case
                continue
            for name, qdisc in qdiscs.items():
                arguments = {"qdisc": qdisc, **case.get("arguments", {})}
                cases[f"{section}: {name}, {case['each']}"] = {**case, "arguments": arguments}
    return cases


def attempt(check: Callable[..., None], *arguments: Any, **named: Any) -> Result:
    """Run a case; return {} if it holds, else the claim that fails."""
    try:
        check(*arguments, **named)
    except ClaimError as failed:
        return {"failed": str(failed)}
    except Exception:  # noqa: BLE001 - the other cases are to be run
        return {"failed": traceback.format_exc()}
    finally:
        clear("d0", "d1")
    return {}


def clear(*interfaces: str) -> None:
    """Remove all qdiscs and pools."""
    if Path("/sys/module/sch_dtm").exists():
        for interface in interfaces:
            if Path("/sys/class/net", interface).exists():
                with Rtnetlink() as route:
                    route.qdisc("del", interface, options=None, kind=None)
        for pool in pools():
            run(f"dtm pool del {pool['POOL']}")


def pools() -> list[Pool]:
    """Ask the module for its pools, because a program would take far longer."""
    with Dtm() as dtm:
        return dtm.pools()


# Cases for tdc


def run_tdc(qdisc: str) -> dict[str, Result]:
    """Run tdc on a table in tdc/; return results by name."""
    shutil.copy(HERE / "tdc/tdc_config_local.py", TDC)
    file, tap = TDC / f"{qdisc}.json", TDC / "results.tap"
    file.write_text(json.dumps(read_table(qdisc)))
    done = subprocess.run(
        [sys.executable, "tdc.py", "--outfile", str(tap), "--file", str(file)],
        cwd=TDC,
        capture_output=True,
        text=True,
        check=False,
    )
    (RUN / f"tdc-{qdisc}.txt").write_text(done.stdout + done.stderr)
    text = tap.read_text() if tap.exists() else ""
    results: dict[str, Result] = {}
    for name, case in tdc_cases(qdisc).items():
        found = re.search(
            rf"^(not )?ok \d+ {case['id']} - (.*?)(?=^(?:not )?ok |\Z)",
            text,
            re.MULTILINE | re.DOTALL,
        )
        said = found[0] if found else done.stderr[-2000:]
        good = found and not found[1] and "# skipped" not in found[2]
        results[f"tdc: {name}"] = {} if good else {"failed": said}
    return results


def tdc_command(command: str) -> str:
    """Return a command of tdc for d0."""
    return Template(command).safe_substitute(
        TC="tc", IP="ip", DTM="dtm", DUMMY="d0", NS="none", DEV0="none", DEV1="none"
    )


def shell(command: str) -> int:
    """Run a command of tdc, in a shell if it needs one; return its status."""
    line = tdc_command(command)
    words = ["sh", "-c", line] if set("<>$'") & set(line) else line.split()
    done = subprocess.run(words, capture_output=True, check=False, cwd=RUN)
    return done.returncode


def try_again(case: Case) -> None:
    """Check that refusals change nothing, and that shown options, set again, change nothing."""
    for command in case["setup"]:
        expect(command, shell(command), 0)
    try:
        with Events() as events:
            before = state()
            events.take()
            expect("exit status", shell(case["cmdUnderTest"]), int(case["expExitCode"]))
            if case["expExitCode"] != "0":
                expect("after a refusal", (state(), events.take()), (before, []))
                return
            give_back(events)
    finally:
        for command in case["teardown"]:
            shell(command)


def state() -> tuple[Any, ...]:
    """Read the output of tc and dtm, without the clocks."""
    shown = json.loads(run("tc -s -j qdisc show dev d0"))
    for qdisc in shown:
        for clock in ("age_ns", "slot_seconds", "slot_ns"):
            qdisc.pop(clock, None)
    return shown, pools()


def give_back(events: Events) -> None:
    """Set each channel of d0 to the options that it shows; make a root also on d1."""
    pattern = re.compile(r"^qdisc dtm (\S+) (root refcnt \d+|parent \S+) (.*?) *$", re.MULTILINE)
    for handle, place, options in pattern.findall(run("tc qdisc show dev d0")):
        before = state()
        events.take()
        where = place.partition(" refcnt")[0]
        run(f"tc qdisc change dev d0 {where} handle {handle} dtm {options}")
        expect("what is shown, given back", (state(), events.take()), (before, []))
        if where == "root" and "pool" not in options:
            run(f"tc qdisc replace dev d1 root handle {handle} dtm {options}")
            again = pattern.findall(run("tc qdisc show dev d1"))[0][2]
            expect("what is shown, added elsewhere", again, options)
            options_of = [
                json.loads(run(f"tc -j qdisc show dev {d}"))[0]["options"] for d in ("d0", "d1")
            ]
            expect("the same in JSON", options_of[1], options_of[0])


# Raw requests


def try_raw(case: Raw) -> None:
    """Send unchecked attributes; compare the answer, and read accepted values back."""
    run(*case.setup)
    before = state()
    if case.command:
        with Dtm() as dtm:
            ack = dtm.request(case.command, case.options)
    else:
        with Rtnetlink() as route:
            ack = route.qdisc(case.verb, "d0", Handle(1), options=case.options, nested=case.nested)
    expected, sentence = case.answer
    expect("errno", errno.errorcode.get(ack.errno, 0), errno.errorcode.get(expected, 0))
    expect("extack", ack.message, sentence)
    if ack.errno:
        expect("after a refusal", state(), before)
        return
    with Rtnetlink() as route:
        shown = route.show("d0")[0].options
    for number, value in case.taken:
        expect(f"attribute {number}", shown.get(number), value)


# Scenarios


def judge(case: Case) -> Result:
    """Run a scenario; return {} if it holds, else the failed claim or the obstacle."""
    if "device" in case and not has_device(case["device"]):
        return {"skipped": f"{case['device']}: not in this guest's kernel"}
    if "file" in case and not Path(case["file"]).exists():
        return {"skipped": f"{case['file']}: not in this guest's kernel"}
    return attempt(SCENARIOS[case["scenario"]], **case.get("arguments", {}))


def has_device(kind: str) -> bool:
    """Tell whether the kernel knows a kind of network device."""
    added = subprocess.run(["ip", "link", "add", "probe", "type", kind], check=False)
    if added.returncode == 0:
        run("ip link del probe")
    return added.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
