"""Scalar texts that somebody spoiled: tokens left out, doubled, exchanged, put in, and two texts made one."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from tests.support.scalar_texts import ScalarText

_TOKENS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\w+|\s+|.""", re.DOTALL)
FOREIGN = (
    "(", ")", ",", ";", "--", "/*", "*/", "$", "\\", "'", '"', "`", "[", "]", "{", "}", ".", "..", ":", "::", ":=",
    "?",
    "@", "#", "~", "!", "=", "==", "<", ">", "<=", "->", "->>", "=>", "*", "**", "+", "-", "/", "//", "%", "|", "||",
    "&", "^", "\0", "\n", "\t", "0", "1", "1.", ".5", "1e5", "0x1", "'a'", "E'a'", "$$a$$", "''", "SELECT", "FROM",
    "t1",
    "x", "AS", "AS x", "y", "OVER ()", "OVER", "(SELECT 1)", "(SELECT", "EXISTS", "EXISTS (SELECT 1)", "NOT",
    "AND", "OR",
    "IS", "NULL", "TRUE", "IN", "BETWEEN", "LIKE", "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", "END", "DISTINCT", "ALL",
    "ANY", "ORDER BY x", "FILTER (WHERE TRUE)", "COLLATE", 'COLLATE "C"', "COLLATE NOCASE", "INTERVAL", "DATE",
    "COLUMNS",
    "random()", "now()", "sum(", "count(*)", "CURRENT_DATE", "rowid", "t1.rowid", "*", "UNION SELECT", "LIMIT 1",
    "OFFSET 0", "v", "v.x0", "x ->", "lambda x: x", "FROM t1", ") + (", ") OR (", "), (", "ISNULL", "NOTNULL",
    "AT TIME ZONE",
    "SIMILAR TO", "GLOB", "OPERATOR(pg_catalog.+)", "ROW(", "TRY(", "CAST(", " AS INTEGER)", "for x in", "MAP {",
)  # fmt: skip


def spoiled(given: Sequence[ScalarText], rng: random.Random, wanted: int) -> Iterator[ScalarText]:
    """So many texts, with the atoms of those that they are made of."""
    pieces = [(_TOKENS.findall(t.text), t) for t in given]
    for _ in range(wanted):
        tokens, text = rng.choice(pieces)
        found, atoms = list(tokens), text.atoms
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            other, donor = rng.choice(pieces)
            at, to = rng.randrange(len(found) + 1), rng.randrange(len(found) + 1)
            match rng.randrange(8):
                case 0:
                    del found[at : at + rng.choice((1, 1, 2, 3))]
                case 1:
                    found[at:at] = found[at : at + rng.choice((1, 2, 5))]
                case 2:
                    found[at : at + 1] = [rng.choice(FOREIGN)]
                case 3:
                    found[at:at] = [rng.choice(("", " ")), rng.choice(FOREIGN), rng.choice(("", " "))]
                case 4:
                    if at < len(found) and to < len(found):
                        found[at], found[to] = found[to], found[at]
                case 5:
                    found[at : at + 1] = [rng.choice(other)]
                case 6:
                    found[at:] = other[rng.randrange(len(other)) :]
                    atoms += donor.atoms
                case _:
                    spaces = [i for i, token in enumerate(found) if token.isspace()]
                    if spaces:
                        del found[rng.choice(spaces)]
            if not found:
                found = ["x"]
        yield ScalarText("".join(found), tuple(dict.fromkeys(atoms)), text.function)
