"""Breaks the trusted core on purpose, one line at a time: `make mutants`. Every mutation has to be caught by a test.

Each mutation of `mutations.py` is written into a copy of the tree, where the tests that it names run until one fails.
A failure counts only if the same test passes without any mutation. What was found goes to
docs/developers/mutations.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

from tests.mutants.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "docs" / "developers" / "mutations.md"
NEEDED = ("benchmarks", "docs", "dpsql", "examples", "grammar", "tests", "pyproject.toml", "README.md")
LONGEST = 600
"""Seconds; a mutation that hangs the tests is not a caught one."""

NOT_CAUGHT = "nothing yet"
_HEAD = """# Mutations of the trusted core

Each of these changes was made to a copy of the code, and the named test failed because of it. `make mutants` does it
again, and fails if one is not caught. This file is written by it: below each file its mutations, what each would
break, and the test that caught it. Where that is one of `tests/deep`, which `make test` leaves out, the reason stands
beside it.
"""


def applies(mutation: Mutation, root: Path = ROOT) -> bool:
    """Whether the text that the mutation replaces stands in its file exactly once."""
    return (root / mutation.path).read_text(encoding="utf-8").count(mutation.old) == 1


def table(caught: Mapping[str, str]) -> str:
    """The page. caught: name of a mutation → the test that failed."""
    files: dict[str, list[Mutation]] = {}
    for mutation in MUTATIONS:
        files.setdefault(mutation.path, []).append(mutation)
    lines = [_HEAD]
    for path, mutations in sorted(files.items()):
        lines += [f"## {path}\n", *(f"- {m.name}: {m.breaks}: {_by(m, caught)}" for m in mutations), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _by(mutation: Mutation, caught: Mapping[str, str]) -> str:
    if mutation.name not in caught:
        return NOT_CAUGHT
    return f"`{caught[mutation.name]}`" + (f" ({mutation.deep})" if mutation.deep else "")


def known() -> dict[str, str]:
    """What the page says already: name of a mutation → the test that failed."""
    if not TABLE.exists():
        return {}
    text = TABLE.read_text(encoding="utf-8")
    return dict(re.findall(r"^- ([\w-]+): .*: `([^`]+)`(?: \(.*\))?$", text, re.MULTILINE))


def failures(tree: Path, tests: Sequence[str], *options: str) -> tuple[int, list[str]]:
    """pytest's exit code in a tree (-1 if it took too long), and the functions of the tests that failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=no", *options, *tests]
    here = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(command, cwd=tree, env=here, capture_output=True, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return -1, []
    return done.returncode, re.findall(r"^FAILED ([^\s\[]+)", done.stdout, re.MULTILINE)


@contextmanager
def copies(number: int) -> Iterator[SimpleQueue[Path]]:
    """Some copies of the tree, each for one mutation at a time."""
    with tempfile.TemporaryDirectory(prefix="dpsql-mutants-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        for i in range(number):
            tree = Path(folder, str(i))
            tree.mkdir()
            for name in NEEDED:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy2(ROOT / name, tree / name)
            free.put(tree)
        yield free


@contextmanager
def mutated(mutation: Mutation, tree: Path) -> Iterator[None]:
    """The tree with one mutation in it."""
    file = tree / mutation.path
    text = file.read_text(encoding="utf-8")

    def write(content: str) -> None:
        file.write_text(content, encoding="utf-8")
        # Two texts of one length, written in one second, would count as the same file.
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()

    try:
        write(text.replace(mutation.old, mutation.new))
        yield
    finally:
        write(text)


def catch(mutation: Mutation, free: SimpleQueue[Path]) -> tuple[Mutation, str | None]:
    """The test that fails because of a mutation; None if all pass, or if they could not be run."""
    start = monotonic()
    found: list[str] = []
    if applies(mutation):
        tree = free.get()
        with mutated(mutation, tree):
            code, found = failures(tree, mutation.tests, "-x")
        free.put(tree)
        verdict = f"caught by {found[0]}" if found else "SURVIVED" if code == 0 else f"NOT TESTED (pytest says {code})"
    else:
        verdict = "DOES NOT APPLY: its text is not found exactly once"
    print(f"{mutation.name}: {verdict} ({monotonic() - start:.0f} s)", flush=True)
    return mutation, found[0] if found else None


def run(mutations: Iterable[Mutation], workers: int) -> int:
    """Try the mutations, and write the page. 1 if one was not caught."""
    with copies(workers) as free:
        with ThreadPoolExecutor(workers) as pool:
            results = list(pool.map(lambda m: catch(m, free), mutations))
        catching = sorted({test for _, test in results if test is not None})
        code, broken = failures(free.get(), catching) if catching else (0, [])
    for test in broken:
        print(f"{test} fails without any mutation")
    sound = {m.name: test for m, test in results if test is not None and test not in broken}
    tried = {m.name for m, _ in results}
    if code in (0, 1):
        TABLE.write_text(table({**{n: t for n, t in known().items() if n not in tried}, **sound}), encoding="utf-8")
    print(f"{len(sound)} of {len(tried)} mutations caught")
    return int(code != 0 or len(sound) < len(tried))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Mutate the trusted core, and see which test notices.")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="these mutations, or those whose names begin so")
    parser.add_argument("--workers", type=int, default=1, help="mutations at a time (default: 1)")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if not options.only or m.name.startswith(tuple(options.only))]
    if not chosen:
        parser.error("no mutation has such a name")
    untried = [m for m in chosen if m.needs and importlib.util.find_spec(m.needs) is None]
    for mutation in untried:
        print(f"{mutation.name}: not tried, it needs {mutation.needs}")
    tried = [m for m in chosen if m not in untried]
    return run(tried, max(1, options.workers)) if tried else 0


if __name__ == "__main__":
    sys.exit(main())
