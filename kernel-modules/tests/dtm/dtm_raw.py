"""Requests that tc would not send, and the kernel's answers, by range and structure.

A case is a qdisc request whose options are given as bytes, or a request of the family "dtm".
"""

import errno
from collections.abc import Iterator
from typing import NamedTuple

from rtnetlink import NUMBERS, attribute, nest, u8, u32, u64

VALUES = {"u8": u8, "u32": u32, "s32": u32, "u64": u64}
BITS = {"u8": 8, "u32": 32, "s32": 32, "u64": 64}
SECOND = 10**9
OUT_OF_RANGE = (errno.ERANGE, "integer out of range")
ADD = "tc qdisc add dev d0 root handle 1 dtm "


class Raw(NamedTuple):
    """A request and its answer: errno and sentence, 0 and none for success."""

    name: str
    options: bytes
    answer: tuple[int, str] = (0, "")
    verb: str = "add"
    setup: tuple[str, ...] = ()
    command: str = ""
    """Of the family "dtm", then `options` are its attributes; none: a qdisc's request."""
    nested: bool = True
    taken: tuple[tuple[int, bytes], ...] = ()
    """Attributes that the dump must have afterwards."""


def tca(name: str, value: bytes) -> bytes:
    """Return an attribute TCA_DTM_*."""
    return attribute(NUMBERS[f"TCA_DTM_{name}"], value)


def steps(*given: tuple[int, int]) -> bytes:
    """Return TCA_DTM_STEPS with pairs of ns and slots."""
    return tca_nest(
        "STEPS",
        *(tca("STEP_AFTER", u64(after)) + tca("STEP_SLOTS", u32(slots)) for after, slots in given),
    )


def levels(*given: tuple[int, int, int]) -> bytes:
    """Return TCA_DTM_LEVELS with triples of slots, up and down."""
    return tca_nest(
        "LEVELS",
        *(
            tca("LEVEL_SLOTS", u32(s)) + tca("LEVEL_UP", u32(up)) + tca("LEVEL_DOWN", u32(down))
            for s, up, down in given
        ),
    )


def tca_nest(name: str, *entries: bytes) -> bytes:
    """Return a list TCA_DTM_* of entries."""
    return nest(
        NUMBERS[f"TCA_DTM_{name}"], *(nest(NUMBERS["TCA_DTM_ENTRY"], entry) for entry in entries)
    )


def allocator(name: str) -> bytes:
    """TCA_DTM_ALLOCATOR."""
    return tca("ALLOCATOR", u8(NUMBERS[f"TC_DTM_{name}"]))


RATE, BUFFER = allocator("RATE"), allocator("BUFFER")

