"""Describe a Mininet topology as JSON, inside the sandbox.

A topology's file is Python, and may do anything: this program runs it where that does no harm
(twoway/spec/topology.py). It needs the standard library and Mininet alone.

    describe_topology.py FILE NAME PARAMETERS

It prints a document, or {"error": ...} if the file fails, ends early or is no topology.
"""

import importlib.util
import json
import os
import sys
from types import ModuleType
from typing import Any

# Mininet compares Open vSwitch's version with distutils, which is gone from Python, and takes 0.2 s
# to load where it is setuptools'. There are no switches here, so a stand-in is enough.
_stand_in = ModuleType("distutils.version")
_stand_in.StrictVersion = str  # type: ignore[attr-defined]
sys.modules["distutils"] = sys.modules["distutils.version"] = _stand_in
from mininet.examples.linuxrouter import LinuxRouter  # noqa: E402 - after the stand-in above
from mininet.node import Node  # noqa: E402


def described(path: str, name: str, parameters: dict[str, int]) -> dict[str, Any]:
    """Load a topology's file and list its nodes, links and places."""
    module_spec = importlib.util.spec_from_file_location(f"topologies.{name}", path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    topo = module.topos[name](**parameters)
    return {
        "routers": [n for n in topo.nodes() if issubclass(_class(topo, n), LinuxRouter)],
        "hosts": [n for n in topo.nodes() if not issubclass(_class(topo, n), LinuxRouter)],
        "links": [
            [_end(topo, info, end) for end in "12"]
            for _, _, info in topo.links(sort=True, withInfo=True)
        ],
        "queues": getattr(topo, "queues", {}),
        "delays": getattr(topo, "delays", {}),
    }


def _class(topo: Any, node: str) -> type:
    found: type = topo.nodeInfo(node).get("cls", Node)
    return found


def _end(topo: Any, info: dict[str, Any], end: str) -> dict[str, Any]:
    node = info[f"node{end}"]
    address = (info.get(f"params{end}") or {}).get("ip") or topo.nodeInfo(node).get("ip")
    return {"node": node, "port": info[f"port{end}"], "address": address}


def main() -> None:
    """Print the description of the topology that the arguments name."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what the topology prints is no answer
    path, name, parameters = sys.argv[1:]
    try:
        answer = json.dumps(described(path, name, json.loads(parameters)))
    except BaseException as error:  # noqa: BLE001 - an exit, too, is an error of the topology's
        answer = json.dumps({"error": f"{type(error).__name__}: {error}"})
    os.write(answers, answer.encode())
    os._exit(0)  # whatever it has left to do at the end


if __name__ == "__main__":
    main()
