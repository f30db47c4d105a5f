"""The plan's clock in the guest, and the progress that the host shows by it."""

import json
import os
import time

from run_folder import RUN, write_file

# Environment variable of all programs: the host's clock minus the plan's, ns.
OFFSET = "TWOWAY_CLOCK_OFFSET_NS"


def plan_now_ns() -> int:
    """Read the plan's clock, as plan_clock.h does."""
    return time.time_ns() - int(os.environ.get(OFFSET, "0"))


def sleep_until(time_ns: int) -> None:
    """Sleep until the plan's clock reads time_ns."""
    while (left_ns := time_ns - plan_now_ns()) > 0:
        time.sleep(left_ns / 1e9)


def report_progress() -> None:
    """Report progress to the host, while the observer does not.

    The observer reports during the traffic.
    """
    progress = {"time_ns": plan_now_ns(), "acked_bytes": 0, "queued_packets": 0}
    write_file(f"{RUN}/sockets/progress.json", json.dumps(progress) + "\n")
