"""Examinations as plain data, for the cache and for other processes: lists, texts and numbers of JSON, never pickled.

Reading is strict: what is not exactly of this form is a ValueError, and the text is examined anew.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, TypeAlias

from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Fix, Source, Span
from dpsql.faces.check.documents.check_comments import Remark
from dpsql.faces.check.examine.examination import Examination, ExaminedStatement, StatementPrice

_FRACTION = re.compile(r"[0-9]{1,4000}(/[0-9]{1,4000})?")

Record: TypeAlias = Any
"""What `json.dumps` writes and `json.loads` reads back unchanged."""


def to_record(examination: Examination) -> Record:
    """The examination as JSON knows it."""
    return [[_statement(s) for s in examination.statements], [_remark(r) for r in examination.remarks]]


def from_record(record: Record) -> Examination:
    """What `to_record` was given. Raises ValueError for anything that it does not make."""
    try:
        statements, remarks = record
        found = Examination(tuple(map(_to_statement, statements)), tuple(map(_to_remark, remarks)))
    except (TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError) as error:
        raise ValueError("not an examination") from error
    if any(r.statement is not None and r.statement >= len(found.statements) for r in found.remarks):
        raise ValueError("a comment about a statement that is not there")
    return found


def _statement(statement: ExaminedStatement) -> Record:
    price = statement.price
    return [
        _span(statement.span),
        statement.shape,
        [_diagnostic(d) for d in statement.diagnostics],
        None if price is None else [_number(price.epsilon), [[u, *_loss(loss)] for u, loss in price.cost]],
    ]


def _to_statement(record: Record) -> ExaminedStatement:
    span, shape, diagnostics, price = record
    return ExaminedStatement(
        _to_span(span),
        _text(shape),
        tuple(map(_to_diagnostic, diagnostics)),
        None
        if price is None
        else StatementPrice(_to_number(price[0]), tuple((_text(u), _to_loss(x)) for u, *x in price[1])),
    )


def _remark(remark: Remark) -> Record:
    codes = [[code, _span(span)] for code, span in remark.codes]
    return [_span(remark.span), remark.statement, codes, [_diagnostic(d) for d in remark.mistakes]]


def _to_remark(record: Record) -> Remark:
    span, statement, codes, mistakes = record
    return Remark(
        _to_span(span),
        None if statement is None else _integer(statement),
        tuple((_text(code), _to_span(place)) for code, place in codes),
        tuple(map(_to_diagnostic, mistakes)),
    )


def _diagnostic(d: Diagnostic) -> Record:
    source = None if d.source is None else [d.source.text, d.source.name]
    fix = None
    if d.fix is not None:
        fix = [d.fix.message, [[_span(edit.span), edit.text] for edit in d.fix.edits], d.fix.safe]
    span = None if d.span is None else _span(d.span)
    return [d.code, d.message, source, span, d.label, list(d.help), list(d.notes), d.severity, fix, list(d.meant)]


def _to_diagnostic(record: Record) -> Diagnostic:
    code, message, source, span, label, help, notes, severity, fix, meant = record
    return Diagnostic(
        _text(code),
        _text(message),
        None if source is None else Source(_text(source[0]), _text(source[1])),
        None if span is None else _to_span(span),
        _text(label),
        tuple(map(_text, help)),
        tuple(map(_text, notes)),
        _text(severity),
        None if fix is None else _to_fix(fix),
        meant=tuple(map(_text, meant)),
    )


def _to_fix(record: Record) -> Fix:
    message, edits, safe = record
    if not isinstance(safe, bool):
        raise ValueError("not a fix")
    return Fix(_text(message), tuple(Edit(_to_span(span), _text(text)) for span, text in edits), safe)


def _span(span: Span) -> Record:
    return [span.start, span.end]


def _to_span(record: Record) -> Span:
    start, end = record
    return Span(_integer(start), _integer(end))


def _loss(loss: PrivacyLoss) -> Record:
    return [str(loss.epsilon), str(loss.delta), str(loss.rho)]


def _to_loss(record: Record) -> PrivacyLoss:
    epsilon, delta, rho = (_fraction(part) for part in record)
    return PrivacyLoss(epsilon, delta, rho)


def _number(number: Fraction | None) -> Record:
    return None if number is None else str(number)


def _to_number(record: Record) -> Fraction | None:
    return None if record is None else _fraction(record)


def _fraction(record: Record) -> Fraction:
    if not _FRACTION.fullmatch(_text(record)):
        raise ValueError("not a number")
    return Fraction(record)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("not an offset")
    return value
