"""The notebook as Jupyter opens it: a kernel of its own that starts in the notebook's folder, or elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from pages import ROOT, copy_file

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def _executed(folder: Path, python: Path) -> nbformat.NotebookNode:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    kernel = AsyncKernelManager()
    kernel.kernel_spec.argv[0] = str(python)
    NotebookClient(notebook, km=kernel, timeout=120, record_timing=False, resources=where).execute()
    notebook.metadata.pop("language_info", None)  # of the Python that executed it
    return notebook


NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-\d+)?")


def _shown(notebook: nbformat.NotebookNode) -> list[str]:
    """What cells print or end with, as text."""
    shown = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    return [each["text"] if each["output_type"] == "stream" else each["data"]["text/plain"] for each in shown]


@pytest.mark.parametrize("folder", ["examples", "."])
def test_the_notebook_gives_the_results_that_it_is_stored_with(
    folder: str,
    tmp_path: Path,
    users_python: Path | None,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("models/lenet", "models/digits.npz"):
        copy_file(name, tmp_path)
    (tmp_path / "examples").mkdir()
    done = _executed(tmp_path / folder, users_python or Path(sys.executable))
    if request.config.getoption("--update-golden"):
        NOTEBOOK.write_text(nbformat.writes(done).replace(f"{tmp_path}/", "") + "\n", encoding="utf-8")
    for now, stored in zip(_shown(done), _shown(nbformat.read(NOTEBOOK, as_version=4)), strict=True):
        assert NUMBER.sub("N", now) == NUMBER.sub("N", stored)
        near = pytest.approx([float(each) for each in NUMBER.findall(stored)], rel=0.02, abs=0.1)
        assert [float(each) for each in NUMBER.findall(now)] == near  # float32 sums of another processor
    assert (tmp_path / folder / "lenet_bm1880.html").exists()


def test_a_notebook_without_the_data_says_what_is_missing(tmp_path: Path, users_python: Path | None) -> None:
    """Another folder of that name is none of ours."""
    (tmp_path / "models").mkdir()
    with pytest.raises(CellExecutionError, match="open the notebook inside the checkout, or copy its folder models"):
        _executed(tmp_path, users_python or Path(sys.executable))
