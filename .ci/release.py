"""What a release has to pass, and the files that it consists of: `make release-check`.

The committed tree is built twice, in two folders, and both times the same bytes have to come out. Then `twine check`;
then, for each Python that this machine has, an environment of its own with the wheel in it and nothing of this
repository, in which the demo is made and a query answered. dist/ holds the wheel, the sdist, the list of what was
installed beside it (CycloneDX) and the hashes of the three.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".venv-engines" / "release"
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
QUERY = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY region"
REGIONS = ["east", "north", "south", "west"]


def run(
    *command: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None, text: str = ""
) -> str:
    """What a program prints. Ends this one, with what that one said, where it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **(environment or {})}, input=text,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"release: {' '.join(map(str, command))} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def environment_of(python: str | Path, folder: Path, *wanted: str | Path) -> Path:
    """A new environment with these packages: its programs' folder."""
    run(python, "-m", "venv", "--clear", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    return programs


def tools() -> Path:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    return environment_of(sys.executable, TOOLS, *extras["release"])


def copy_of_commit(folder: Path) -> Path:
    """The tree as it is committed."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def built(programs: Path, source: Path, into: Path) -> dict[str, str]:
    """Build wheel (out of the sdist) and sdist: file name → hash."""
    time = run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    run(
        programs / "python", "-m", "build", "--outdir", into, source,
        environment={"SOURCE_DATE_EPOCH": time, "PYTHONPATH": ""},
    )  # fmt: skip
    return hashes(into)


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def difference(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The files of two builds that are not the same."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def pythons(given: Sequence[str]) -> dict[str, str]:
    """Version → a Python of it that this machine has and that starts."""
    kept = []
    if shutil.which("pyenv"):
        kept = [str(p) for p in Path(run("pyenv", "root").strip()).glob("versions/*/bin/python")]
    found: dict[str, str] = {}
    for candidate in given or [*(f"python{version}" for version in VERSIONS), *sorted(kept)]:
        path = shutil.which(candidate)
        if path is None:
            continue
        said = subprocess.run(
            [path, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        version = said.stdout.strip()
        if said.returncode == 0 and version in VERSIONS:
            found.setdefault(version, path)
    return found


def answers(programs: Path, folder: Path) -> str:
    """The first line of a query's answer, in a folder away from this repository."""
    outside = {"PYTHONPATH": "", "PYTHONSAFEPATH": "1", "NO_COLOR": "1"}
    run(programs / "dpsql", "demo", "clinic", cwd=folder, environment=outside)
    asked = [programs / "dpsql", "query", "clinic/clinic.yaml", QUERY, "--epsilon", "0.5", "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(run(*asked, cwd=folder, environment=outside))))
    if [row["region"] for row in rows] != REGIONS:
        sys.exit(f"release: the demo answered {rows}")
    return ", ".join(f"{row['region']} {row['n']}" for row in rows)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--python", action="append", default=[], help="a Python to try, instead of all that are found")
    options.add_argument("--require", action="append", default=[], help="a version that has to be among them")
    asked = options.parse_args()
    found = pythons(asked.python)
    if missing := [version for version in asked.require if version not in found] or (["any"] if not found else []):
        sys.exit(f"release: no Python {', '.join(missing)} here")
    programs = tools()
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        first = built(programs, copy_of_commit(work / "one"), work / "first")
        second = built(programs, copy_of_commit(work / "another-place"), work / "second")
        if differing := difference(first, second):
            sys.exit(f"release: built twice, not the same: {', '.join(differing)}")
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(work / "first", DIST)
        (wheel,) = DIST.glob("*.whl")
        print(f"built twice, the same bytes: {', '.join(first)}")
        run(programs / "twine", "check", "--strict", *DIST.iterdir())
        print("twine check --strict: passed")
        for number, (version, python) in enumerate(sorted(found.items())):
            place = work / version
            place.mkdir()
            installed = environment_of(python, place / "environment", wheel)
            named = run(installed / "dpsql", "--version").strip()
            print(f"Python {version}: {named} answers: {answers(installed, place)}")
            if number == 0:
                bill = DIST / f"{wheel.name.partition('-py3')[0]}.cdx.json"
                run(
                    programs / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON",
                    "--pyproject", ROOT / "pyproject.toml", "-o", bill, installed / "python",
                )  # fmt: skip
    for version in VERSIONS:
        if version not in found:
            print(f"Python {version}: not on this machine, so not tried")
    sums = "".join(f"{digest}  {name}\n" for name, digest in hashes(DIST).items())
    (DIST / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print(sums, end="")


if __name__ == "__main__":
    main()
