"""What the policy says about a text, before anything is ignored: a function of text, dialect, values of parameters and
policy alone.

So it can be made in another process, and kept (cache.py): it names no file and holds no setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.faces.check.documents.check_comments import Remark, directives_in
from dpsql.faces.check.documents.parameter_values import Values
from dpsql.faces.check.examine.ignores import read_ignores

if TYPE_CHECKING:
    from dpsql.frontend.text.split import Parts
    from dpsql.frontend.text.split import TextStatement as Part
    from dpsql.planner.plan import Plan

_NO_VALUES: Final[Values] = {}


@dataclass(frozen=True, slots=True)
class StatementPrice:
    """What one run of a statement takes from the budget.

    epsilon: the ε that its privacy clause or the policy's default asks for; None: neither says, and the cost is not
    known. cost: privacy unit → loss in the policy's accountant, for every unit that the statement touches.
    """

    epsilon: Fraction | None
    cost: tuple[tuple[str, PrivacyLoss], ...]


@dataclass(frozen=True, slots=True)
class ExaminedStatement:
    """One statement: where it stands in the text, its shape, findings and price (None: it was refused).

    A diagnostic whose source is None points into the text.
    """

    span: Span
    shape: str
    diagnostics: tuple[Diagnostic, ...]
    price: StatementPrice | None


@dataclass(frozen=True, slots=True)
class Examination:
    """The statements of a text, and what its comments say that ask for findings to be ignored or are wrong."""

    statements: tuple[ExaminedStatement, ...]
    remarks: tuple[Remark, ...]


def examine(
    text: str, policy: Policy, dialect: str, parameters: Values = _NO_VALUES, search: bool | None = None
) -> Examination:
    """Every statement against the policy. parameters: values for all texts, beside those of this one's comments.
    search: whether they are asked with limits that are searched; None: as the policy says.

    Raises Rejected DP903 for an unknown dialect.
    """
    from dpsql.faces.check.documents.parameter_comments import given_in
    from dpsql.frontend.text.split import split_text

    parts = split_text(text, dialect)
    given = given_in(text, parts, dialect, parameters)
    queries = [Span(part.whole.start, part.end) for part in parts.statements]
    ignores = read_ignores(text, directives_in(text, parts), queries)
    return Examination(
        tuple(
            _examine(part, policy, dialect, values, search)
            for part, values in zip(parts.statements, given.values, strict=True)
        ),
        (*ignores, *given.wrong, *_executed(parts, dialect)),
    )


_EXECUTED: Final = re.compile(r"/\*M?!")
"""MySQL executes what stands in `/*! … */`, MariaDB also in `/*M! … */`."""


def _executed(parts: Parts, dialect: str) -> Iterator[Remark]:
    """What is no comment to MySQL: nobody has read it."""
    for comment in parts.comments if dialect.lower() == "mysql" else ():
        if (mark := _EXECUTED.match(comment.text)) is not None:
            span = Span(comment.start, comment.start + len(comment.text.split("\n", 1)[0]))
            said = Diagnostic(
                "DP119", f"what follows {mark[0]} is executed by MySQL, and is a comment elsewhere: it is not checked",
                span=span, help=("write it as SQL, or leave it out",),
            )  # fmt: skip
            yield Remark(span, None, (), (said,))


def _examine(part: Part, policy: Policy, dialect: str, values: Values, search: bool | None) -> ExaminedStatement:
    from dpsql.faces.check.documents.parameter_comments import with_help
    from dpsql.service.checks.check import examine as examine_query

    text = part.whole.text
    found = examine_query(Source(text, ""), policy, values, dialect=dialect, search=search)
    diagnostics = tuple(_in_text(with_help(d, text, dialect, values), part) for d in found.diagnostics)
    refused = any(d.severity == "error" for d in diagnostics)
    price = None if refused else StatementPrice(Fraction(0), ())
    if found.plan is not None:
        cost = tuple((unit, loss) for unit, loss in found.plan.cost.items() if loss != PrivacyLoss())
        stated = not cost or policy.defaults.epsilon is not None or found.says_epsilon
        price = StatementPrice(
            _asked(found.plan) if stated and cost else None if cost else Fraction(0), cost if stated else ()
        )
    return ExaminedStatement(Span(part.start, part.end), part.shape, diagnostics, price)


def _in_text(diagnostic: Diagnostic, part: Part) -> Diagnostic:
    text, before = part.whole.text, len(part.lead)
    source = diagnostic.source
    if source is not None and source.text != text:
        return diagnostic
    if source is None or diagnostic.span is None:
        diagnostic = replace(diagnostic, span=Span(before, before + len(part.text.split("\n", 1)[0].rstrip("\r"))))
    return replace(diagnostic.within(Source(""), part.whole.start), source=None)


def _asked(plan: Plan) -> Fraction:
    """The ε of the whole query, its searches included."""
    whole = None if plan.finding is None else plan.finding.settings.epsilon
    return plan.bid.epsilon if whole is None else whole
