"""Playbooks as a user runs them, on inventories that tests write."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from support.running import ROOT

PLAYBOOKS = ROOT / "playbooks"


@dataclass(frozen=True)
class Played:
    """The result of `ansible-playbook`."""

    status: int
    said: str
    took_s: float

    def recap(self, host: str) -> dict[str, int]:
        """Return a host's line of the recap."""
        (line,) = re.findall(rf"^{host} +: (.*)$", self.said, re.MULTILINE)
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}

    def sentences(self) -> str:
        """Return the output without the line breaks that Ansible inserts."""
        return re.sub(r"\s+", " ", self.said)


def command(playbook: str, inventory: Path, *options: str) -> list[str]:
    """Return the command that runs a playbook."""
    program = Path(sys.executable).with_name("ansible-playbook")
    return [str(program), "-i", str(inventory), str(PLAYBOOKS / f"{playbook}.yml"), *options]


def play(playbook: str, inventory: Path, *options: str) -> Played:
    """Run a playbook."""
    environment = {**os.environ, "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg")}
    environment |= {"ANSIBLE_HOME": str(inventory.parent / "ansible"), "ANSIBLE_NOCOLOR": "1"}
    began = time.monotonic()
    done = subprocess.run(
        command(playbook, inventory, *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment,
    )
    return Played(done.returncode, done.stdout, time.monotonic() - began)
