"""What the rules' own tests derive: a plugin of pytest that prints the claims of each tree that they give to `derive`.

The tests are chosen so that each rule has a tree that a mistake in it changes. Where a test fails its trees are
printed all the same: `--rules` of mutants.py breaks rules on purpose.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from dpsql.core.analysis import derive as deriving
from dpsql.core.analysis.context import Context
from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.nodes import Node
from dpsql.core.ir.walk import Tagged
from tests.mutants.run import ROOT
from tests.proofs.printed import Claim, Printed

TESTS = "tests/core/analysis"
INTO = "DPSQL_RECORDED_CLAIMS"
"""Environment: the file that the plugin writes."""


def of_tests(tree: Path = ROOT) -> Printed:
    """The claims of those tests in a tree, each run anew."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made, "claims.json")
        command = [sys.executable, "-B", "-m", "pytest", "-q", "--tb=no", "-p", "no:xdist", "-p", "no:cacheprovider"]
        subprocess.run(
            [*command, "-p", "tests.proofs.recorded", TESTS], cwd=tree, capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": str(tree), INTO: str(file)},
        )  # fmt: skip
        claims, counts, left_out = json.loads(file.read_text(encoding="utf-8"))
    return Printed(None, [Claim(*each) for each in claims], Counter(counts), Counter(left_out))


PRINTED, OWN = Printed(), deriving.derive


def derive(node: Node, ctx: Context) -> Tagged[Facts]:
    """As it is, and printed."""
    tree = OWN(node, ctx)
    PRINTED.add(tree, ctx.policy, ctx.public.numbers)
    return tree


if INTO in os.environ:  # as early as this: what tests share imports it before pytest is configured
    deriving.derive = derive


def pytest_sessionfinish() -> None:
    """Write what was printed."""
    if INTO in os.environ:
        claims = [(claim.text, claim.rule, claim.operator) for claim in PRINTED.claims]
        told = json.dumps([claims, PRINTED.counts, PRINTED.left_out])
        Path(os.environ[INTO]).write_text(told, encoding="utf-8")
