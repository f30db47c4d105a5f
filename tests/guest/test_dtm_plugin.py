"""Refusals of our qdiscs: by the tc plugin, by the tool dtm, and by the kernel of any request."""

import subprocess
from pathlib import Path

import pytest
from channels import REFUSING
from dtm_raw import RANGES
from support.guest.dtm_cases import plugin_says
from support.guest.module_trials import check_fuzzed
from support.runs import kept_in_guest

from twoway.guest.cache import Guest
from twoway.paths import KERNEL_MODULES, ROOT

# The tc plugin q_dtm.so and the tool dtm: refusals that never reach a kernel.

# Options whose name is not their attribute's in lower case with dashes.
NAMES = {"MIN_SLOTS": "min", "MAX_SLOTS": "max", "SLOT_RATE": "slot"}
TIMES = {"CHANGE", "SIGNALLING", "SAMPLE", "HOLD_ON_LOSS", "RISE", "FALL"}
THOUSANDTHS = {"MARGIN", "CORRIDOR"}
WORDS = {"ALLOCATOR", "FRAMED", "ROUNDING", "COUNT", "PACE", "HOLD"}
RATES = {"ESTIMATE", "SLOT_RATE", "GRAIN"}
# One above the largest value; the kernel only checks that `low` is below `high`.
UNSAID = {("LOW", 2**32 - 1)}

LEVELS = "2..32 of SLOTS:UP:DOWN, SLOTS 1..65535, UP and DOWN 0..4294967295"
STEPS = "1..1024 of AFTER:SLOTS, AFTER 0s..3600s, SLOTS 1..65535"
# Words that are no values, and what the plugin demands instead; numbers of other forms are refused
# by quantity.h, which test_quantity.py tests.
NO_VALUES = [
    ("slots 1.5", "1..65535"),
    ("estimate 5s", "0bit..1099511627776bit"),
    ("change 5bit", "0s..3600s"),
    ("margin 0.7505", "0..65535"),
    ("shift 11", "0..10"),
    ("allocator banana", "static | rate | buffer | hysteresis | trace"),
    ("rounding banana", "up | nearest | down"),
    ("pace banana", "apart | grid"),
    ("hold banana", "estimate | slots"),
    ("count banana", "arrivals | accepted"),
    ("pool abcdefghijklmnop", "a name of 1..15 characters"),
    ("levels 4:5", LEVELS),
    ("levels 4:5:6:7", LEVELS),
    ("levels 4::6", LEVELS),
    ("levels 4:5:6,", LEVELS),
    ("levels a:b:c", LEVELS),
    ("levels 4:4294967296:0", LEVELS),
    ("levels 4:-1:0", LEVELS),
    ("levels 0:5:0", LEVELS),
    ("levels 65536:5:0", LEVELS),
    ("levels " + ",".join(["4:5:6"] * 33), LEVELS),
    ("steps 1s", STEPS),
    ("steps 1s:2:3", STEPS),
    ("steps 1s:2,", STEPS),
    ("steps 1:2", STEPS),
    ("steps 1.5ns:2", STEPS),
    ("steps -1s:2", STEPS),
    ("steps 3600.000000001s:2", STEPS),
    ("steps 1s:0", STEPS),
    ("steps 1s:65536", STEPS),
    ("steps " + ",".join(["1s:2"] * 1025), STEPS),
]


TAKEN = ['Cannot find device "no-such"']


def text_of(attribute: str, value: int) -> str:
    """Return a value in the smallest unit, as text for tc."""
    if attribute in TIMES:
        return f"{value}ns"
    if attribute in THOUSANDTHS:
        sign, value = "-" * (value < 0), abs(value)
        return f"{sign}{value // 1000}.{value % 1000:03}"
    return f"{value}bit" if attribute in RATES else str(value)


@pytest.mark.parametrize(
    ("attribute", "low", "high"),
    [
        pytest.param(name, low, high, id=name)
        for name, _, low, high, _ in RANGES
        if name not in WORDS
    ],
)
def test_plugin_has_the_kernels_ranges(guest: Guest, attribute: str, low: int, high: int) -> None:
    """The plugin accepts both ends of a range; beyond them it names option, range and value."""
    name = NAMES.get(attribute, attribute.lower().replace("_", "-"))
    for value in (low, high):
        assert plugin_says(guest, name, text_of(attribute, value)) == TAKEN
    for value in {low - 1, high + 1} if (attribute, high + 1) not in UNSAID else {low - 1}:
        text = text_of(attribute, value)
        (said,) = plugin_says(guest, name, text)
        assert said.startswith(f'dtm: "{name}" must be ')
        assert said.endswith(f', got "{text}"')
    assert plugin_says(guest, name) == [f'dtm: "{name}" needs a value']


