"""The way of one query through dpsql: how many calls, functions, files, and how deep. No time is taken.

    python benchmarks/way_of_a_query.py            # of the tree it is run in

A join, a count and an average by group on the demo's clinic: planned and run, once another query has loaded all
modules. Counted are Python calls of functions that are defined in `dpsql`, those of other threads included; the depth
counts such functions on the stack of the caller's thread.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

QUERY = """SELECT region, COUNT(*) AS visits, AVG(cost) AS mean_cost
FROM visits JOIN patients USING (patient_id)
GROUP BY region"""
FIRST = "SELECT COUNT(*) AS n FROM patients GROUP BY region"


class Way:
    """What is called between `__enter__` and `__exit__`."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}{os.sep}"
        self.calls: Counter[tuple[str, str, int]] = Counter()
        self.depth = self._now = 0

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._package):
            return
        if event == "call":
            self.calls[code.co_filename, code.co_qualname, code.co_firstlineno] += 1
        if threading.current_thread() is threading.main_thread():
            self._now += 1 if event == "call" else -1
            self.depth = max(self.depth, self._now)

    def __enter__(self) -> Way:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def __str__(self) -> str:
        files = {file for file, *_ in self.calls}
        numbers = (sum(self.calls.values()), "calls"), (len(self.calls), "functions"), (len(files), "files")
        return ", ".join(f"{number:,} {what}" for number, what in numbers) + f", depth {self.depth}"


def main() -> None:
    """Print the numbers: of a whole query, of its plan, and of its run."""
    tree = Path.cwd()
    sys.path.insert(0, str(tree))
    import dpsql

    package = Path(dpsql.__file__).parent
    if package.parent != tree:
        raise SystemExit(f"run it in a tree of dpsql: {package} was found")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dpsql", "demo", folder]
        environment = {**os.environ, "PYTHONPATH": str(tree), "XDG_STATE_HOME": folder}
        os.environ["XDG_STATE_HOME"] = folder
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment, cwd=tree)
        with dpsql.connect(Path(folder) / "clinic.yaml", analyst="ana", ledger=":memory:") as con:
            con.execute(FIRST, epsilon="0.1")
            whole, planned, run = Way(package), Way(package), Way(package)
            with whole:
                con.sql(QUERY).run(epsilon="0.1")
            with planned:
                plan = con.plan(f"{QUERY} ORDER BY region", epsilon="0.2")
            with run:
                con.run(plan)
    print(f"whole: {whole}\nplan:  {planned}\nrun:   {run}")


if __name__ == "__main__":
    main()
