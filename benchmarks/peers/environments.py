"""Makes the virtual environments of the peers, each with the versions that its requirements.txt pins.

    python -m benchmarks.peers.environments [FOLDER] [PEER …]

A peer is a folder beside this file, with requirements.txt and adapter.py, quantiles.py or dashboards.py. Environments
take up to 1 GB each (Spark).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which

from benchmarks.frame import CACHE

HERE = Path(__file__).resolve().parent
PEERS = {
    "smartnoise": "SmartNoise SQL",
    "opendp": "OpenDP polars",
    "qrlew": "Qrlew on DuckDB",
    "pipelinedp": "PipelineDP",
    "tumult": "Tumult on Spark",
}
"""Folder → name, of those that are asked the five queries."""
QUANTILES = {
    "opendp": "OpenDP",
    "google": "Google's tree",
    "smartnoise": "SmartNoise SQL",
    "smartnoise_core": "SmartNoise Core",
}
"""Folder → name, of those that are asked for quantiles."""
DASHBOARDS = {"private_pgm": "Private-PGM"}
"""Folder → name, of those that are given marginals."""


class NotInstalled(Exception):
    """A peer cannot be had here; the text says why."""


def python_of(peer: str, folder: Path) -> Path:
    """The interpreter of a peer's environment in `folder`, made unless it is there. Raises NotInstalled."""
    if peer == "tumult" and which("java") is None:
        raise NotInstalled("needs Java, which is not installed")
    wanted = HERE / peer / "requirements.txt"
    home = folder.resolve() / peer
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = home / "installed.txt"
    if not (done.exists() and done.read_text(encoding="utf-8") == wanted.read_text(encoding="utf-8")):
        rmtree(home, ignore_errors=True)
        _must([sys.executable, "-m", "venv", str(home)])
        _must([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(wanted)])
        done.write_text(wanted.read_text(encoding="utf-8"), encoding="utf-8")
    return python


def _must(line: list[str]) -> None:
    said = subprocess.run(line, capture_output=True, text=True, env=_clean_environment())
    if said.returncode:
        reasons = [text for text in said.stderr.splitlines() if "ERROR" in text] or said.stderr.splitlines()
        raise NotInstalled("could not be installed: " + (reasons or ["no reason given"])[-1].strip())


def _clean_environment() -> dict[str, str]:
    """Without what would lead an interpreter to another's packages."""
    return {
        name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    }


def environment() -> dict[str, str]:
    """Variables for a process that runs an adapter."""
    return _clean_environment() | {"PYTHONPATH": str(HERE / "protocol")}


def main() -> None:
    given = sys.argv[1:]
    folder = Path(given[0]) if given else CACHE / "peers"
    for peer in given[1:] or {**PEERS, **QUANTILES, **DASHBOARDS}:
        try:
            print(peer, python_of(peer, folder), flush=True)
        except NotInstalled as reason:
            print(peer, reason, flush=True)


if __name__ == "__main__":
    main()