@pytest.mark.parametrize(("words", "must_be"), NO_VALUES, ids=lambda text: text[:20])
def test_plugin_refuses_what_is_no_value(guest: Guest, words: str, must_be: str) -> None:
    """An invalid value is quoted together with what the option demands."""
    name, text = words.split()
    assert plugin_says(guest, name, text) == [f'dtm: "{name}" must be {must_be}, got "{text}"']


def test_plugin_refuses_an_empty_value(guest: Guest) -> None:
    """An empty value is neither a number nor a name."""
    assert plugin_says(guest, "slots", "") == ['dtm: "slots" must be 1..65535, got ""']
    assert plugin_says(guest, "pool", "") == [
        'dtm: "pool" must be a name of 1..15 characters, got ""'
    ]


def test_plugin_reports_all_errors_at_once(guest: Guest) -> None:
    """Each mistake in a command has its own line, even a missing value at the end."""
    assert plugin_says(guest, *["slots", "0", "banana", "change", "5", "levels", "x", "limit"]) == [
        'dtm: "slots" must be 1..65535, got "0"',
        'dtm: what is "banana"? `tc qdisc add dtm help` lists options',
        'dtm: "change" must be 0s..3600s, got "5"',
        f'dtm: "levels" must be {LEVELS}, got "x"',
        'dtm: "limit" needs a value',
    ]


def dtm(guest: Guest, *words: str) -> tuple[int, str, str]:
    """Return status, output and errors of the tool dtm, which finds no module in this kernel."""
    done = subprocess.run(
        [guest.programs / "dtm", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_tool_teaches() -> None:
    """The man page has the synopsis of every command that `dtm --help` lists."""
    source = (ROOT / "kernel-modules/tc/dtm.c").read_text()
    assert source.count('"       dtm ') + source.count('"usage: dtm ') == 4
    manual = (ROOT / "kernel-modules/tc/tc-dtm.8").read_text()
    for words in ("dtm pool add", "dtm pool del", "dtm pool show", "dtm events"):
        assert words in source
        assert f"\n.B {words}\n" in manual.split(".SH DESCRIPTION")[0], words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pool add bus", "`dtm pool add` needs NAME slots N; `dtm --help` explains"),
        ("pool add bus seats 5", "`dtm pool add` needs NAME slots N; `dtm --help` explains"),
        ("pool add bus slots 5x", '"slots" must be 1..65535, got "5x"'),
        ("pool del", "`dtm pool del` needs NAME; `dtm --help` explains"),
        ("pool show -k", "`show` takes -j only; `dtm --help` explains"),
        ("events --nonsense", "`dtm events` takes --out FILE only; `dtm --help` explains"),
    ],
)
def test_tool_says_what_a_command_takes(guest: Guest, words: str, said: str) -> None:
    """A command with wrong words has status 2 and one line on standard error."""
    assert dtm(guest, *words.split()) == (2, "", f"dtm: {said}\n")


@pytest.mark.parametrize("words", ["", "banana", "pool", "pool banana"])
def test_tool_explains_itself(guest: Guest, words: str) -> None:
    """An unknown command prints the text of `--help` on standard error."""
    status, usage, errors = dtm(guest, "--help")
    assert (status, errors) == (0, "")
    assert usage.startswith("usage: dtm pool add NAME slots N ")
    assert dtm(guest, *words.split()) == (2, "", usage)


# Random and malformed requests for each of our qdiscs, in the guest of every run.

FUZZ = KERNEL_MODULES / "tests/fuzz"
REQUESTS = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("qdisc", REFUSING)
def test_a_qdisc_answers_any_request(guest: Guest, tmp_path: Path, qdisc: str) -> None:
    """Each of 20 000 requests is accepted or refused with a sentence; each sentence occurs."""
    folder = tmp_path / "run"
    folder.mkdir()
    compile_fuzzer = f"cc -O2 -static -o {folder / 'qdisc_fuzz'} {FUZZ / 'qdisc_fuzz.c'}"
    subprocess.run(compile_fuzzer.split(), check=True)
    arguments = ["/mnt/run/qdisc_fuzz", qdisc, "2", str(REQUESTS)]
    kept_in_guest(guest, folder, FUZZ / "any_guest.py", *arguments, modules=f"sch_{qdisc}")
    check_fuzzed(folder, qdisc, REQUESTS)
