"""The fork server loads ip and tc once for all nodes (vm/guest/fork_server.c)."""

import json
from pathlib import Path

from support.plans import said_in_guest

from twoway.guest.cache import Guest

# Two namespaces whose interfaces of one name have different numbers; a batch between them fails.
SCRIPT = """
set -e
ip netns add one; ip netns add two
ip -netns two link add before type dummy
for each in one two; do ip -netns $each link add made type dummy; done
/mnt/venv/bin/python -I -S - > /mnt/run/said <<'END'
import sys
sys.path.insert(0, "/mnt/twoway/vm/guest")
from pathlib import Path
from fork_server import ForkServer
server = ForkServer(["env", "OF=env", "ip", "-json", "-batch", "-"])
for name in ("one", "two"):
    print(server.run(Path("/run/netns", name), "link set made up\\nlink show made\\n"))
    print(server.run(Path("/run/netns", name), "link show missing\\n"))
print(server.run(Path("/run/netns/none"), "link show made\\n"))
END
"""


def test_each_batch_is_a_process_of_its_own(guest: Guest, tmp_path: Path) -> None:
    """A batch inherits no state, output or failure of the batch before."""
    one, failed, two, again, nowhere = map(eval, said_in_guest(guest, tmp_path / "run", SCRIPT))
    for code, out, err in (one, two):
        (link,) = json.loads(out)
        assert (code, err, link["ifname"]) == (0, "", "made")
        assert "UP" in link["flags"]
    assert json.loads(one[1])[0]["ifindex"] != json.loads(two[1])[0]["ifindex"]
    assert failed == again
    assert failed[0] == 1
    assert 'Device "missing" does not exist.' in failed[2]
    assert nowhere[0] == 1
