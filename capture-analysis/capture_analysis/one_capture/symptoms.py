"""Sums of each direction that clib/symptoms.c counts; the metrics that read them define them."""

from typing import NamedTuple


class Symptoms(NamedTuple):
    """A direction's numbers, in the order of struct ca_symptoms in clib/symptoms.h."""

    answers: int
    first_ns: int
    answered_ns: int
    longest_ns: int
    asked_ns: int
    keepalives: int
    unheard: int
    unheard_most: int
    largest: int
    largest_end: int
    passed: int
    again_at: int
    repeats: int
    repeats_most: int
    repeated: int
    begun_ns: int
    peak: int
    doubled_ns: int
    lost: int
    high: int
    acked: int
    edge: int
    window: int
    silly: int
    run: int
    run_most: int
    tails: int
    resets: int
    reset_ns: int
    reset_bytes: int
    losses: int
    loss_first_ns: int
    loss_last_ns: int
    loss_first_bytes: int
    loss_last_bytes: int
    bytes: int
    not_capable: int
    ect_1: int
    ect_0: int
    marked: int
    echoes: int
    reduced: int
    offered: int
    counter: int
    told: int
    byte_counters: int
    last_ns: int
    idle_ns: int
