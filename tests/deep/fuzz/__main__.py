"""`make fuzz`: throw changed inputs at every place where bytes come in.

    python -m tests.deep.fuzz [--minutes N] [--seed N] [--blind] [TARGET ...]

With atheris (`pip install -e '.[fuzz]'`) inputs that reach new lines of dpsql are mutated further; without it, or with
--blind, those of the corpus are mutated at random. An input that breaks a target's contract is written into the
target's folder of tests/deep/fuzz/corpus: name it by what it is, mend dpsql, and the tests replay it from then on.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import secrets
import subprocess
import sys
from typing import Any

NAMES = ("policy", "sql", "flags", "parameters", "ledger", "answers", "wire")


def main() -> int:
    """0 if no input broke a contract."""
    parser = argparse.ArgumentParser(prog="python -m tests.deep.fuzz", description="Fuzz dpsql.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; default: all of them")
    parser.add_argument("--minutes", type=float, default=1, help="for each target; default: 1")
    parser.add_argument("--seed", type=int, default=secrets.randbits(31), help="to see the same inputs again")
    parser.add_argument("--blind", action="store_true", help="without atheris")
    given = parser.parse_args()
    names = given.targets or NAMES
    if set(names) - set(NAMES):
        parser.error(f"targets are {', '.join(NAMES)}")
    blind = given.blind or importlib.util.find_spec("atheris") is None
    if len(names) == 1:
        return one_target(names[0], given.minutes * 60, given.seed, blind)
    print(f"seed {given.seed}, {'blind' if blind else 'guided by atheris'}", flush=True)
    call = [sys.executable, "-m", "tests.deep.fuzz", "--minutes", str(given.minutes), "--seed", str(given.seed)]
    call += ["--blind"] if blind else []
    # A process each: atheris ends its own, and no target finds what another has left in memory.
    return max(subprocess.run([*call, name]).returncode for name in names)


def one_target(name: str, seconds: float, seed: int, blind: bool) -> int:
    """Fuzz one target in this process."""
    atheris: Any = None if blind else importlib.import_module("atheris")
    with contextlib.nullcontext() if blind else atheris.instrument_imports(include=["dpsql"]):
        from tests.deep.fuzz import loop

        target = importlib.import_module(f"tests.deep.fuzz.{name}").TARGET
        if blind:
            return 0 if loop.blind(target, seconds, seed) else 1
        loop.guided(target, atheris, seconds, seed)
        return 1  # never: atheris ends the process


if __name__ == "__main__":
    sys.exit(main())
