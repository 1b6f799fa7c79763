"""All benchmarks in one run, or some of them.

    python -m benchmarks [--size short] [--only queries growth …] [--folder DIR] [--into FILE]

Prints the tables and writes FILE (benchmarks/results/latest.json), with versions, machine and load beside the figures
of each benchmark. What was measured before and is not measured now stays in the file. `python -m benchmarks.render`
makes docs/benchmarks.md of it.

--size: quick takes seconds, and its figures say only that everything runs; short an hour; full several.
--only: the benchmarks to run; peers install themselves on first use.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.frame import RESULTS, Figures, measured, parser, settings_of
from benchmarks.parts import PARTS


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write. arguments: None takes those of the process."""
    options = parser(__doc__, "python -m benchmarks")
    options.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options.add_argument("--into", type=Path, default=RESULTS / "latest.json")
    given = options.parse_args(arguments)
    settings = settings_of(given)
    given.into.parent.mkdir(parents=True, exist_ok=True)
    report: Figures = json.loads(given.into.read_text(encoding="utf-8")) if given.into.exists() else {}
    for name in given.only:
        part = PARTS[name]
        print(f"\n## {part.TITLE}\n", flush=True)
        found = measured(part.run, settings)
        print(part.markdown(found["figures"]), flush=True)
        report[name] = found
        given.into.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    disk = sum(file.stat().st_size for file in settings.folder.rglob("*") if file.is_file())
    print(f"\nwritten to {given.into}; {disk / 1e9:.1f} GB of tables and environments stay in {settings.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
