"""Breaks what the proofs hold together, one thing at a time: `python -m tests.proofs.mutants`.

*Statements*: a proof of something false has to fail. *Printers*: plans that are printed
otherwise than they are have to be refused, or counted. `--rules` breaks the planner's rules, those of
tests/mutants/mutations.py, in a copy of the tree (ten minutes): SILENT says why proofs cannot see the others.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.core.analysis.facts import Facts
from dpsql.core.ir.expressions import Column, Expr
from dpsql.core.ir.nodes import Join, JoinKind, SetKind, SetOperation, Truncate
from dpsql.core.ir.types import BIGINT, INTEGER
from dpsql.core.ir.walk import Tagged
from dpsql.core.policy.tables import Table
from dpsql.core.value_classes import replace
from dpsql.planner.plan import Plan
from dpsql.policy.policy import Policy
from tests.fixtures.cases import files, outcome_of, policy
from tests.mutants.mutations import MUTATIONS, Mutation
from tests.mutants.run import ROOT
from tests.proofs import compiled
from tests.proofs.printed import Printed, Printer
from tests.proofs.recorded import of_tests
from tests.proofs.run import of_random_plans

RULES = "dpsql/core/analysis/rules/"


@dataclass(frozen=True, slots=True)
class Statement:
    """A change of what is stated: old stands once in the file."""

    name: str
    file: str
    old: str
    new: str


KEPT = (
    "| Left => some_ids (within (width l) cs)\n          | Semi | Anti => Some (Ids cs)\n"
    "          | Full => None end else"
)
STATEMENTS = (
    Statement("in a table joined with itself one row moves alone", "Plan", "Some (Nat.max 1 f * m)", "Some m"),
    Statement(
        "groups move by k", "Plan", "Some (Rows (2 * k))\n      | f => f end", "Some (Rows k)\n      | f => f end"
    ),
    Statement("truncation is free", "Plan", "Nat.max 1 t * k else 2 * k", "Nat.max 1 t * k else k"),
    Statement("FULL joins move once", "Plan", "(fun x => Nat.max 1 (2 * x)) b)", "(fun x => Nat.max 1 x) b)"),
    Statement(
        "a LEFT join keeps the right side's id",
        "Plan",
        KEPT,
        KEPT.replace("cs)\n", "cs ++ map (fun d => width l + d) (within (width r) ds))\n", 1),
    ),
    Statement(
        "UNION with public rows keeps ids",
        "Plan",
        "UnionAll | Union => None | _ => Some (Ids cs)",
        "_ => Some (Ids cs)",
    ),
    Statement("joins need no equality of ids", "Plan", "if on_id eqs cs ds then", "if negb (length ds =? 0) then"),
    Statement(
        "windows of several ids",
        "Plan",
        "if has_id part (within (width i) cs) then",
        "if 0 <? length (within (width i) cs) then",
    ),
    Statement("a key of UNION ALL repeats once", "Plan", "| UnionAll => oplus a b", "| UnionAll => omin a b"),
    Statement(
        "a padded row repeats no value", "Plan", "Left => omin (otimes a (omax1 mr))", "Left => omin (otimes a mr)"
    ),
    Statement(
        "truncated rows repeat less",
        "Plan",
        "(when (subset cs cols) (Some t))",
        "(when (subset cs cols) (Some (t - 1)))",
    ),
    Statement(
        "an expression keeps a frequency",
        "Plan",
        "Some (Col a) => [a] | _ => [] end) cols.",
        "Some (Col a) => [a] | _ => [c] end) cols.",
    ),
    Statement(
        "weights add up to less", "Bounds", "l1 (by_rows gs) <= F * (C * B).", "l1 (by_rows gs) <= F * (C * B) - 1."
    ),
    Statement(
        "a total is never at its limit",
        "Bounds",
        "total_l1 v : l1 (by_total v) <= F * T.",
        "total_l1 v : l1 (by_total v) < F * T.",
    ),
)


def statements() -> Iterator[str]:
    """Those that are proved although they are false."""
    for change in STATEMENTS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            for name in compiled.FILES:  # what comes before is compiled already
                for end in ("v", "vo"):
                    shutil.copy(compiled.BUILT / f"{name}.{end}", folder)
            path = folder / f"{change.file}.v"
            text = path.read_text(encoding="utf-8")
            assert text.count(change.old) == 1, change.name
            path.write_text(text.replace(change.old, change.new), encoding="utf-8")
            try:
                for name in compiled.FILES[compiled.FILES.index(change.file) :]:
                    compiled.coqc(name, folder)
            except compiled.ProofError:
                continue
            yield change.name


# --- the printer -----------------------------------------------------------------------------------------------------


class NoEqualities(Printer):
    """Leaves the equalities of a join out."""

    def join(self, node: Join, tree: Tagged[Facts]) -> str:
        return Printer.join(self, replace(node, equalities=()), tree)


class OtherSide(Printer):
    """Exchanges the sides of LEFT joins."""

    def join(self, node: Join, tree: Tagged[Facts]) -> str:
        if node.kind is not JoinKind.LEFT:
            return Printer.join(self, node, tree)
        turned = tuple(replace(e, left=e.right, right=e.left) for e in node.equalities)
        other = replace(node, left=node.right, right=node.left, equalities=turned)
        return Printer.join(self, other, replace(tree, inputs=tree.inputs[::-1]))


class AllPublic(Printer):
    """Calls private tables unchanged."""

    def protection(self, table: Table, names: Mapping[str, int]) -> str:
        return "Unchanged"


class NoConversions(Printer):
    """Prints a converted column as the column."""

    def expr(self, expr: Expr, places: Mapping[int, int], column: Column | None = None) -> str:
        return Printer.expr(self, expr, places)


class NoTruncation(Printer):
    """Leaves what makes a frequency true out."""

    def plan(self, tree: Tagged[Facts]) -> str:
        return self.below(tree) if isinstance(tree.node, Truncate) else Printer.plan(self, tree)


class AllUnion(Printer):
    """Prints EXCEPT and INTERSECT as UNION."""

    def set_operation(self, node: SetOperation, tree: Tagged[Facts]) -> str:
        return Printer.set_operation(self, replace(node, kind=SetKind.UNION), tree)


class NoPromises(Printer):
    """Leaves out what is promised."""

    def promises(self, table: Table, names: Mapping[str, int]) -> list[tuple[tuple[int, ...], int]]:
        return []


PRINTERS = (NoEqualities, OtherSide, AllPublic, NoConversions, NoTruncation, AllUnion, NoPromises)


def printers() -> Iterator[tuple[str, str]]:
    """What is seen of each broken printer: claims that are refused, or what is printed less often."""
    right = printed(None)
    known = {claim.text for claim in right.claims}
    for broken in PRINTERS:
        wrong = printed(broken)
        new = [text for text in dict.fromkeys(claim.text for claim in wrong.claims) if text not in known]
        refused = compiled.refused(new) if new else []
        fewer = sorted(name for name, number in right.counts.items() if wrong.counts[name] < number)
        told = broken(policy("pages"), "", {}).expr(Column(1, "a", INTEGER), {1: 0}, Column(2, "a", BIGINT))
        fewer += [] if told.startswith("Fun") else ["functions, as a converted column is none"]
        seen = [*([f"{len(refused)} claims refused"] if refused else []), *(f"fewer of {name}" for name in fewer[:2])]
        yield broken.__doc__ or broken.__name__, ", ".join(seen)


def printed(broken: type[Printer] | None) -> Printed:
    """Claims of some fixtures and worlds."""
    found = of_random_plans(range(6), printer=broken)
    for plan, own in shown_plans():
        found.add_releases(plan.tree, own, plan.basis.public)
    return found


# --- the planner's rules ---------------------------------------------------------------------------------------------

BY_ID = "functions of the id are not proved"
VALUES = "values are not part of a plan of Plan.v"
PERIODS = "periods of growing tables are printed as a filter"
LIMITS = "what a release counts on is not part of a plan of Plan.v"
NUMBERS = "row numbers as a key are not derived"
SILENT = {
    **dict.fromkeys(
        ["periods-never-said", "periods-that-are-not-closed", "parts-of-periods", "periods-by-another-column"], PERIODS
    ),
    **dict.fromkeys(
        ["groups-beside-rows-believed", "one-row-in-each-group-is-one-row", "nullable-key", "replaced-id-as-one"],
        LIMITS,
    ),
    **dict.fromkeys(
        [
            "some-columns-find-the-row", "several-rows-are-a-function", "padded-rows-are-a-function",
            "equal-or-missing", "computed-columns-of-the-ids-row", "computed-columns-that-equal-the-ids",
            "expressions-of-functions-of-the-id", "zeros-of-an-id-are-one-value",
            "carried-by-any-column-is-the-ids-own",
        ],
        BY_ID,
    ),
    **dict.fromkeys(
        [
            "least-of-no-row", "window-sum-of-doubles", "nulls-of-a-computed-column", "spread-of-a-sample",
            "facts-that-survive-a-filter", "measured-keys-kept", "key-of-a-computed-integer",
        ],
        VALUES,
    ),
    **dict.fromkeys(["window-key-of-ranks", "window-one-place-too-few", "row-numbers-by-belief"], NUMBERS),
}  # fmt: skip
"""Mutations of rules that claims do not show, and why."""

SHOWN = ("joins", "windows", "set_operations", "limits", "replaced", "subqueries", "keys")
"""Fixture files whose plans are made under a broken rule."""


def shown_plans() -> Iterator[tuple[Plan, Policy]]:
    """Plans of those files, with their policies."""
    for file in files():
        for case in file.cases if file.path.parent.name == "plan" and file.path.stem in SHOWN else ():
            plan = outcome_of(case)
            if not isinstance(plan, tuple):
                yield plan, policy(case.settings["policy"])


def shown_claims() -> list[str]:
    """Claims of the rules' tests, as the tree at hand makes them."""
    return [claim.text for claim in of_tests().claims]


