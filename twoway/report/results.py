"""Finished runs, as the experiments and papers that they are of."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from capture_analysis.errors import AnalysisError

from twoway.contract.labels import label
from twoway.measure.run_folder import read_manifest

# The page of experiments that come from no paper.
BEYOND = "Beyond the papers"


@dataclass(frozen=True)
class Result:
    """One run: of an experiment, or of one point of its sweep.

    Attributes:
        folder: the run's.
        manifest: its manifest.json.
        metrics: its metrics.json.
    """

    folder: Path
    manifest: Mapping[str, Any]
    metrics: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The experiment's, with the point's name."""
        return str(self.manifest["experiment"]["id"])

    @property
    def point(self) -> Mapping[str, Any]:
        """The values by axis of the sweep; empty if it is none."""
        point: Mapping[str, Any] = self.manifest["point"]
        return point

    @property
    def fidelity_holds(self) -> bool:
        """The run deserves to be believed."""
        return all(row["pass"] for row in self.metrics["fidelity"])


@dataclass(frozen=True)
class Experiment:
    """The results of one experiment: one, or those of its points, in the sweep's order."""

    id: str
    results: tuple[Result, ...]

    @property
    def said(self) -> Mapping[str, Any]:
        """The experiment's file: title, summary, source, matrix ..."""
        said: Mapping[str, Any] = self.results[0].manifest["experiment"]
        return said

    @property
    def paper(self) -> str:
        """The paper it comes from."""
        source = self.said["source"]
        return str(source["paper"]) if source else BEYOND

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """The sweep's axes: labels of their values, in order."""
        return {
            name: [label(value) for value in axis["to"]]
            for name, axis in self.said["matrix"].items()
        }


def read_results(folders: Iterable[Path]) -> list[Experiment]:
    """The experiments that finished, analysed runs are of, by id.

    Args:
        folders: of runs.

    Raises: AnalysisError naming a folder that is no analysed run.
    """
    by_id: dict[str, list[Result]] = {}
    for folder in folders:
        result = Result(folder, read_manifest(folder), _document(folder / "metrics.json"))
        by_id.setdefault(result.id.partition("@")[0], []).append(result)
    return [Experiment(name, tuple(_ordered(found))) for name, found in sorted(by_id.items())]


def _ordered(results: list[Result]) -> list[Result]:
    """In the order of the matrix, the last axis varying fastest."""
    axes = Experiment(results[0].id, tuple(results)).axes
    return sorted(
        results, key=lambda r: [axes[axis].index(label(value)) for axis, value in r.point.items()]
    )


def _document(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise AnalysisError(f"{path}: {error}: not a run that was analysed") from error
