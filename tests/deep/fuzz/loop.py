"""Fuzzing for as long as one likes: blindly, or guided by the lines of dpsql that an input reaches."""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.deep.fuzz.target import Target

MOST_BYTES = 1 << 16
"""Longest input that is made."""


class Loop:
    """Runs a target, keeps inputs that break its contract, one for each place that they break it at, and counts."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.seen: Counter[str] = Counter()
        self.broken: dict[object, Path] = {}

    def run(self, data: bytes) -> None:
        """Run one input; whatever it raises is a bug, and the input is written into the corpus."""
        try:
            self.seen[self.target.one(data)] += 1
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = (type(error), last.filename, last.lineno)
            if place not in self.broken:
                path = self.target.folder / f"crash-{hashlib.sha256(data).hexdigest()[:12]}"
                path.write_bytes(data)
                self.broken[place] = path
                print(f"\n{self.target.name}: {path} breaks the contract", file=sys.stderr)
                traceback.print_exc()

    def report(self) -> str:
        """How many inputs ended how."""
        usual = ", ".join(f"{what} {count}" for what, count in self.seen.most_common(10))
        return f"{self.target.name}: {sum(self.seen.values()):,} inputs ({usual}); broken at {len(self.broken)} places"


def blind(target: Target, seconds: float, seed: int) -> bool:
    """Random mutations of the corpus. True if no input broke the contract."""
    rng, corpus, loop = Random(seed), target.corpus(), Loop(target)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        loop.run(target.mutate(rng.choice(corpus), rng, corpus)[:MOST_BYTES])
    print(loop.report(), flush=True)
    return not loop.broken


def guided(target: Target, atheris: Any, seconds: float, seed: int) -> None:
    """With atheris, under whose `instrument_imports` dpsql has to be imported. Ends the process."""
    corpus, loop = target.corpus(), Loop(target)
    end = time.monotonic() + seconds

    def run(data: bytes) -> None:
        if time.monotonic() > end:
            print(loop.report(), flush=True)
            atexit._run_exitfuncs()  # temporary folders go
            os._exit(bool(loop.broken))  # an exception would be a crash
        loop.run(data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < 0.2:  # the fuzzer's own mutations know which bytes were compared with which
            return bytes(atheris.Mutate(data, most))
        return target.mutate(bytes(data), rng, corpus)[:most]

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(corpus):
            (Path(folder) / f"{number:05}").write_bytes(data)
        options = [f"-seed={seed}", f"-max_len={MOST_BYTES}", "-verbosity=0", "-timeout=120", "-rss_limit_mb=6000"]
        atheris.Setup([sys.argv[0], *options, folder], run, custom_mutator=mutate)
        atheris.Fuzz()
