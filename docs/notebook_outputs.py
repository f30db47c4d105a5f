"""Run the notebooks of docs/notebooks, which are committed without outputs."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

# For a cell, with the experiments that it runs.
MOST_S = 600


def with_outputs(path: Path) -> str:
    """Run a notebook; return it as JSON, with the outputs of its cells, without stderr."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=MOST_S, kernel_name="python3", record_timing=False)
    client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    return str(nbformat.writes(notebook))
