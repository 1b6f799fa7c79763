"""GoogleSQL's privacy clause and bounds in aggregates, lifted out of the token stream before sqlglot parses it.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.2, …) … COUNT(*, contribution_bounds_per_group => (0, 4)) …
    SELECT WITH ANONYMIZATION OPTIONS (kappa = 5, …) … ANON_SUM(x CLAMPED BETWEEN 0 AND 4) …

Works on tokens, not on a subclassed parser: sqlglot's compiled parser cannot be subclassed. The tokens that stay keep
their places, so carets point into the text as it was written. Strings, quoted names and comments are never looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import Token, TokenType, exp

from dpsql.core.privacy_loss import exact_delta, exact_epsilon
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.google.token_cursor import TokenCursor

Bounds = tuple[Fraction, Fraction]
AUTO = "AUTO"
"""In place of a limit or bound: a part of ε finds it."""
LARGEST_LIMIT = 2**40
"""Limits above this bound nothing that could be answered."""

_CLAUSES = ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION")
_OPTIONS = {
    "epsilon": "epsilon",
    "delta": "delta",
    "kappa": "max_groups",
    "max_groups_contributed": "max_groups",
    "max_rows_contributed": "max_rows",
    "min_privacy_units_per_group": "min_units",
    "group_selection_strategy": "public_groups",
    "consistent_totals": "consistent_totals",
}
_STRATEGIES = {"PUBLIC_GROUPS": True, "LAPLACE_THRESHOLD": False}
_SWITCH = {"TRUE": True, "FALSE": False}
_PER_GROUP, _PER_ROW = "contribution_bounds_per_group", "contribution_bounds_per_row"
_ANON = {
    "ANON_COUNT": "COUNT", "ANON_SUM": "SUM", "ANON_AVG": "AVG", "ANON_VAR_POP": "VAR_POP",
    "ANON_STDDEV_POP": "STDDEV_POP",
}  # fmt: skip
_VARIANCES = {"VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV_POP", "STDDEV_SAMP", "STDDEV"}
_QUANTILES = {"PERCENTILE_CONT", "PERCENTILE_DISC", "APPROX_QUANTILES"}
_BOUNDED = {"COUNT", "SUM", "AVG", *_VARIANCES, *_QUANTILES}
_TAKES_BOUNDS = (
    exp.Count, exp.Sum, exp.Avg, exp.VariancePop, exp.Variance, exp.StddevPop, exp.StddevSamp, exp.Stddev,
    exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantiles,
)  # fmt: skip
_NOT_AFTER = frozenset({
    "AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "BETWEEN", "THEN", "ELSE", "WHEN", "CASE", "DISTINCT", "DIV", "MOD"
})  # fmt: skip
"""Words after which CLAMPED can only be the name of a column."""
_ENDS = frozenset({
    TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER,
    TokenType.PLACEHOLDER,
})  # fmt: skip
"""Signs that an expression may end with, besides words."""
BOUNDS_KEY = "contribution_bounds"
"""Where an aggregate's syntax node carries its CallBounds."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What a privacy clause sets; None where it says nothing. Clauses that say the same are equal.

    search: the most rows of a unit are to be found (`max_rows_contributed = AUTO`).
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    min_units: int | None = None
    public_groups: bool | None = None
    search: bool | None = None
    consistent_totals: bool | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CallBounds:
    """Bounds written inside an aggregate call; `clamped` is the CLAMPED BETWEEN of an ANON function.

    start, end: where the call stands, from its name to its closing bracket. span: where the bounds stand.
    """

    start: int
    end: int
    span: Span
    per_group: Bounds | None = None
    per_row: Bounds | None = None
    clamped: Bounds | None = None


@dataclass(frozen=True, slots=True)
class Lifted:
    """The tokens that are left, and what was taken out."""

    tokens: list[Token]
    clause: Clause | None
    calls: tuple[CallBounds, ...]


def lift(tokens: Sequence[Token], source: Source) -> Lifted:
    """Take privacy clauses and contribution bounds out of the tokens. Raises Rejected DP010, DP014, DP406."""
    text = source.text.upper()
    if "WITH" not in text and "ANON_" not in text and "=>" not in text:  # one of which is in what there is to lift
        return Lifted(list(tokens), None, ())
    return _Lifter(list(tokens), source).lift()


def attach(tree: exp.Expr, calls: Sequence[CallBounds]) -> None:
    """Write lifted bounds to the aggregates they were written in. Raises Rejected DP014 if one is no aggregate."""
    waiting = {call.start: call for call in calls}
    if not waiting:
        return
    for node in tree.walk():
        start = node.meta_get("start")
        if start in waiting and isinstance(node, _TAKES_BOUNDS):
            call = waiting.pop(start)
            around = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
            if isinstance(around, exp.Window):
                raise _wrong("a window function takes no bounds", call.span, "leave them out")
            node.meta[BOUNDS_KEY] = call
            node.meta["end"] = call.end - 1  # sqlglot's ends are inclusive
    for call in waiting.values():
        raise _wrong(
            "bounds of contributions can stand in COUNT, SUM, AVG, variances and quantiles only",
            call.span,
            "leave them out",
        )


