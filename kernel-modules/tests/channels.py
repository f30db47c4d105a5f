"""The options of our qdiscs for these tests, as tc takes them, and the sentences of refusals.

A word in braces is replaced: {pool} by a pool's name, others by the number of a change.
"""

import re
from pathlib import Path

# Files with each qdisc's answers to requests.
REFUSING = {"dtm": "dtm/*.c", "medium": "medium*.c", "timetable": "timetable*.c"}

# A channel with its own link at the root of a device, of about 100 Mbit/s.
ALONE = (
    "dtm slots 200 limit 300",
    "dtm slots 80 limit 50 limit-bytes 60000",
    "dtm slots 100 max 400 allocator rate sample 5ms change 1ms estimate 40mbit",
    "dtm slots 50 max 300 allocator buffer high 20000 low 2000 rise 1ms fall 5ms change 1ms",
    "dtm slots 50 change 1ms allocator hysteresis levels 20:10000:0,60:30000:5000,200:0:20000",
    "dtm slots 90 allocator trace steps 5ms:20,5ms:200,10ms:60",
    "dtm slots 80 framed overhead 24 signalling 2ms",
)
# Channels below other qdiscs, which compete for the slots of one pool.
POOLED = (
    "dtm slots 100 pool {pool}",
    "dtm slots 50 min 10 pool {pool} change 1ms allocator rate sample 5ms",
    "dtm slots 50 min 20 pool {pool} owned 60 change 1ms allocator buffer high 20000 low 2000",
    "dtm slots 20 max 90 pool {pool} signalling 1ms change 0s allocator rate sample 2ms",
)
POOL_SLOTS = 400
# Changes that an operator makes to an existing channel; some are invalid and must be refused.
CHANGES = (
    "dtm slots {slots}",
    "dtm limit {slots}",
    "dtm min {few} max {slots}",
    "dtm change {few}ms allocator rate sample {few}ms shift-up 1 shift-down 2",
    "dtm allocator buffer high 9000 low 3000 rise {few}ms fall {few}ms",
    "dtm allocator hysteresis levels 20:9000:0,80:30000:5000,200:0:20000",
    "dtm allocator trace steps {few}ms:30,{few}ms:90,{few}ms:150",
    "dtm allocator static signalling {few}ms",
)
# Initial options and changes of sch_timetable at the root of a device, of about 100 Mbit/s.
TABLES = (
    "timetable rates 0s:200Mbit,10ms:20Mbit,20ms:0bit period 30ms limit 300",
    "timetable rates 0s:100Mbit,1s:50Mbit limit 50 overhead 24",
    "timetable opportunities 0s:15000,1ms:1500,2ms:30000 period 3ms limit 1000",
    "timetable delays 0s:5ms,50ms:1ms,100ms:20ms period 200ms",
)
TABLE_CHANGES = (
    "timetable limit {slots}",
    "timetable overhead {few}",
    "timetable rates {slots}s:{few}Mbit",
    "timetable delays {slots}ms:{few}ms",
)
# Initial options and changes of sch_medium at the root of both ends of a cable; another gap or turn
# is refused while the other end exists.
MEDIA = (
    "medium number 1 rate 200Mbit gap 20us turn 4 limit 300",
    "medium number 1 rate 100Mbit limit 50 overhead 24",
    "medium number 1 rate 400Mbit gap 20us",
)
MEDIUM_CHANGES = (
    "medium limit {slots}",
    "medium overhead {few}",
    "medium rate {slots}Mbit",
    "medium gap {few}us",
    "medium number {few}",
)
# Queues inside a channel, a timetable or an end of a medium, in place of its own list: a fifo, and
# managers that drop at dequeue, at enqueue, or packets in their middle.
INSIDE = (
    "pfifo limit {slots}",
    "bfifo limit {slots}000",
    "fq_codel limit {slots} target 1ms interval 10ms",
    "pie limit {slots} target 1ms tupdate 2ms",
    "choke limit {slots} bandwidth 100Mbit",
)
# Members of `tc -s -j qdisc show` that rise while a channel carries traffic, despite changes;
# `inside` is the packets of a queue inside.
COUNTERS = ("bytes", "packets", "slot_seconds", "inside")
# Data that the other host receives; nlmon's has none.
RECEIVED = ("tcp", "udp")
# A channel that only an operator changes.
PLAIN = "dtm slots {slots} limit 2000"


def rising(place: str) -> list[str]:
    """List the counts of stress.py that must be above 0 for a place when a round ends."""
    received = RECEIVED if place != "nlmon" else ()
    slotless = ("slot_seconds",) if place in ("medium", "timetable") else ()
    return [name for name in (*received, *COUNTERS) if name not in slotless]


def refusals(qdisc: str = "dtm") -> set[str]:
    """Return every sentence of a module's own refusals."""
    files = Path(__file__).resolve().parents[1].glob(REFUSING[qdisc])
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    return set(re.findall(r'(?:NL_SET_ERR_MSG|twoway_refuse)\w*\([^"]*"([^"]+)"\)', sources))
