"""Load tcp_fast with parameters that it must refuse, and with the ends of their ranges.

Runs as root in the guest; writes loaded.json into /mnt/run: per case, insmod's status and what the
kernel said of it.
"""

import json
import subprocess
import sys
from pathlib import Path

MODULE = "/mnt/bin/tcp_fast.ko"
REFUSED = {
    "gamma=0": "tcp_fast: gamma: must be 1..1000 thousandths, got 0",
    "gamma=1001": "tcp_fast: gamma: must be 1..1000 thousandths, got 1001",
    "alphas=0": "tcp_fast: alphas: must be 1..65535 packets, got 0",
    "alphas=65536": "tcp_fast: alphas: must be 1..65535 packets, got 65536",
    "alphas=30,100,30": "tcp_fast: alphas: 30 is given twice",
    "base_rtt_us=2147483648": "tcp_fast: base_rtt_us: must be 0..2147483647 us, got 2147483648",
}
ACCEPTED = ("", "gamma=1", "gamma=1000 alphas=1,65535 base_rtt_us=2147483647 every_other_rtt=1")


def main() -> int:
    """Try every case, one after the other; a module that loads is unloaded again."""
    found = []
    for case in (*REFUSED, *ACCEPTED):
        subprocess.run(["dmesg", "--clear"], check=True)
        status = subprocess.run(["insmod", MODULE, *case.split()], check=False).returncode
        said = subprocess.run(["dmesg", "--notime"], capture_output=True, text=True, check=True)
        if status == 0:
            subprocess.run(["rmmod", MODULE], check=True)
        found.append({"case": case, "status": status, "said": said.stdout.splitlines()})
    Path("/mnt/run/loaded.json").write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
