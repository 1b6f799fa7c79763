"""The example notebook runs in a real kernel; the repository holds it without outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[3] / "examples" / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", NAMES)
def test_kept_without_outputs(name: str) -> None:
    """With noise, each run has others."""
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert cell["cell_type"] != "code" or (cell["outputs"] == [] and cell["execution_count"] is None)


@pytest.mark.processes
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "XDG_STATE_HOME", "TMPDIR"):
        (tmp_path / variable).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=900, startup_timeout=900, resources=place).execute()
    shown: list[dict[str, Any]] = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    texts = [o["text"] for o in shown if o["output_type"] == "stream"]
    pages = [o["data"].get("text/html", "") for o in shown if "data" in o]
    pictures = [o for o in shown if "data" in o and "image/png" in o["data"]]
    assert any("cost: ε 1 of each rider" in text for text in texts)
    assert any("error[DP" in text for text in texts)
    assert any("<table>" in page and " ± " in page and "spent ε 1" in page for page in pages)
    assert len(pictures) == 2 and not any("Traceback" in text for text in texts)
