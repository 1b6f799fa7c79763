"""Without Coq: each claim of the core says what proves it or why nothing does, and every name that is cited is stated.

That the proofs hold, and that plans claim no less than is proved, `make proofs` asks Coq (README.md beside this file).
"""

from __future__ import annotations

import pytest

from dpsql.core.ir.expressions import Column
from dpsql.core.ir.nodes import Join
from dpsql.core.ir.types import BIGINT, INTEGER
from tests.fixtures.cases import Case, files, outcome_of, policy
from tests.proofs.compiled import FILES, FOLDER, unproved
from tests.proofs.heads import CORE, cited, heads, says, stated
from tests.proofs.printed import Printed, Printer
from tests.proofs.run import REFUSED, read_refused

HEADS = heads()


@pytest.mark.parametrize("file", sorted(HEADS))
def test_a_claim_says_what_proves_it_or_why_nothing_does(file: str) -> None:
    assert says(HEADS[file]), f"{file}: add to its head  Proved by: File.lemma  or  Not proved: why"
    missing = set(cited(HEADS[file])) - stated(FOLDER)
    assert not missing, f"{file} cites what is not stated in tests/proofs: {missing}"


def test_all_rules_and_forms_make_claims() -> None:
    rooms = [CORE / "analysis" / "rules", CORE / "printing" / "forms"]
    named = {str(p.relative_to(CORE)) for room in rooms for p in room.glob("*.py") if p.name != "__init__.py"}
    assert named <= HEADS.keys()


def test_a_head_without_the_line_is_noticed() -> None:
    assert not says("Claim: all is well.\nWhy: it is.\nTested by: nothing")
    assert says("Claim: x.\nNot proved: nobody knows how\nTested by: y")
    assert cited("Claim: x.\nProved by: Near.near_refl, Ops.left_stable. Not proved: y\nTested by: Ops.z") == [
        "Near.near_refl",
        "Ops.left_stable",
    ]
    assert "Near.no_such_lemma" not in stated(FOLDER) and "Sound.derive_sound" in stated(FOLDER)


def test_nothing_is_taken_for_proved() -> None:
    sources = sorted(FOLDER.glob("*.v"))
    assert {path.stem for path in sources} == set(FILES)
    assert not unproved(path.read_text(encoding="utf-8") for path in sources)
    assert unproved(["Lemma x : False. Proof. Admitted.", "(* Axiom *) Parameter y : nat."]) == {
        "Admitted",
        "Parameter",
    }


def test_each_refusal_has_a_reason() -> None:
    assert all(reason and claim for reason, claim in read_refused(REFUSED.read_text(encoding="utf-8")))


def _case(title: str) -> Case:
    return next(case for file in files() for case in file.cases if case.title == title)


def test_a_claim_as_it_is_printed() -> None:
    """Tables from the policy, operators from the tree; one claim for each subtree below a release."""
    case = _case("a unique public key keeps row stability")
    plan = outcome_of(case)
    assert not isinstance(plan, tuple)
    printed = Printed()
    printed.add_releases(plan.tree, policy(case.settings["policy"]), plan.basis.public)
    joins = [claim for claim in printed.claims if claim.operator == Join.__name__]
    assert [claim.text for claim in joins] == [JOINED]
    assert not printed.left_out


TABLES = "[(4, RowUnit 1, []); (2, Unchanged, [([0], 1)])], []"
JOINED = f"({TABLES}, (Join Inner [(Col 2, Col 0)] None (Scan 0) (Scan 1)), Rows 1)"


def test_a_converted_column_is_a_function() -> None:
    printer = Printer(policy("shop"), "orders", {})
    column = Column(1, "a", INTEGER)
    assert printer.expr(column, {1: 0}, Column(2, "b", INTEGER)) == "Col 0"
    assert printer.expr(column, {1: 0}, Column(2, "b", BIGINT)) == "Fun 1"
