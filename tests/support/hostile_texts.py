"""Texts that are nested, repeated or doubled: pieces of SQL put into one another, side by side, or used twice each."""

from __future__ import annotations

from random import Random

EXPRESSIONS = ("1", "0.1", "'a'", "NULL", "age", "age", "region", "COUNT(*)", "unknown", "?", "*", "DATE '2024-01-01'")
AROUND = (
    "({})", "[{}]", "ARRAY[{}]", "INT({})", "STRUCT({})", "-{}", "NOT {}", "abs({})", "sqrt({})", "pow({}, 64)",
    "f({})", "CAST({} AS INT)", "{}::DOUBLE", "CASE WHEN {} THEN 1 END", "CASE age WHEN 1 THEN {} END",
    "COALESCE({}, 1)", "concat({0}, {0})", "replace({0}, 'a', 'aaaaaaaa')", "({0} + {0})", "({0} * {0})", "{} + 1",
    "{} IN (1, 2)", "({0} = {0})", "({} AND age > 1)", "({} OR age = 1)", "{} LIKE '%a%a%b'", "{} IS NULL",
    "{} BETWEEN 1 AND 2", "lpad('', 900, 'a') LIKE '%a%a%a%' || {}", "COUNT(DISTINCT {})", "SUM(CLIP({}, 0, 9))",
    "SUM({0}) OVER (ORDER BY {0})", "CLIP({}, 0.1, 0.3)", "(SELECT {})", "1 IN (SELECT {})",
    "EXISTS (SELECT {} FROM icd10)", "x -> {}", "{{'a': {}}}", "(SELECT {} FROM patients)",
    "COUNT(*) FILTER (WHERE {})", "GREATEST({0}, {0}, 2)", "INTERVAL ({}) DAY",
)  # fmt: skip
LISTS = (
    ("SELECT {} FROM patients", ", "), ("SELECT {} FROM patients GROUP BY region", ", "), ("SELECT {}", ", "),
    ("SELECT COUNT(*) FROM patients WHERE {}", " AND "), ("SELECT COUNT(*) FROM patients WHERE {}", " OR "),
    ("SELECT COUNT(*) FROM patients GROUP BY {}", ", "), ("SELECT COUNT(*) FROM patients GROUP BY CUBE ({})", ", "),
    ("SELECT COUNT(*) FROM patients GROUP BY ROLLUP ({})", ", "), ("SELECT title FROM icd10 ORDER BY {}", ", "),
    ("SELECT age, COUNT(*) FROM patients WHERE {} GROUP BY age", " AND "), ("SELECT concat({}) FROM patients", ", "),
    ("SELECT COUNT(*) FROM patients WHERE age IN ({})", ", "), ("SELECT * FROM (VALUES ({})) AS t", "), ("),
    ("SELECT COUNT(*) FROM patients HAVING {}", " AND "), ("SELECT price FROM items QUALIFY {}", " AND "),
    ("SELECT COUNT(*) FROM patients GROUP BY GROUPING SETS (({}))", "), ("), ("SELECT {} FROM visits", " + "),
    ("SELECT CASE WHEN {} THEN 1 END AS k, COUNT(*) FROM patients GROUP BY 1", " THEN 1 WHEN "), ("{}", ";"),
)  # fmt: skip
RELATIONS = (
    "icd10", "patients", "visits", "items", "unknown", "(VALUES (1, 2)) AS t(a, b)", "(SELECT 1 AS a) AS t",
    "(SELECT * FROM icd10) AS t", "(SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t",
    "UNNEST([1, 2])",
)  # fmt: skip
JOINS = (", ", " CROSS JOIN ", " NATURAL JOIN ", " JOIN ", " UNION ALL SELECT * FROM ", " UNION SELECT * FROM ")
FIRST = (
    "SELECT 1 AS a", "VALUES (1)", "SELECT 0.1 AS a", "SELECT code AS a FROM icd10", "SELECT * FROM visits",
    "SELECT age AS a FROM patients", "SELECT patient_id, age AS a FROM patients", "SELECT price AS a FROM items",
    "SELECT COUNT(*) AS a FROM patients", "SELECT region AS a, COUNT(*) FROM patients GROUP BY region",
)  # fmt: skip
STEPS = (
    "SELECT * FROM {0} l JOIN {0} r ON l.a = r.a", "SELECT l.a FROM {0} l JOIN {0} r ON l.a = r.a",
    "SELECT * FROM {0} l, {0} r", "SELECT l.a FROM {0} l, {0} r", "SELECT a FROM {0} UNION ALL SELECT a FROM {0}",
    "SELECT a + a AS a FROM {0}", "SELECT a * a AS a FROM {0}", "SELECT pow(a, 64) AS a FROM {0}",
    "SELECT *, a AS b FROM {0}", "SELECT * FROM {0}",
    "SELECT (SELECT MAX(a) FROM {0}) + (SELECT MIN(a) FROM {0}) AS a",
    "SELECT a FROM {0} WHERE a IN (SELECT a FROM {0})", "SELECT DISTINCT a FROM {0}",
    "SELECT MAX(a) AS a FROM {0} GROUP BY a", "SELECT a, SUM(a) OVER () FROM {0}", "SELECT a FROM {0} LIMIT 5",
    "SELECT a || a AS a FROM {0}", "SELECT CASE WHEN a = 1 THEN a ELSE a END AS a FROM {0}",
    "SELECT patient_id, MAX(a) AS a FROM {0} GROUP BY patient_id", "SELECT a FROM {0} WHERE a > 1 OR a < 1",
)  # fmt: skip
LAST = (
    "SELECT * FROM {}",
    "SELECT COUNT(*) FROM {}",
    "SELECT SUM(CLIP(a, 0, 1)) FROM {}",
    "SELECT 1",
    "SELECT a FROM {}",
)


