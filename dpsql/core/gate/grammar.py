"""The gate: a text becomes part of a statement only if it is one scalar expression over columns that are named.

*Claim.* What is admitted is one expression of an engine: it reads the atoms that are listed and nothing else, calls
functions of the engine's list alone, and begins and ends within itself, so that no text around it changes what it is.
*Why.* It is parsed, strictly. A word is an atom, a word of the grammar, or on a list (vocabularies.py). Symbols are
read as long as they go on, and each has to be listed: there is no comment and no `;` (scalar_tokens.py). Of subqueries
there is one form, which names a value and reads no table, and one that asks a server for its zones; there is no window,
and no comma or AS outside of calls and casts. The whole is a primary: in brackets, or a call, a CASE, a constant. An
atom is a column, or a text that passed by itself: a primary in place of a primary. *When it would be false.* A function
on the list that is volatile, or reads others' rows or a setting; an engine that reads a text otherwise than its
settings promise (`standard_conforming_strings`, Spark's escapes); an atom that is no primary. *Tested by*
tests/core/gate/test_gate.py, tests/core/gate/test_vocabularies.py, tests/deep/core/gate/test_gate_fuzzed.py,
tests/deep/core/gate/read_elsewhere.py.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dpsql.core.gate.scalar_tokens import NotScalar, ScalarTokens
from dpsql.core.gate.vocabularies import OF_DIALECTS, Vocabulary
from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import reject

_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_LIKE: Final = frozenset({"LIKE", "ILIKE"})
_CONSTANTS: Final = frozenset({"NULL", "TRUE", "FALSE"})
_MOST_KEPT: Final = 2_000
"""Characters of a text that is remembered."""


def admitted(text: str, atoms: tuple[str, ...], dialect: str, span: Span | None = None) -> str:
    """A text that may stand in a statement. Raises Rejected DP904: what printed it is wrong."""
    if not (is_scalar if len(text) <= _MOST_KEPT else is_scalar.__wrapped__)(text, atoms, OF_DIALECTS[dialect]):
        message = "a text for the engine is no expression over its columns; nothing was run"
        raise reject("DP904", message, span=span, help=["report the query: this is an error in dpsql"])
    return text


@lru_cache(maxsize=4096)
def is_scalar(text: str, atoms: tuple[str, ...], words: Vocabulary) -> bool:
    """Whether a text is one scalar expression, a primary, over these atoms."""
    try:
        _Parser(text, atoms, words).whole()
    except NotScalar:
        return False
    return True


class _Parser(ScalarTokens):
    """Each method reads what it is named by, or raises NotScalar."""

    # --- expressions -------------------------------------------------------------------------------------------------

    def whole(self) -> None:
        self.primary()
        if self.token:
            raise NotScalar

    def expression(self) -> None:
        """Comparisons, with AND, OR and NOT."""
        while True:
            while self.took("NOT"):
                pass
            self.compared()
            if not (self.took("AND") or self.took("OR")):
                return

    def compared(self) -> None:
        """A sum, or one comparison of it."""
        self.sum()
        if self.token in _COMPARED:
            self.step()
            if self.words.any and self.took("ANY"):
                self.bracketed()
            else:
                self.sum()
            return
        if self.took("IS"):
            self.took("NOT")
            if self.took("DISTINCT"):
                self.expect("FROM")
                self.sum()
            else:
                self.one_of(_CONSTANTS)
            return
        negated = self.took("NOT")
        if self.took("BETWEEN"):
            self.sum()
            self.expect("AND")
            self.sum()
        elif self.took("IN"):
            self.arguments()
        elif self.token in _LIKE:
            self.step()
            self.sum()
            if self.took("ESCAPE"):
                self.literal()
                self.collation()
        elif negated:
            raise NotScalar

    def sum(self) -> None:
        """Primaries, with operators of numbers and texts between them."""
        while True:
            while self.took("-"):
                pass
            self.primary()
            if self.token not in self.words.operators:
                return
            self.step()

    def primary(self) -> None:
        """An atom, a constant, a call, a CASE, or anything in brackets; then perhaps its collation, or its element."""
        if not self.atom():
            self.other()
        self.collation()
        while self.words.elements and self.took("["):
            self.number()
            self.expect("]")

    def collation(self) -> None:
        if self.words.collates and self.took("COLLATE"):
            self.expect('"C"')

    def other(self) -> None:
        token, words = self.token, self.words
        if token[:1] == "'" or (token[:1].isdigit() and (words.suffix or token[-1] != "D")):
            self.step()
        elif token == "(":
            self.step()
            if words.lets and self.took("SELECT"):
                self.let()
            else:
                self.expression()
                self.expect(")")
        elif token in _CONSTANTS:
            self.step()
        elif token == "CASE":
            self.case()
        elif token in words.casts:
            self.cast()
        elif token in words.typed:
            self.typed(token)
        elif words.lists and token == words.lists:
            self.step()
            if token != "[":
                self.expect("[")
            self.listed("]")
        elif token in words.special:
            self.step()
            _SPECIAL[token](self)
        elif token in words.functions:
            self.step()
            self.arguments()
        elif words.made is not None and words.made.fullmatch(token):
            self.step()
            self.expect("(")
            if not self.took(")"):  # constants are in the function's body
                self.listed(")")
        else:
            raise NotScalar

    def number(self) -> None:
        if not self.token.isdigit():
            raise NotScalar
        self.step()

    def bracketed(self) -> None:
        self.expect("(")
        self.expression()
        self.expect(")")

    def two(self) -> None:
        self.expect("(")
        self.expression()
        self.expect(",")
        self.expression()
        self.expect(")")

    def arguments(self) -> None:
        self.expect("(")
        self.listed(")")

    def listed(self, end: str) -> None:
        """Expressions with commas between them: one at least."""
        self.expression()
        while self.took(","):
            self.expression()
        self.expect(end)

    def case(self) -> None:
        self.expect("CASE", "WHEN")
        while True:
            self.expression()
            self.expect("THEN")
            self.expression()
            if not self.took("WHEN"):
                break
        if self.took("ELSE"):
            self.expression()
        self.expect("END")

    def cast(self) -> None:
        self.step()
        self.expect("(")
        self.expression()
        self.expect("AS")
        self.type()
        self.expect(")")

    def type(self) -> None:
        """A type of the engine's list, with its digits and brackets."""
        found = self.words.types.match(self.text, self.start)
        if found is None:
            raise NotScalar
        self.step(found.end())

    def typed(self, word: str) -> None:
        """A word with a literal behind it, as DATE has; an INTERVAL says of what."""
        self.step()
        self.literal()
        if word == "INTERVAL" and not self.took("MONTH"):
            self.expect("DAY", "TO", "SECOND")

    # --- what one engine has -----------------------------------------------------------------------------------------

    def let(self) -> None:
        """PostgreSQL: `(SELECT body FROM (SELECT a AS x0, b AS x1 OFFSET 0) AS v)`, whose body reads v.x0 and v.x1."""
        if self.took("count"):
            return self.known_zone()
        read = self.scoped(tuple(f"v.x{i}" for i in range(_MOST_NAMED)))
        self.expect("FROM", "(", "SELECT")
        names = self.named()
        self.expect("OFFSET", "0", ")", "AS", "v", ")")
        if not read <= {f"v.{name}" for name in names}:
            raise NotScalar
        return None

    def named(self) -> list[str]:
        """`a AS x0, b AS x1`, and the names."""
        names = list[str]()
        while not names or self.took(","):
            self.expression()
            self.expect("AS")
            names.append(f"x{len(names)}")
            self.expect(names[-1])
        return names

    def scoped(self, atoms: tuple[str, ...]) -> set[str]:
        """An expression over other atoms than those around; which of them it reads."""
        held = self.atoms, self.read
        self.atoms, self.read = atoms, set()
        self.expression()
        found = self.read
        self.atoms, self.read = held
        return found

    def known_zone(self) -> None:
        """PostgreSQL: whether a server knows a zone, which no row says."""
        self.expect("(", "*", ")", ">", "0", "FROM", "pg_catalog.pg_timezone_names", "AS", "z", "WHERE", "z.name", "=")
        self.literal()
        self.expect("COLLATE", '"C"', ")")

    def extract(self) -> None:
        """`extract(year FROM x)`."""
        self.expect("(")
        self.one_of(self.words.fields)
        self.expect("FROM")
        self.expression()
        self.expect(")")

    def make_interval(self) -> None:
        """PostgreSQL: `make_interval(months => x)`."""
        self.expect("(", "months", "=>")
        self.expression()
        self.expect(")")

    def trim(self) -> None:
        """Spark: `trim(BOTH 'x' FROM y)`."""
        self.expect("(")
        self.one_of(("BOTH", "LEADING", "TRAILING"))
        if not self.took("FROM"):
            self.primary()
            self.expect("FROM")
        self.expression()
        self.expect(")")

    def transform(self) -> None:
        """Spark: `transform(array(struct(a AS x0)), v -> body)[0]`, whose body reads v.x0; or of an array(a), v."""
        self.expect("(", "array", "(")
        atoms: tuple[str, ...] = ("v",)
        if self.took("struct"):
            self.expect("(")
            atoms = tuple(f"v.{name}" for name in self.named())
            self.expect(")")
        else:
            self.expression()
        self.expect(")", ",", "v", "->")
        self.scoped(atoms)
        self.expect(")", "[", "0", "]")


_MOST_NAMED: Final = 9
_SPECIAL: Final = {
    "TRY": _Parser.bracketed,
    "NULLIF": _Parser.two,
    "extract": _Parser.extract,
    "make_interval": _Parser.make_interval,
    "trim": _Parser.trim,
    "transform": _Parser.transform,
}
