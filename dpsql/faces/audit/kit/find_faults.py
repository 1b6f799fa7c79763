"""Plants faults in copies of the installed dpsql, one at a time, and says which harness found each: `python find.py`.

0 if every fault was found and nothing is found in dpsql as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parent
HARNESSES = ("streams", "neighbours", "replay", "expressions")
LONGEST = 900
"""Seconds; what hangs is not found."""


def look(harness: str, tree: Path) -> tuple[int, str]:
    """A harness on the dpsql in a folder: its exit code, and the first line that it prints."""
    command = [sys.executable, str(KIT / "harnesses" / f"{harness}.py"), *([str(KIT)] if harness == "replay" else [])]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, env=environment, cwd=tree, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return 2, "it did not end"
    said = [line for line in done.stdout.splitlines() if line.startswith("found: ")]
    if done.returncode == 1 and said:
        return 1, said[0].removeprefix("found: ")
    return (0, "") if done.returncode == 0 else (2, (done.stderr.strip().splitlines() or ["it broke"])[-1])


def plant(fault: dict[str, Any], tree: Path) -> str:
    """Write a fault into its file: the text that stood there. Raises SystemExit where it does not fit."""
    file = tree / str(fault["path"])
    text: str = file.read_text(encoding="utf-8")
    if text.count(fault["old"]) != 1:
        sys.exit(f"{fault['name']}: its text does not stand in {fault['path']} once")
    file.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
    return text


def find(fault: dict[str, Any], tree: Path) -> tuple[str, str]:
    """The harness that found a fault, and what it saw; that which is expected to comes first."""
    text = plant(fault, tree)
    try:
        first, broken = str(fault.get("harness", HARNESSES[0])), ""
        for harness in (first, *(other for other in HARNESSES if other != first)):
            code, seen = look(harness, tree)
            if code == 1:
                return harness, seen
            broken = f", {harness} broke: {seen}" if code else broken
        return "", broken
    finally:
        (tree / fault["path"]).write_text(text, encoding="utf-8")


def main() -> int:
    """Prints what each harness finds, and what none does."""
    import dpsql

    wanted = tuple(sys.argv[1:]) or ("",)
    faults = json.loads((KIT / "faults.json").read_text(encoding="utf-8"))
    faults = [fault for fault in faults if fault["name"].startswith(wanted)]
    sound, missed = True, []
    with tempfile.TemporaryDirectory() as made:
        tree = Path(made)
        left_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(dpsql.__file__).parent, tree / "dpsql", ignore=left_out)
        print(f"dpsql {dpsql.__version__}, as it is:", flush=True)
        for harness in HARNESSES:
            code, seen = look(harness, tree)
            sound = sound and code == 0
            print(f"  {harness}: {seen if code else 'nothing found'}", flush=True)
        for number, fault in enumerate(faults, 1):
            harness, seen = find(fault, tree)
            print(f"{number} of {len(faults)}  {fault['name']}: {fault['breaks']}", flush=True)
            print(f"  {f'found by {harness}: {seen}' if harness else f'NOT FOUND{seen}'}", flush=True)
            missed += [] if harness else [fault["name"]]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults found; not found: {', '.join(missed) or 'none'}")
    return 0 if sound and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
