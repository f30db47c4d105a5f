"""Compare the ACKs in a sender's capture with the truth in the captures of both hosts.

    python verdicts_of_runs.py RESULTS

Prints capture-analysis/docs/how-true.md's table of runs: the verdict of capture-analysis on each
connection in the capture of its sender's host alone, against the spacing of its ACKs at both ends.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from capture_analysis import analyse
from capture_analysis.ack_compression import match_acks
from capture_analysis.errors import AnalysisError
from confusion import saying, show, truth
from simulated_path import Truth
from truth_corpus import compressed_share

from twoway.contract.network import Connection
from twoway.measure.analysis import Analysis

# Fewer ACKs give no verdict, as for simulated paths.
LEAST_ACKS = 30
# Connections per run that count: hundreds of short transfers are alike.
MOST = 10


def told(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield, for each connection of a run, the truth and the verdict at its sender."""
    analysis = Analysis(folder)
    documents: dict[str, dict[str, Any]] = {}
    for view in list(analysis.connections.values())[:MOST]:
        acks, _ = match_acks(view.acks_out, view.acks_in)
        if len(acks.sent_ns) <= LEAST_ACKS:
            continue
        interface = view.connection.source_interface
        if interface not in documents:
            (capture,) = (folder / "pcap").glob(f"{interface}.pcap*")
            documents[interface] = analyse(capture, flows=1000)
        share = compressed_share(Truth(acks.sent_ns, acks.arrived_ns))
        yield truth(share), saying(_verdict(documents[interface], view.connection))


def _verdict(document: Mapping[str, Any], connection: Connection) -> float | str | None:
    """Return the verdict on a connection's data: 1, 0, or the reason for having none."""
    ports = {connection.source_port, connection.port}
    for flow in document["flows"]:
        ends = [int(flow[end].rpartition(":")[2]) for end in ("source", "destination")]
        if {*ends} == ports:
            direction = "forward" if ends[0] == connection.source_port else "backward"
            found = (flow[direction] or {}).get("compression_verdict", {"value": None, "why": None})
            return found["why"] if found["value"] is None else float(found["value"])
    return None


def main(results: Path) -> None:
    """Print the matrix of all runs in a folder, by paper."""
    found = []
    for folder in sorted(path.parent for path in results.glob("*/*/manifest.json")):
        try:
            found += [(_kind(folder.parent.name), *each) for each in told(folder)]
        except AnalysisError as error:
            sys.stderr.write(f"{error}\n")
    show(sorted(found))


def _kind(experiment: str) -> str:
    """Name the paper of an experiment's run."""
    paper = experiment.partition("-")[0]
    return paper if paper in ("barakat", "dtm", "fast", "kalampoukas", "zhang") else "others"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
