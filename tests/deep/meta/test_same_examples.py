"""Every property test draws the same examples wherever and whenever it runs.

A test that draws others fails on one machine, for a reason that its commit has nothing to do with. What the examples
may depend on is the test and the version of Hypothesis: not the order of sets, nor which modules were imported before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib, sys
PREPARE
import tests.conftest
from tests.deep.frontend import test_grammar
from hypothesis import given, settings
from hypothesis import strategies as st

drawn = []
held, tables = test_grammar.policy("pages"), test_grammar.relations("pages")
test_grammar.run(test_grammar.queries(held, tables, True), lambda sql: drawn.append(sql) or "", 60)
@settings(max_examples=300)
@given(st.tuples(st.integers(-1000, 10**6), st.floats(), st.text()))
def plain(value):
    drawn.append(repr(value))
plain()
assert len(drawn) > 300
print(hashlib.sha256(chr(10).join(drawn).encode("utf-8", "replace")).hexdigest())
"""
OTHER = "import benchmarks, docs.generate, dpsql.faces.audit.audited_query, dpsql.faces.cli.main"
RESTORED = "import hypothesis.internal.conjecture.providers as p; restored = p._get_local_constants"


def drawn(root: Path, prepare: str, seed: str) -> str:
    """The digest of the examples of a new process."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
    environment.pop("HYPOTHESIS_PROFILE", None)
    code = PROGRAM.replace("PREPARE", prepare)
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_examples_depend_on_neither_sets_nor_imports(root: Path) -> None:
    plain = drawn(root, "", "1")
    assert drawn(root, OTHER, "2") == plain
    kept = f"{OTHER}\n{RESTORED}\nimport tests.conftest; p._get_local_constants = restored"
    assert drawn(root, kept, "1") != plain, "the twin: constants of imported modules are drawn"
