"""`make bench OF=ns2 NS2=FOLDER`: the examples of Ge et al. in ns-2, with its module of FAST.

FOLDER is Debian's source of ns-2.35 (`apt-get source ns2`) with version 1.1.3 of the module of Cui
and Andrew in tcp/: tcp-fast.cc and tcp-fast.h, as github.com/hbatmit/ns2.35 has them. The program
is Debian's package ns2, which loads the module. The columns of Linux are of docs/results. All are
Mbit/s, of 1000 bytes a packet.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from machine import machine

SCRIPT = Path(__file__).with_name("ns2_fast.tcl")
NUMBERS = Path(__file__).parents[1] / "docs/results/numbers/ge-2011.jsonl"
# An example's rates in Mbit/s, round trip in ms, alphas by direction, and the paper's simulation.
EXAMPLES = {
    1: ((100, 1, 20), "f:100 f:200", (8.2, 16.8)),
    2: ((100, 100, 20), "f:300 f:200 b:100", (57, 38, 20)),
    3: ((100, 10, 20), "f:100 b:30", (28.3, 8.6)),
    4: ((100, 10, 20), "f:100 b:30 f:200", (21.3, 7.2, 42.4)),
    5: ((10, 10, 2), "f:30 b:30", (9.4, 9.4)),
}
FROM_S, STOP_S = 10, 40
FLOWS = ("first", "second", "third")
# The module registers a class when ns-2 starts; loaded later, it is bound here.
LOADED = """
#include "tcp-fast.cc"
static class LoadedFast : public TclClass {
public:
\tLoadedFast() : TclClass("Agent/TCP/Fast") {}
\tTclObject *create(int, const char *const *) { return new FastTcpAgent(); }
\tvoid load() { bind(); }
} loaded_fast;
extern "C" int Fast_Init(Tcl_Interp *) { loaded_fast.load(); return TCL_OK; }
"""
DEFINED = ["LIBTCLCL", "SNPRINTF", "STRTOLL", "STRTOQ", "INT64", "STL"]
FOLDERS = ". tcp common tools link queue mac adc apps mobile trace routing classifier mcast lib"


def main() -> int:
    """Run each example once, and print a line for each."""
    source = Path(sys.argv[1])
    if not (source / "tcp/tcp-fast.cc").is_file():
        raise SystemExit(f"bench: NS2={source}: tcp/tcp-fast.cc is missing")
    print(f"{machine()}, ns-2 2.35, {FROM_S} to {STOP_S} s, each run once, Mbit/s")
    heads = ("the paper's ns-2", "ns-2 here", "Linux", "Linux, packets of 1040")
    print(f"{'example':<9}" + "".join(f"{head:<22}" for head in heads).rstrip())
    kept = {line["point"]: line for line in map(json.loads, NUMBERS.open("rb"))}
    with tempfile.TemporaryDirectory(prefix="twoway-bench-") as scratch:
        library = _library(source, Path(scratch))
        for number, (link, flows, printed) in EXAMPLES.items():
            words = ["ns", SCRIPT, library, *link, FROM_S, STOP_S, *flows.split()]
            done = subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE)
            simulated = [8e-3 * float(rate) for rate in done.stdout.split()]
            plain = kept.get(f"fast-ex{number}", {})
            headers = kept.get(f"fast-ex{number}-variants@variant=headers", {})
            linux = [plain[f"throughput.{name}"] for name in FLOWS[: len(printed)]]
            longer = [rate for metric, rate in headers.items() if metric.startswith("goodput.")]
            cells = map(_row, (printed, simulated, linux, longer))
            print(f"{number:<9}" + "".join(f"{cell:<22}" for cell in cells).rstrip())
    return 0


def _library(source: Path, folder: Path) -> Path:
    """Compile the module as a library that ns-2 can load."""
    (folder / "load.cc").write_text(LOADED, "utf-8")
    (folder / "autoconf.h").touch()
    found = folder / "libfast.so"
    words = ["g++", "-shared", "-fPIC", "-O2", "-std=gnu++98", "-fpermissive", "-w"]
    words += ["-DUSE_INTERP_RESULT", "-DTCP_DELAY_BIND_ALL", *(f"-DHAVE_{x}" for x in DEFINED)]
    words += [f"-I{folder}", *(f"-I{source / name}" for name in FOLDERS.split())]
    words += [f"-I/usr/include/{name}" for name in ("tclcl", "tcl8.6", "tcl")]
    subprocess.run([*words, str(folder / "load.cc"), "-o", str(found)], check=True)
    return found


def _row(rates: Sequence[float]) -> str:
    return "  ".join(f"{rate:.2f}" for rate in rates)


if __name__ == "__main__":
    sys.exit(main())
