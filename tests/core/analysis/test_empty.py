"""Which relations have no row in any database: by LIMIT 0 and constant conditions, and by nothing else."""

from __future__ import annotations

import pytest

from dpsql.core.analysis.empty_relations import never
from dpsql.core.ir.expressions import Call, Column, Expr, Literal
from dpsql.core.ir.types import BIGINT, BOOLEAN, INTEGER
from tests.support.planning import derived, policy

POLICY = policy(
    """
people: {unit: {of: person, column: id}, max_rows_per_unit: 3, columns: {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9]}}}
log: {unit: {rows: 1}, columns: {id: {type: bigint, nullable: false}, x: {type: integer, bounds: [0, 9]}}}
codes: {public: true, unique: [[x]], columns: {x: {type: integer, nullable: false}, name: {type: varchar}}}
"""  # noqa: E501
)
NO = (
    "SELECT * FROM codes LIMIT 0",
    "SELECT * FROM codes LIMIT 0 OFFSET 3",
    "SELECT * FROM people LIMIT 0",
    "SELECT * FROM people ORDER BY x LIMIT 0",
    "SELECT * FROM people WHERE FALSE ORDER BY x LIMIT 7 OFFSET 1",
    "SELECT x + 1 FROM people WHERE x > 3 AND 1 = 0",
    "SELECT x FROM (SELECT * FROM people WHERE NULL) WHERE x > 3",
    "SELECT * FROM people JOIN codes USING (x) WHERE FALSE",
    "SELECT * FROM people JOIN codes ON people.x = codes.x AND 1 > 2",
    "SELECT * FROM (SELECT * FROM people LIMIT 0) AS p JOIN codes USING (x)",
    "SELECT * FROM people JOIN (SELECT * FROM codes LIMIT 0) AS c USING (x)",
    "SELECT * FROM people CROSS JOIN (SELECT * FROM codes WHERE FALSE) AS c",
    "SELECT * FROM (SELECT * FROM people WHERE FALSE) AS p LEFT JOIN codes USING (x)",
    "SELECT * FROM (SELECT * FROM log WHERE FALSE) AS p FULL JOIN (SELECT * FROM codes LIMIT 0) AS c USING (x)",
    "SELECT * FROM people WHERE x IN (SELECT x FROM codes LIMIT 0)",
    "SELECT * FROM people WHERE FALSE AND x NOT IN (SELECT x FROM codes)",
    "SELECT x FROM people WHERE FALSE UNION ALL SELECT x FROM log LIMIT 0",
    "SELECT x FROM log WHERE FALSE UNION SELECT x FROM log WHERE NULL",
    "SELECT x FROM log WHERE FALSE INTERSECT SELECT x FROM log",
    "SELECT x FROM log INTERSECT ALL SELECT x FROM log WHERE FALSE",
    "SELECT x FROM log WHERE FALSE EXCEPT SELECT x FROM log",
    "SELECT name, COUNT(*) FROM codes WHERE FALSE GROUP BY name",
    "SELECT COUNT(*) FROM codes HAVING FALSE",
    "SELECT DISTINCT name FROM codes WHERE FALSE",
    "SELECT name, ROW_NUMBER() OVER (ORDER BY name) AS r FROM codes WHERE FALSE",
    "SELECT name, ROW_NUMBER() OVER (ORDER BY name) AS r FROM codes QUALIFY 1 = 0",
)
SOME = (
    "SELECT * FROM codes",
    "SELECT * FROM codes LIMIT 1",
    "SELECT * FROM codes OFFSET 3",
    "SELECT x FROM people WHERE x < 0",
    "SELECT x FROM people WHERE x <> x",
    "SELECT x FROM people WHERE x = NULL",
    "SELECT x FROM people WHERE x > 3 OR FALSE",
    "SELECT x FROM people WHERE NOT (x > 3 AND FALSE)",
    "SELECT x FROM people WHERE TRUE",
    "SELECT COUNT(*) FROM codes WHERE FALSE",
    "SELECT COUNT(*), SUM(x) FROM codes LIMIT 1",
    "SELECT * FROM people LEFT JOIN codes ON people.x = codes.x AND FALSE",
    "SELECT * FROM people LEFT JOIN (SELECT * FROM codes LIMIT 0) AS c USING (x)",
    "SELECT * FROM log FULL JOIN (SELECT * FROM codes LIMIT 0) AS c USING (x)",
    "SELECT * FROM (SELECT * FROM log LIMIT 0) AS l FULL JOIN codes USING (x)",
    "SELECT * FROM people WHERE x NOT IN (SELECT x FROM codes LIMIT 0)",
    "SELECT x FROM log WHERE FALSE UNION ALL SELECT x FROM log",
    "SELECT x FROM log EXCEPT SELECT x FROM log WHERE FALSE",
    "SELECT x FROM log INTERSECT SELECT x FROM log WHERE x < 0",
    "SELECT * FROM (VALUES (1), (NULL)) AS v(x)",
)


@pytest.mark.parametrize("sql", NO)
def test_no_rows(sql: str) -> None:
    assert derived(sql, POLICY).fact.empty


@pytest.mark.parametrize("sql", SOME)
def test_some_rows(sql: str) -> None:
    assert not derived(sql, POLICY).fact.empty


X = Column(1, "x", BIGINT)
FALSE, NULL, TRUE = (Literal(value, BOOLEAN) for value in (False, None, True))
OPEN = Call("lt", (X, Literal(0, INTEGER)), BOOLEAN)


def both(*terms: Expr) -> Call:
    return Call("and", terms, BOOLEAN)


def either(*terms: Expr) -> Call:
    return Call("or", terms, BOOLEAN)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (FALSE, True),
        (NULL, True),
        (TRUE, False),
        (OPEN, False),
        (Call("eq", (Literal(1, INTEGER), Literal(0, INTEGER)), BOOLEAN), True),
        (Call("not", (TRUE,), BOOLEAN), True),
        (Call("not", (NULL,), BOOLEAN), True),
        (Call("not", (FALSE,), BOOLEAN), False),
        (Call("is_null", (NULL,), BOOLEAN), False),
        (both(OPEN, FALSE), True),
        (both(OPEN, TRUE), False),
        (both(both(OPEN, OPEN), both(NULL, OPEN)), True),
        (either(OPEN, FALSE), False),
        (either(FALSE, NULL), True),
        (either(FALSE, TRUE), False),
        (either(both(OPEN, FALSE), both(NULL, OPEN)), True),
        (either(both(OPEN, FALSE), both(TRUE, OPEN)), False),
        (Call("not", (both(OPEN, FALSE),), BOOLEAN), False),  # true for all rows
        (Call("isnan", (Literal(float("nan"), BIGINT),), BOOLEAN), False),  # not computed here: asked of the engine
    ],
)
def test_never(condition: Expr, expected: bool) -> None:
    assert never(condition) is expected
