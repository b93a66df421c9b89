"""The notebook of the documentation, run by a real kernel: `python -m tests.notebook --update` writes its outputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.places import DOCS

PAGE = DOCS / "first-steps.ipynb"
LIMIT = 120  # seconds for one cell


def executed(page: Path = PAGE) -> Any:
    """The notebook with the outputs that its cells have now. Raises CellExecutionError for a cell that fails."""
    found = nbformat.read(page, as_version=4)
    with TemporaryDirectory() as folder:  # nothing is read from, or left in, the folder of the documentation
        os.environ["IPYTHONDIR"] = os.environ["JUPYTER_RUNTIME_DIR"] = folder
        resources = {"metadata": {"path": folder}}
        # what a cell prints comes in as many pieces as the kernel likes
        NotebookClient(
            found, timeout=LIMIT, kernel_name="python3", resources=resources, coalesce_streams=True
        ).execute()
    for cell in found.cells:
        cell.metadata = {}  # times of the run
    return found


def outputs(notebook: Any) -> list[list[Any]]:
    """What every code cell shows: printed text, and each value as text and as a picture."""
    return [
        [output.get("text") or dict(output["data"]) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


if __name__ == "__main__":
    run = executed()
    if sys.argv[1:] == ["--update"]:
        nbformat.write(run, PAGE)
    else:
        print(*outputs(run), sep="\n")
