"""An environment for one engine, below `.venv-engines/`: what is in `.venv`, and the engine's client and server.

    python -m tests.engines_elsewhere.environment postgres

`clients` is one for what speaks to a server of dpsql.

It borrows the packages of the interpreter that runs this, so it is made in seconds. A server that pip can install is
taken where it has a wheel for this Python; else the tests look for one that the machine has.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = {"postgres": ("pgserver", sys.version_info < (3, 13))}
"""Extra of dpsql, where there is one → a package that holds a server, and whether it has a wheel for this Python."""


def make(extra: str) -> Path:
    """Make the environment anew; its folder."""
    folder = ROOT / ".venv-engines" / extra
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, symlinks=sys.platform != "win32")
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / Path(sys.executable).name
    if not python.exists():
        python = scripts / "python"
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    borrowed = sysconfig.get_path("purelib")
    (Path(own.stdout.strip()) / "borrowed.pth").write_text(f"import site; site.addsitedir({borrowed!r})\n")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        extra
    ]
    install(python, *wanted)
    server, there = SERVERS.get(extra, ("", False))
    if not server:
        pass
    elif there:
        install(python, "--no-deps", server)
    else:
        print(f"{server} has no wheel for Python {sys.version_info.major}.{sys.version_info.minor}")
    return folder


def install(python: Path, *what: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *quiet, *what], check=True)


if __name__ == "__main__":
    print(f"made {make(sys.argv[1])}")