def text(random: Random, most: int) -> str:
    """One text of at most so many pieces; cut off, or with something too many, one time in ten."""
    found = random.choice((_nested, _repeated, _joined, _doubled))(random, random.choice((3, 6, 12, most)))
    if random.random() < 0.1:
        at = random.randrange(len(found))
        found = (
            found[:at]
            + random.choice(("", "(", ")", "'", ", ", found[at // 2 : at]))
            + found[at:][: random.choice((0, 9999))]
        )
    return found


def _expression(random: Random, depth: int) -> str:
    found = random.choice(EXPRESSIONS)
    around = random.choices(AROUND, k=random.choice((1, 1, 2, 3)))
    for level in range(depth):
        if len(found) < 2000:
            found = around[level % len(around)].format(found)
    return found


def _nested(random: Random, levels: int) -> str:
    return random.choice(LISTS)[0].format(_expression(random, levels))


def _repeated(random: Random, times: int) -> str:
    frame, separator = random.choice(LISTS)
    pieces = [_expression(random, random.choice((0, 0, 1, 2))) for _ in range(random.choice((1, 1, 3)))]
    numbered = random.random() < 0.5
    return frame.format(separator.join(pieces[i % len(pieces)] + (f" + {i}" if numbered else "") for i in range(times)))


def _joined(random: Random, times: int) -> str:
    relations = random.choices(RELATIONS, k=random.choice((1, 2)))
    return f"SELECT {random.choice(('*', '1', 'COUNT(*)'))} FROM " + random.choice(JOINS).join(
        relations[i % len(relations)] for i in range(times)
    )


def _doubled(random: Random, levels: int) -> str:
    steps = random.choices(STEPS, k=random.choice((1, 1, 2)))
    queries = [f"t0 AS ({random.choice(FIRST)})"]
    queries += [f"t{i + 1} AS ({steps[i % len(steps)].format(f't{i}')})" for i in range(levels)]
    return f"WITH {', '.join(queries)} {random.choice(LAST).format(f't{levels}')}"
