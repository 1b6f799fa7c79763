"""With sqlglot's compiled parser (`sqlglotc`) queries are read as without: its classes cannot be subclassed, only used.

The wheel is installed into a folder of its own, over a copy of the pure package, and the tests of reading run there.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot

ROOT = Path(__file__).resolve().parents[3]
TESTS = [
    "test_google.py",
    "test_dialects.py",
    "test_parse.py",
    "test_placeholders.py",
    "test_spans.py",
    "test_split.py",
]


@pytest.mark.processes
def test_reading_with_the_compiled_parser(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(Path(sqlglot.__file__).parent, site / "sqlglot")
    wanted = f"sqlglotc=={importlib.metadata.version('sqlglot')}"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--upgrade",
        "--target",
        str(tmp_path / "c"),
    ]
    found = subprocess.run([*install, "--only-binary", ":all:", wanted], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"{wanted} is not available for this Python")
    shutil.copytree(tmp_path / "c" / "sqlglot", site / "sqlglot", dirs_exist_ok=True)
    for module in (tmp_path / "c").glob("*.so"):
        shutil.copy(module, site)
    environment = {**os.environ, "PYTHONPATH": str(site)}
    compiled = "import sqlglot.parser; assert not sqlglot.parser.__file__.endswith('.py'), sqlglot.parser.__file__"
    subprocess.run([sys.executable, "-c", compiled], env=environment, check=True)
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        *(f"tests/frontend/{t}" for t in TESTS),
    ]
    result = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-3000:]
