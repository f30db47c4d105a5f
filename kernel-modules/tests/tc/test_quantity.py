"""tc/quantity.h reads and shows decimal numbers with units exactly, or refuses them."""

import ctypes
import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

TC = Path(__file__).resolve().parents[2] / "tc"
UNITS: dict[str, dict[str, int]] = {
    "counts": {"": 1},
    "thousandths": {"": 1000},
    "rates": {"Gbit": 10**9, "Mbit": 10**6, "kbit": 10**3, "bit": 1},
    "times": {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1},
}
SOURCE = '#include "quantity.h"\n' + "".join(
    f"""
bool read_{name}(const char *text, int64_t *value) {{ return read_quantity(text, {name}, value); }}
struct text show_{name}(int64_t value) {{ return show_quantity({name}, value); }}
"""
    for name in UNITS
)
LIMIT = 2**63 - 1
MOST_DECIMALS = 9

kinds = st.sampled_from(sorted(UNITS))
near_quantities = st.one_of(
    st.from_regex(r"-?[0-9]{1,20}(\.[0-9]{0,10})?(|s|ms|us|ns|[GMk]?bit)", fullmatch=True),
    st.text("0123456789.-+ex sbitkMGnum", max_size=12),
)


class Text(ctypes.Structure):
    """struct text."""

    _fields_ = (("s", ctypes.c_char * 32),)


@pytest.fixture(scope="module")
def quantity(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the header's functions, compiled to stop at undefined behaviour."""
    folder = tmp_path_factory.mktemp("quantity")
    source, built = str(folder / "quantity.c"), str(folder / "quantity.so")
    Path(source).write_text(SOURCE)
    warnings = ["-Wall", "-Wextra", "-Werror"]
    trap = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    argv = ["cc", "-O1", *warnings, *trap, "-shared", "-fPIC", f"-I{TC}", "-o", built, source]
    subprocess.run(argv, check=True)
    library = ctypes.CDLL(built)
    for name in UNITS:
        getattr(library, f"read_{name}").restype = ctypes.c_bool
        getattr(library, f"show_{name}").restype = Text
        getattr(library, f"show_{name}").argtypes = [ctypes.c_int64]
    return library


def read(library: ctypes.CDLL, kind: str, text: str) -> int | None:
    """Return the quantity in a text, or None if the text is none."""
    value = ctypes.c_int64()
    is_one = getattr(library, f"read_{kind}")(text.encode(), ctypes.byref(value))
    return value.value if is_one else None


def meaning(kind: str, text: str) -> Fraction | None:
    """Return a text's value in the smallest unit, computed with fractions."""
    match = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]*)?)([a-zA-Z]*)", text)
    scales = {name.lower(): scale for name, scale in UNITS[kind].items()}
    if match is None or match[2].lower() not in scales:
        return None
    return Fraction(match[1].removesuffix(".")) * scales[match[2].lower()]


@pytest.mark.slow
@given(kind=kinds, text=near_quantities)
@example(kind="times", text="3600.000000001s")
@example(kind="times", text="1.5ns")
@example(kind="times", text="1.500us")
@example(kind="rates", text="1.25mbit")
@example(kind="counts", text="9223372036854775808")
@example(kind="thousandths", text="0.7505")
def test_reads_what_is_exact(quantity: ctypes.CDLL, kind: str, text: str) -> None:
    """An accepted text is read exactly; a refused one has no whole value, or is too long.

    A text is too long with more than nine decimals, or with digits that leave no room for one more
    in 63 bits.
    """
    got, means = read(quantity, kind, text), meaning(kind, text)
    if got is not None:
        assert got == means
    elif means is not None and means.denominator == 1:
        whole, _, decimals = re.sub(r"[^0-9.]", "", text).partition(".")
        most = max(abs(means), Fraction(whole + decimals))
        assert len(decimals) > MOST_DECIMALS or most > LIMIT // 10 - 10


@given(kind=kinds, value=st.integers(0, 2**53))
@example(kind="times", value=0)
@example(kind="rates", value=2**40)
@example(kind="thousandths", value=8_192_000)
@example(kind="thousandths", value=8_191_999)
@example(kind="thousandths", value=10)
def test_what_is_shown_is_read_as_the_same(quantity: ctypes.CDLL, kind: str, value: int) -> None:
    """A value that is shown and read again stays the same, for every option's values and more."""
    shown: bytes = getattr(quantity, f"show_{kind}")(value).s
    assert read(quantity, kind, shown.decode()) == value
    assert meaning(kind, shown.decode()) == value


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("times", 0, "0s"),
        ("rates", 0, "0bit"),
        ("times", 1_500_000_000, "1500ms"),
        ("rates", 5_000_000, "5Mbit"),
        ("thousandths", 750, "0.75"),
        ("thousandths", 2000, "2"),
        ("thousandths", 1005, "1.005"),
    ],
)
def test_shown_in_the_largest_whole_unit(
    quantity: ctypes.CDLL, kind: str, value: int, text: str
) -> None:
    """A value is shown in its largest whole unit, zero in s or bit, and thousandths as decimals."""
    assert getattr(quantity, f"show_{kind}")(value).s == text.encode()
