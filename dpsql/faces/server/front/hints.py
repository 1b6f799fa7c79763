"""Repairs in the words of this door: who connects as to PostgreSQL writes SQL, not Python and not options of a command.

A repair that has no meaning here is left out; what is not named here is in SQL already.
"""

from __future__ import annotations

import re
from typing import Final

_CALLS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"query\.run\(.*|frames=.*|(?:e\.g\.  )?(?:max_error|weights)=.*", ""),
        (
            r"say how much to spend, e\.g\.  run\(epsilon=0\.5\)  or  --epsilon 0\.5",
            "say how much to spend:  SET epsilon = 0.5",
        ),
        (r"(?:run\(|--)delta[= ](\S+?)\)?(?=\s|$)", r"SET delta = \1"),
        (r"(?:run\(|--)epsilon[= ](\S+?)\)?(?=\s|$)", r"SET epsilon = \1"),
        (r"(?:run\(|--)rho[= ](\S+?)\)?(?=\s|$)", r"SET rho = \1"),
        (r"pass  parameters=.*", "bind a value for each parameter, or write the value into the query"),
        (r"(?:parameters=)?\{'name': value\} for \$name", "number them:  $1, $2"),
        (r"con\.sql\('([^']*)\?', \[[^\]]*\]\)", r"PREPARE q AS \1$1;  EXECUTE q(5)"),
        (r"plan the query in this session.*", "run the statement again"),
        (r";  in Python  \S+$|  \(in Python .*\)$", ""),
        (r"^(\w+) = on$", r"SET \1 = on"),
        (r"--through (\d{4}-\d\d-\d\d)", r"CLOSE DP PERIODS THROUGH DATE '\1'"),
        (r"--table NAME,  or  OF NAME  at a server", "CLOSE DP PERIODS OF NAME THROUGH DATE '…'"),
        (r"open it again with dpsql\.connect\(…\)", "connect again"),
        (r"dpsql\.connect\(.*", ""),
        (r"render it first:  --templater.*", "render the template, and send the SQL that comes of it"),
        (r"leave EXPLAIN out:.*", "EXPLAIN SELECT …"),
        (r"pip install .*", ""),
        (r",  or name the dialect of the text: .*|ask as an analyst to whom the policy gives something:.*", ""),
        (r"leave all but one of them out", "SET one of them to DEFAULT"),
    )
)


def in_sql(help: str) -> str:
    """A repair as it is said to who connects by PostgreSQL's protocol; "" for one that cannot be made there."""
    for pattern, words in _CALLS:
        help = pattern.sub(words, help)
    return help.strip()
