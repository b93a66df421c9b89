"""The notebook: a real kernel runs every cell, and what it shows is what the page shows, pictures included."""

from __future__ import annotations

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from tests import notebook

pytestmark = pytest.mark.pages


@pytest.mark.filterwarnings("default")  # of the packages of Jupyter
def test_the_notebook_shows_what_its_cells_print() -> None:
    shown, found = (notebook.outputs(one) for one in (nbformat.read(notebook.PAGE, as_version=4), notebook.executed()))
    assert found == shown, "`python -m tests.notebook --update` writes the outputs"
    pictures = [output["image/svg+xml"] for cell in found for output in cell if "image/svg+xml" in output]
    assert len(pictures) == 2
    assert all(picture.startswith("<svg") for picture in pictures)


@pytest.mark.filterwarnings("default")
def test_a_cell_that_fails_is_a_failure(tmp_path) -> None:
    page = tmp_path / "broken.ipynb"
    broken = nbformat.read(notebook.PAGE, as_version=4)
    broken.cells = [nbformat.v4.new_code_cell("import mmaprobe\nmmaprobe.unit('hoper/mma')")]
    nbformat.write(broken, page)
    with pytest.raises(CellExecutionError, match="hoper"):
        notebook.executed(page)
