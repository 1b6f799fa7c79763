"""The public interface recorded on one database and replayed on its neighbour.

All that noise is added to is written down in a run on one database, and all that it became. On the neighbour the same
numbers come out of each draw, whatever goes in. So: what goes in may be apart by what is stated and no more, and all
that is not noise (the answer, its ±, its notes, its price, its errors) has to be the same, to the letter.
Run: `python replay.py FOLDER`, whose `conformance/` holds the databases; 1 if something is apart.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from dpsql.core.noise.measurement import Measurement
from dpsql.core.release.drawing import NoiseDraws, Noisy

Draw = tuple[Measurement, list[int], Noisy]


@dataclass(slots=True)
class Recorder:
    """In the place of a run's draws. earlier: the draws of the run that is replayed."""

    earlier: list[Draw] | None = None
    draws: list[Draw] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    original: Any = NoiseDraws.__call__

    def __call__(self, noise: NoiseDraws, place: int, exact: Any) -> Noisy:
        measurement = noise._declared[place]
        drawn: Noisy = self.original(noise, place, exact)
        number = len(self.draws)
        if self.earlier is not None:
            if number >= len(self.earlier) or len(self.earlier[number][1]) != len(exact):
                self.problems.append("another number of draws")
            else:
                self.compare(self.earlier[number][1], list(exact), measurement)
                drawn = self.earlier[number][2]
        self.draws.append((measurement, list(exact), drawn))
        return drawn

    def compare(self, one: list[int], other: list[int], m: Measurement) -> None:
        moved = [abs(a - b) for a, b in zip(one, other, strict=True) if a != b]
        claims = [*m.by_unit.values()] or [m.sensitivity]
        seen = (len(moved), sum(moved), sum(d * d for d in moved), max(moved, default=0))
        for norm, at in zip(("l0", "l1", "l2_squared", "linf"), seen, strict=True):
            most = max(Fraction(getattr(claim, norm)) for claim in claims)
            if at > most:
                self.problems.append(f"{norm} of a draw is {at}, stated is {most}")


def run(case: Path, side: str, folder: Path, recorder: Recorder) -> str:
    """All that is told of a run on one of the two databases."""
    data = folder / "kit.duckdb"
    data.unlink(missing_ok=True)
    with duckdb.connect(str(data)) as db:
        db.execute((case / f"{side}.sql").read_text(encoding="utf-8"))
    kept = NoiseDraws.__call__
    setattr(NoiseDraws, "__call__", lambda noise, place, exact: recorder(noise, place, exact))  # noqa: B010
    try:
        with dpsql.connect(folder / "policy.yaml", ledger=folder / "ledger.sqlite") as con:
            answer = con.sql((case / "query.sql").read_text(encoding="utf-8")).run(epsilon=1, delta="1e-6", fresh=True)
            return f"{answer.columns}\n{answer.rows}\n{answer}\n{answer.spent}"
    except dpsql.Error as error:
        return f"{type(error).__name__}: {error}"
    finally:
        setattr(NoiseDraws, "__call__", kept)  # noqa: B010


def apart(case: Path) -> Iterator[str]:
    """What two runs of a case show of the data."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "policy.yaml").write_text((case / "policy.yaml").read_text(encoding="utf-8"), encoding="utf-8")
        first = Recorder()
        one = run(case, "one", folder, first)
        second = Recorder(first.draws)
        other = run(case, "other", folder, second)
    yield from second.problems
    if len(second.draws) != len(first.draws):
        yield "another number of draws"
    if one != other:
        lines = [pair for pair in zip(one.splitlines(), other.splitlines(), strict=False) if pair[0] != pair[1]]
        yield f"what is told differs: {lines[:1] or (one, other)}"


def main() -> int:
    """Prints what was found. Queries of private keys are left out: which keys there are is told, behind a threshold."""
    cases = sorted(Path(sys.argv[1], "conformance").iterdir())
    for case in cases:
        if case.is_dir() and not case.name.startswith("private-keys"):
            for line in apart(case):
                print(f"found: {case.name}: {line}", flush=True)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