# Attribute, type, lowest and highest value, and the options that both values need.
RANGES: list[tuple[str, str, int, int, bytes]] = [
    ("SLOTS", "u32", 1, 65535, b""),
    ("INITIAL", "u32", 1, 65535, b""),
    ("LIMIT", "u32", 1, 10**9, b""),
    ("LIMIT_BYTES", "u32", 0, 2**32 - 1, b""),
    ("OVERHEAD", "s32", -64, 1024, b""),
    ("FRAMED", "u8", 0, 1, b""),
    ("ALLOCATOR", "u8", 0, 2, b""),
    ("MIN_SLOTS", "u32", 1, 65535, b""),
    ("MAX_SLOTS", "u32", 1, 65535, b""),
    ("CHANGE", "u64", 0, 3600 * SECOND, b""),
    ("SIGNALLING", "u64", 0, 60 * SECOND, b""),
    ("OWNED", "u32", 0, 65535, tca("POOL", b"bus\0")),
    ("SAMPLE", "u64", SECOND // 1000, 60 * SECOND, RATE),
    ("SHIFT_UP", "u8", 0, 10, RATE),
    ("SHIFT_DOWN", "u8", 0, 10, RATE),
    ("MARGIN", "u32", 0, 65535000, RATE),
    ("CORRIDOR", "u32", 0, 65535000, RATE),
    ("ROUNDING", "u8", 0, 2, RATE),
    ("COUNT", "u8", 0, 1, RATE),
    ("HOLD_ON_LOSS", "u64", 0, 60 * SECOND, RATE),
    ("ESTIMATE", "u64", 0, 2**40, RATE),
    ("HIGH", "u32", 1, 2**32 - 1, BUFFER + tca("LOW", u32(0))),
    ("LOW", "u32", 0, 2**32 - 2, BUFFER + tca("HIGH", u32(2**32 - 1))),
    ("RISE", "u64", 0, 60 * SECOND, BUFFER),
    ("FALL", "u64", 0, 60 * SECOND, BUFFER),
    ("STEP", "u32", 1, 65535, BUFFER),
    ("SLOT_RATE", "u32", 1000, 512_000, b""),
    ("GRAIN", "u32", 0, 2**32 - 1, RATE),
    ("PACE", "u8", 0, 1, RATE),
    ("HOLD", "u8", 0, 1, RATE),
]
# Values that are out of range for another reason than their type: the highest LOW is above every
# HIGH, and the allocators above 2 need a list.
BEYOND = {
    ("LOW", 2**32 - 1): (errno.EINVAL, "low must be below high"),
    ("ALLOCATOR", 3): (errno.EINVAL, "allocator hysteresis needs levels"),
}


def range_cases() -> Iterator[Raw]:
    """Return cases for both ends of each range, values beyond them, and values of a wrong size."""
    pool = ("dtm pool add bus slots 65535",)
    for name, kind, low, high, others in RANGES:
        number, encode, bits = NUMBERS[f"TCA_DTM_{name}"], VALUES[kind], BITS[kind]
        lowest, highest = (-(1 << 31), (1 << 31) - 1) if kind == "s32" else (0, (1 << bits) - 1)
        for value in sorted({lowest, low - 1, low, high, high + 1, highest}):
            if not lowest <= value <= highest:
                continue
            answer = (0, "") if low <= value <= high else BEYOND.get((name, value), OUT_OF_RANGE)
            shown = NUMBERS["TCA_DTM_INITIAL"] if name == "SLOTS" else number
            yield Raw(
                f"{name} {value}",
                others + attribute(number, encode(value)),
                answer,
                setup=pool,
                taken=() if answer[0] else ((shown, encode(value)),),
            )
        for size in sorted({0, bits // 8 - 1, bits // 8 + 1}):
            answer = (errno.EINVAL, "invalid attribute length")
            yield Raw(f"{name} of {size} bytes", attribute(number, b"\1" * size), answer)


POLICY = (errno.EINVAL, "Attribute failed policy validation")
UNKNOWN = (errno.EINVAL, "Unknown attribute type")
TRACE, HYSTERESIS = allocator("TRACE"), allocator("HYSTERESIS")
TWO_LEVELS = levels((4, 500, 0), (8, 900, 100))
POOL = NUMBERS["DTM_A_POOL"]
POOL_SLOTS = attribute(NUMBERS["DTM_A_POOL_SLOTS"], u32(9))

CASES = [
    Raw("no options at all", b""),
    Raw("options that are not marked as nested", b"", (errno.EINVAL, "NLA_F_NESTED is missing"),
        nested=False),
    Raw("an attribute without a number", tca("UNSPEC", b"\1\0\0\0"), UNKNOWN),
    Raw("padding", tca("PAD", b"\1\0\0\0"), POLICY),
    Raw("the number of steps, which is only dumped", tca("N_STEPS", u32(1)), POLICY),
    Raw("a namespace's number of no pool", tca("POOL_NETNSID", u32(0)),
        (errno.EINVAL, "netns needs a pool")),
    Raw("a namespace's number of 3 bytes", tca("POOL_NETNSID", b"\0\0\0"),
        (errno.EINVAL, "invalid attribute length")),
    Raw("a namespace that is not there", tca("POOL", b"bus\0") + tca("POOL_NETNSID", u32(77)),
        (errno.ENOENT, "there is no such network namespace")),
    Raw("a namespace that has ended", tca("POOL", b"bus\0") + tca("POOL_NETNSID", u32(2**32 - 1)),
        (errno.ENOENT, "there is no such network namespace")),
    Raw("a file that is not there", tca("POOL", b"bus\0") + tca("POOL_NETNS_FD", u32(999)),
        (errno.EBADF, "there is no such network namespace")),
    Raw("a file that is no namespace", tca("POOL", b"bus\0") + tca("POOL_NETNS_FD", u32(0)),
        (errno.EINVAL, "there is no such network namespace")),
    Raw("an attribute that a later kernel may know", attribute(99, b"\1\0\0\0"), UNKNOWN),
    Raw("restart with a value", tca("RESTART", u32(1)),
        (errno.ERANGE, "Attribute failed policy validation")),
    Raw("more slots than the pool has", tca("POOL", b"bus\0") + tca("INITIAL", u32(11)),
        (errno.EINVAL, "slots must not exceed the pool's"), setup=("dtm pool add bus slots 10",)),
    Raw("a pool's name without an end", tca("POOL", b"bus"), POLICY),
    Raw("a pool's name that is too long", tca("POOL", b"abcdefghijklmnop\0"), POLICY),
    Raw("no levels", HYSTERESIS + tca_nest("LEVELS"), (errno.EINVAL, "levels must be 2..32")),
    Raw("33 levels", HYSTERESIS + levels(*((1 + k, 500, 0) for k in range(33))),
        (errno.EINVAL, "levels must be 2..32")),
    Raw("a level without slots", HYSTERESIS + tca_nest("LEVELS", tca("LEVEL_UP", u32(9)), b""),
        (errno.EINVAL, "a level needs slots")),
    Raw("a level of no slots", HYSTERESIS + levels((0, 500, 0), (8, 900, 100)), OUT_OF_RANGE),
    Raw("a level of too many slots", HYSTERESIS + levels((4, 500, 0), (65536, 900, 0)),
        OUT_OF_RANGE),
    Raw("levels that are not marked as nested", HYSTERESIS + tca("LEVELS", TWO_LEVELS[4:]),
        (errno.EINVAL, "NLA_F_NESTED is missing")),
    Raw("no steps", TRACE + tca_nest("STEPS"), (errno.EINVAL, "steps must be 1..1024")),
    Raw("1025 steps", TRACE + steps(*[(1, 1)] * 1025), (errno.EINVAL, "steps must be 1..1024")),
    Raw("a step without slots", TRACE + tca_nest("STEPS", tca("STEP_AFTER", u64(9))),
        (errno.EINVAL, "a step needs a time and slots")),
    Raw("a step without a time", TRACE + tca_nest("STEPS", tca("STEP_SLOTS", u32(9))),
        (errno.EINVAL, "a step needs a time and slots")),
    Raw("a step of no slots", TRACE + steps((1, 0)), OUT_OF_RANGE),
    Raw("a step of too many slots", TRACE + steps((1, 65536)), OUT_OF_RANGE),
    Raw("a step after more than an hour", TRACE + steps((3600 * SECOND + 1, 9)), OUT_OF_RANGE),
    Raw("a change refused for its second attribute leaves the first as it was",
        tca("SLOTS", u32(9)) + tca("STEP", u32(0)), OUT_OF_RANGE, verb="change",
        setup=(ADD + "slots 7 min 7 allocator buffer",)),  # time does not change it
    Raw("a pool without slots", attribute(POOL, b"bus\0"),
        (errno.EINVAL, "a new pool needs a name and slots"), command="DTM_CMD_POOL_NEW"),
    Raw("a pool without a name", POOL_SLOTS,
        (errno.EINVAL, "a new pool needs a name and slots"), command="DTM_CMD_POOL_NEW"),
    Raw("a pool of 0 slots", attribute(POOL, b"bus\0") + attribute(POOL + 1, u32(0)), OUT_OF_RANGE,
        command="DTM_CMD_POOL_NEW"),
    Raw("a pool of 65536 slots", attribute(POOL, b"bus\0") + attribute(POOL + 1, u32(65536)),
        OUT_OF_RANGE, command="DTM_CMD_POOL_NEW"),
    Raw("a new pool with a name that is too long", attribute(POOL, b"abcdefghijklmnop\0"),
        POLICY, command="DTM_CMD_POOL_NEW"),
    Raw("a new pool with an attribute that is only dumped", attribute(POOL + 2, u32(1)), UNKNOWN,
        command="DTM_CMD_POOL_NEW"),
    Raw("deleting no pool", b"", (errno.EINVAL, "which pool?"), command="DTM_CMD_POOL_DEL"),
    Raw("no command", b"", (errno.EOPNOTSUPP, ""), command="DTM_CMD_UNSPEC"),
]  # fmt: skip


def raw_cases() -> dict[str, Raw]:
    """Return all cases by name."""
    return {f"raw: {case.name}": case for case in (*range_cases(), *CASES)}