def bounds_of(node: exp.Expr) -> CallBounds | None:
    """The bounds that were written inside an aggregate call."""
    found = node.meta_get(BOUNDS_KEY)
    return found if isinstance(found, CallBounds) else None


def _wrong(message: str, span: Span, repair: str, code: str = "DP014") -> Rejected:
    return reject(code, message, span=span, help=[repair])


@dataclass(slots=True)
class _Call:
    """An open bracket, and what was found between it and its end."""

    name: Token | None
    anonymous: bool
    per_group: Bounds | None = None
    per_row: Bounds | None = None
    clamped: Bounds | None = None
    span: Span | None = None


@dataclass(slots=True)
class _Lifter(TokenCursor):
    """Walks over the tokens once, and keeps those that sqlglot is to see."""

    kept: list[Token] = field(default_factory=list)
    clause: Clause | None = None
    calls: list[CallBounds] = field(default_factory=list)
    open: list[_Call] = field(default_factory=list)

    # --- the walk --------------------------------------------------------------------------------------------------

    def lift(self) -> Lifted:
        while (token := self.peek()) is not None:
            if token.token_type is TokenType.SELECT and self.word(1) == "WITH":
                self.kept.append(token)
                self.at += 1
                self._clause()
            elif token.token_type is TokenType.L_PAREN:
                self._opened(token)
            elif token.token_type is TokenType.R_PAREN:
                self._closed(token)
            elif token.token_type is TokenType.COMMA and self.is_(TokenType.FARROW, 2) and self.word(1):
                self._named()
            elif self._clamps():
                self._clamped()
            else:
                self.kept.append(token)
                self.at += 1
        return Lifted(self.kept, self.clause, tuple(self.calls))

    def _opened(self, token: Token) -> None:
        name = self.peek(-1) if self.word(-1) else None
        anonymous = self.word(-1) in _ANON
        if anonymous and name is not None:
            # The plain aggregate in the same place: whatever is said of it points at what was written.
            plain = _ANON[self.word(-1)]
            self.kept[-1] = Token(TokenType.VAR, plain, name.line, name.col, name.start, name.end, name.comments)
        self.open.append(_Call(name, anonymous))
        self.kept.append(token)
        self.at += 1

    def _closed(self, token: Token) -> None:
        if self.open:
            call = self.open.pop()
            if call.span is not None and call.name is not None:
                self.calls.append(
                    CallBounds(
                        call.name.start, token.end + 1, call.span, call.per_group, call.per_row, call.clamped
                    )
                )  # fmt: skip
        self.kept.append(token)
        self.at += 1

    # --- the clause ------------------------------------------------------------------------------------------------

    def _clause(self) -> None:
        """`WITH DIFFERENTIAL_PRIVACY [OPTIONS (name = value, …)]` after SELECT."""
        start, name = self.at, self.word(1)
        if name not in _CLAUSES:
            raise _wrong(
                f"SELECT WITH {name or '…'} is outside the accepted SQL", self.span(start, start + 1),
                "clauses that can stand here: WITH DIFFERENTIAL_PRIVACY OPTIONS (…), WITH ANONYMIZATION OPTIONS (…)",
            )  # fmt: skip
        self.at += 2
        found: dict[str, tuple[object, Span]] = {}
        if self.word() == "OPTIONS":
            self.at += 1
            self.take(TokenType.L_PAREN, "( after OPTIONS")
            while not self.is_(TokenType.R_PAREN):
                self._option(found, anonymization=name == "ANONYMIZATION")
                if not self.is_(TokenType.R_PAREN):
                    self.take(TokenType.COMMA, ", or ) after an option")
            self.at += 1
        span = self.span(start, self.at - 1)
        rows = found.get("max_rows") or found.get("search")
        if "max_groups" in found and rows is not None:
            raise _wrong(
                "max_groups_contributed and max_rows_contributed exclude each other", rows[1],
                "limit rows per group by contribution_bounds_per_group, or leave one of them out",
            )  # fmt: skip
        if "min_units" in found and found.get("public_groups", (None,))[0] is True:
            raise _wrong(
                "min_privacy_units_per_group hides groups, and PUBLIC_GROUPS shows them all", found["min_units"][1],
                "leave one of them out",
            )  # fmt: skip
        clause = Clause(**{key: value for key, (value, _) in found.items()}, span=span)  # type: ignore[arg-type]
        if self.clause is not None and self.clause != clause:
            raise _wrong(
                "the privacy clauses of one query must say the same", span,
                "write the clause once: its options hold for the whole query",
            )  # fmt: skip
        self.clause = self.clause or clause

    def _option(self, found: dict[str, tuple[object, Span]], anonymization: bool) -> None:
        start, written = self.at, self.word().lower()
        key = _OPTIONS.get(written)
        if key is None or (written == "kappa" and not anonymization):
            listed = [name for name in _OPTIONS if name != "kappa" or anonymization]
            repair = "accepted: " + ", ".join(listed)
            if written == "privacy_unit_column":
                repair = "leave it out: the policy says what the privacy unit is"
            elif written == "kappa":
                repair = "call it max_groups_contributed"
            token = self.peek()
            shown = written or ("the end of the text" if token is None else token.text)
            raise _wrong(f"{shown} is not an option of the privacy clause", self.span(start, start), repair)
        if key in found or (key == "max_rows" and "search" in found):
            raise _wrong(f"{written} is set twice", self.span(start, start), "set it once")
        self.at += 1
        self.take(TokenType.EQ, f"= after {written}")
        first = self.at
        value: object
        if key in ("public_groups", "consistent_totals"):
            words = _STRATEGIES if key == "public_groups" else _SWITCH
            token = self.peek()
            text = "" if token is None else token.text.upper()
            if text not in words:
                raise _wrong(f"this {written} is not known", self.span(first, first), f"use {' or '.join(words)}")
            self.at += 1
            value = words[text]
        elif key == "max_rows" and self.word() == AUTO:
            self.at += 1
            key, value = "search", True
        else:
            number = self.number(written)
            value = self._checked(written, key, number, self.span(first, self.at - 1))
        if not (self.is_(TokenType.COMMA) or self.is_(TokenType.R_PAREN)):
            raise self.not_number(written)
        found[key] = value, self.span(start, self.at - 1)

    def _checked(self, written: str, key: str, number: Fraction, span: Span) -> object:
        if key in ("epsilon", "delta"):
            try:
                return exact_epsilon(number) if key == "epsilon" else exact_delta(number)
            except ValueError as error:
                raise _wrong(
                    str(error), span, "epsilon is a number above 0, e.g. 0.5; delta one in [0, 1)", "DP406"
                ) from None
        if number.denominator != 1 or not 1 <= number <= LARGEST_LIMIT:
            raise _wrong(f"{written} is a whole number above 0", span, f"for example  {written} = 5", "DP406")
        return int(number)

    # --- aggregates ------------------------------------------------------------------------------------------------

    def _named(self) -> None:
        """`, contribution_bounds_per_group => (a, b)`; other named arguments of aggregates are refused by name."""
        written = self.word(1).lower()
        call = self.open[-1] if self.open else None
        name = "" if call is None or call.name is None else call.name.text.upper()
        own = name in _BOUNDED or name in _ANON
        if written not in (_PER_GROUP, _PER_ROW) or call is None or not own:
            if own or written in (_PER_GROUP, _PER_ROW):
                raise _wrong(
                    f"{name or 'this'} takes no argument called {written}", self.span(self.at + 1, self.at + 1),
                    f"COUNT and SUM take {_PER_GROUP}; SUM, AVG, variances and quantiles take {_PER_ROW}",
                )  # fmt: skip
            self.kept.append(self.tokens[self.at])
            self.at += 1
            return
        start = self.at + 1
        self.at += 3
        self.take(TokenType.L_PAREN, f"(lower, upper) after {written} =>")
        low = self.number(f"the lower end of {written}")
        self.take(TokenType.COMMA, "a comma between the bounds")
        high = self.number(f"the upper end of {written}")
        self.take(TokenType.R_PAREN, ") after the bounds")
        self._found(call, "per_group" if written == _PER_GROUP else "per_row", (low, high), start)

    def _clamps(self) -> bool:
        """Whether the next word is the CLAMPED of an ANON function, and not the name of a column."""
        if not self.open or not self.open[-1].anonymous or (self.word(), self.word(1)) != ("CLAMPED", "BETWEEN"):
            return False
        before = self.peek(-1)
        if before is None or self.word(-1) in _NOT_AFTER:
            return False
        if before.token_type is TokenType.STAR:
            return self.is_(TokenType.L_PAREN, -2)  # COUNT(* …), and not a product
        return bool(self.word(-1)) or before.token_type in _ENDS

    def _clamped(self) -> None:
        """`CLAMPED BETWEEN a AND b` at the end of an ANON function."""
        start = self.at
        self.at += 2
        low = self.number("the lower end of CLAMPED BETWEEN")
        self.take(TokenType.AND, "AND between the bounds")
        high = self.number("the upper end of CLAMPED BETWEEN")
        self._found(self.open[-1], "clamped", (low, high), start)

    def _found(self, call: _Call, what: str, bounds: Bounds, start: int) -> None:
        span = self.span(start, self.at - 1)
        if bounds[0] >= bounds[1]:
            raise _wrong("the lower bound must lie below the upper one", span, "write (lower, upper)", "DP406")
        if call.span is not None:
            raise _wrong("an aggregate takes one pair of bounds", span, "leave one of them out")
        setattr(call, what, bounds)
        call.span = span
        if not (self.is_(TokenType.COMMA) or self.is_(TokenType.R_PAREN)):
            place = self.span(self.at, self.at)
            raise _wrong("syntax error: expected ) after the bounds", place, "bounds come last in a call", "DP010")
