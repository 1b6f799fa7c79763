"""TRIM and SUBSTR of other dialects, in words that mean the same everywhere.

Claim: what is returned gives, for every text, what the dialect's function gives, by the dialect's manual.
When it would be false: a server that counts other characters than Unicode's, or whose TRIM knows more spaces.
Tested by: tests/frontend/test_dialect_texts.py
"""

from __future__ import annotations

from sqlglot import exp

SPACE_ALONE = frozenset({"postgres", "snowflake", "spark", "mysql", "tsql"})
"""Where TRIM(x) takes away the space U+0020 and nothing else. DuckDB's takes other spaces too."""


def trimmed(node: exp.Expr, dialect: str) -> bool:
    """TRIM, LTRIM and RTRIM with the characters they take away. Whether these are known and are a set, as in DuckDB."""
    characters = node.args.get("expression")
    if characters is None:
        node.set("expression", exp.Literal.string(" "))
        return dialect in SPACE_ALONE
    single = isinstance(characters, exp.Literal) and len(characters.name) == 1
    return dialect != "mysql" or single  # where several are one text


def substring(node: exp.Expr, dialect: str) -> exp.Expr | None:
    """SUBSTR(x, start, length) with a start before 1 or that is not known; None: not known in the dialect."""
    text, start, length = node.this, node.args.get("start"), node.args.get("length")
    count = None if length is None else whole(length)
    if start is None or (length is not None and (count is None or count < 0)):
        return None
    at = whole(start)
    if at is not None and at >= 1:
        return node
    if dialect in ("postgres", "tsql"):  # positions go on to the left of the text
        if at is not None:
            return text.copy() if count is None else _side(exp.Left, text, max(at + count - 1, 0))
        return _placed(node, text, start, count)
    if at is None or dialect not in ("bigquery", "spark", "mysql"):
        return None
    if at == 0:
        if dialect == "mysql":
            return _side(exp.Left, text, 0)
        node.set("start", exp.Literal.number(1))
        return node
    end = _side(exp.Right, text, -at)
    cut = end if count is None else _side(exp.Left, end, count)
    if dialect == "bigquery" or (dialect == "spark" and count is None):
        return cut  # of a shorter text, all of it
    enough = exp.GTE(this=exp.Length(this=text.copy()), expression=exp.Literal.number(-at))
    shorter = _side(exp.Left, text, 0)
    if dialect == "spark" and count is not None:  # what would stand before the text counts
        left = exp.Add(this=exp.Length(this=text.copy()), expression=_number(count + at))
        shorter = exp.Left(this=text.copy(), expression=exp.Greatest(this=left, expressions=[exp.Literal.number(0)]))
    return exp.Case(ifs=[exp.If(this=enough, true=cut)], default=shorter)


def _placed(node: exp.Expr, text: exp.Expr, start: exp.Expr, count: int | None) -> exp.Expr:
    """A start that is computed: NULL if it is NULL, which neither condition holds for."""
    one, within = exp.Literal.number(1), node.copy()
    first = exp.Paren(this=start.copy())
    within.set("start", exp.Greatest(this=first, expressions=[one.copy()]))
    before: exp.Expr = text.copy()
    if count is not None:
        left = exp.Add(this=first.copy(), expression=_number(count - 1))
        before = exp.Left(this=text.copy(), expression=exp.Greatest(this=left, expressions=[exp.Literal.number(0)]))
    return exp.Case(
        ifs=[
            exp.If(this=exp.GTE(this=first.copy(), expression=one), true=within),
            exp.If(this=exp.LT(this=first.copy(), expression=one.copy()), true=before),
        ]
    )


def whole(node: exp.Expr) -> int | None:
    """A literal whole number, perhaps with a minus; None of anything else."""
    sign = 1
    if isinstance(node, exp.Neg):
        node, sign = node.this, -1
    digits = node.name if isinstance(node, exp.Literal) and not node.args.get("is_string") else ""
    return sign * int(digits) if digits.isdigit() and len(digits) <= 9 else None


def _number(n: int) -> exp.Expr:
    found: exp.Expr = exp.Literal.number(abs(n))
    return exp.Neg(this=found) if n < 0 else found


def _side(kind: type[exp.Expr], text: exp.Expr, count: int) -> exp.Expr:
    return kind(this=text.copy(), expression=exp.Literal.number(count))