def broken_rule(mutation: Mutation, copy: Path, known: set[str]) -> str:
    """`noticed`, `silent`, or `fails` where no plan is made any more. known: claims that are derived, or listed."""
    path = copy / mutation.path
    text = path.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, mutation.name
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        told = subprocess.run(
            [sys.executable, "-B", "-m", "tests.proofs.mutants", "--claims"],
            cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        path.write_text(text, encoding="utf-8")
    if told.returncode:
        return f"fails: {told.stderr.strip().splitlines()[-1][:100]}"
    new = [claim for claim in dict.fromkeys(json.loads(told.stdout)) if claim not in known]
    refused = compiled.refused(new) if new else []
    return f"noticed by {len(refused)} claims" if refused else "silent"


def rules(only: str = "") -> Iterator[tuple[str, str]]:
    """What is seen of each mutation of the rules."""
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made)
        for part in ("dpsql", "tests", "grammar"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        known = set(shown_claims())
        for mutation in MUTATIONS:
            if mutation.path.startswith(RULES) and only in mutation.name:
                yield mutation.name, broken_rule(mutation, copy, known)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all is noticed that can be."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs.mutants")
    parser.add_argument("--rules", nargs="?", const="", help="break the planner's rules, those whose names hold this")
    parser.add_argument("--claims", action="store_true", help="print claims, for --rules")
    options = parser.parse_args(arguments)
    if options.claims:
        json.dump(shown_claims(), sys.stdout)
        return 0
    compiled.compile_all()
    if options.rules is not None:
        unseen = []
        for name, told in rules(options.rules):
            print(f"{name}: {told}{f', {SILENT[name]}' if name in SILENT else ''}", flush=True)
            unseen += [name] if told == "silent" and name not in SILENT else []
        return int(bool(unseen))
    proved = list(statements())
    print(f"{len(STATEMENTS)} false statements, {len(proved)} of them proved: {proved}", flush=True)
    unseen = []
    for name, told in printers():
        print(f"printer: {name} {told or 'not noticed'}", flush=True)
        unseen += [] if told else [name]
    return int(bool(proved or unseen))


if __name__ == "__main__":
    sys.exit(main())
