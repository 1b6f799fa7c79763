"""Random statements of the forms that random queries hardly make: slices, quantiles, modes, top-k, covariances, rows
of ids put together, first rows, joins of private tables; with expressions that are hostile to an analysis.

They are over the tables of `random_databases`, all of which have the columns x, y, w, age, city, flag, day and code.
"""

from __future__ import annotations

import random
import re

from tests.support.random_databases import World

CONDITIONS = (
    "x >= 0", "x < 0", "city = 'a'", "city <> 'a'", "TRY_CAST(city AS INTEGER) IS NULL", "x + 1e19 - 1e19 = x",
    "age % 2 = 1", "age % 2 = 0", "sqrt(w) IS NULL", "(y > 0) IS NOT TRUE", "upper(city) = 'A'", "NOT (x < 0 AND flag)",
    "day < DATE '2024-02-01'", "1 / age > 0", "ln(w) < 1", "CAST(code AS DOUBLE) / 0 > 1", "x * 2147483647 * 2 > y",
    "flag", "NOT flag", "code = 1", "code IN (2, 3)", "age IS NULL", "TRUE OR x > y",
)  # fmt: skip
NUMBERS = (
    "age", "age", "CLIP(x, -3, 7)", "CLIP(x + 1e19 - 1e19, 0, 5)", "CLIP(w / age, -1, 1)", "CLIP(1 / (y - y), 0, 9)",
    "CASE WHEN flag THEN age END", "CLIP(TRY_CAST(city AS INTEGER), 0, 3)", "ABS(age) - 1",
    "COALESCE(CLIP(y, 0, 4), 2)", "age % 2", "age * age", "CLIP(code, 1, 3)", "CASE WHEN {c} THEN 2 ELSE -1 END",
    "SIGN(w)",
)  # fmt: skip
KEYS = (
    "city", "flag", "age", "age % 2", "upper(city)", "month(day)", "CASE WHEN {c} THEN 'in' ELSE 'out' END", "code",
    "age > 0", "TRY_CAST(city AS INTEGER)", "sign(x)",
)  # fmt: skip
CALLS = (
    "COUNT(*)", "COUNT({n})", "SUM({n})", "AVG({n})", "COUNT(DISTINCT {n})", "SUM(DISTINCT {n})", "VAR_POP({n})",
    "COUNT(*) FILTER (WHERE {c})", "SUM({n}) FILTER (WHERE {c})", "AVG({n}) FILTER (WHERE {c})",
    "COUNT(DISTINCT {n}) FILTER (WHERE {c})", "SUM(CASE WHEN {c} THEN {n} ELSE 0 END)", "COUNT_IF({c})",
)  # fmt: skip
FORMS = {
    "slices": (
        "SELECT COUNT(*) FILTER (WHERE {c}), COUNT(*) FILTER (WHERE {c}), AVG({n}) FILTER (WHERE {c}) FROM {t}{w}",
        "SELECT {k} AS k, COUNT(*) FILTER (WHERE age < 1), COUNT(*) FILTER (WHERE age >= 1) FROM {t}{w} GROUP BY 1",
        "SELECT SUM({n}) FILTER (WHERE flag), SUM({n}) FILTER (WHERE NOT flag), {a} FROM {t}{w}",
        "SELECT SUM({n}) FILTER (WHERE city = 'a'), COUNT(*) FILTER (WHERE city = 'a'), "
        "SUM({n}) FILTER (WHERE city = 'b'), COUNT(*) FILTER (WHERE city = 'b'), COUNT(*) FILTER (WHERE {c}) FROM {t}",
        "SELECT COUNT(*) FILTER (WHERE TRY_CAST(x AS INTEGER) < 2), COUNT(*) FILTER (WHERE TRY_CAST(x AS INTEGER) >= 2)"
        ", COUNT(*) FILTER (WHERE TRY_CAST(x AS INTEGER) IS NULL) FROM {t}{w}",
    ),
    "moments": (
        "SELECT COVAR_POP({n}, {n}), CORR({n}, {n}) FROM {t}{w}",
        "SELECT {k} AS k, REGR_SLOPE({n}, {n}), VAR_SAMP({n}) FROM {t} GROUP BY 1",
        "SELECT COVAR_SAMP(age, {n}), STDDEV({n}), {a} FROM {t}",
    ),
    "quantiles": (
        "SELECT MEDIAN({n}), QUANTILE_CONT({n}, 0.25) FROM {t}{w}",
        "SELECT {k} AS k, QUANTILE_DISC({n}, 0.9), {a} FROM {t} GROUP BY 1",
        "SELECT MEDIAN({n}) FILTER (WHERE {c}), MEDIAN({n}) FILTER (WHERE {c}) FROM {t}{w}",
    ),
    "modes": (
        "SELECT MODE(city), MODE(flag) FROM {t}{w}",
        "SELECT {k} AS k, MODE(flag) FILTER (WHERE {c}), {a} FROM {t} GROUP BY 1",
        "SELECT MODE(age % 2), COUNT(*) FROM {t}{w}",
    ),
    "different values": (
        "SELECT COUNT(DISTINCT {n}), SUM(DISTINCT {n}) FROM {t}{w}",
        "SELECT {k} AS k, COUNT(DISTINCT {n}), AVG(DISTINCT {n}) FROM {t} GROUP BY 1",
        "SELECT {k} AS k, COUNT(DISTINCT {k}) FROM {t}{w} GROUP BY 1",
        "SELECT COUNT(DISTINCT {c}), COUNT(DISTINCT city) FILTER (WHERE city IN ('a', 'b')) FROM {t}",
    ),
    "grouping sets": (
        "SELECT city, flag, {a} FROM {t}{w} GROUP BY ROLLUP (city, flag)",
        "SELECT flag, age, {a}, COUNT(*) FROM {t}{w} GROUP BY CUBE (flag, age)",
        "SELECT city, age, {a} FROM {t} GROUP BY GROUPING SETS ((city), (age), ())",
    ),
    "any": (
        "SELECT {k} AS k, {k} AS l, {a}, {a} FROM {t}{w} GROUP BY 1, 2",
        "SELECT {a}, {a}, {a} FROM {t}{w}",
        "SELECT SUM({n}), AVG({n}), COUNT({n}) FROM {t}",
        "SELECT k, {b} FROM (SELECT {k} AS k, {n} AS n FROM {t}{w}) GROUP BY k",
        "SELECT {b} FROM (SELECT {n} AS n FROM {t} WHERE {c} UNION ALL SELECT {n} AS n FROM {t} WHERE {c})",
    ),
}
"""Over any private table. {c}: a condition; {n}: a number; {k}: a key; {a}: a call; {b}: one over a column n."""
OF_IDS = {
    "largest groups": (
        "SELECT city, COUNT(DISTINCT pid) AS n FROM {t} GROUP BY city ORDER BY n DESC LIMIT 1",
        "SELECT city FROM {t}{w} GROUP BY city ORDER BY COUNT(DISTINCT pid) DESC LIMIT 2",
        "SELECT city, COUNT(*) AS n FROM {t} GROUP BY city ORDER BY n DESC LIMIT 2",
    ),
    "rows of an id": (
        "SELECT {b}, COUNT(*) FROM (SELECT pid, SUM({n}) AS n FROM {t}{w} GROUP BY pid)",
        "SELECT {b} FROM (SELECT pid, COUNT(*) AS n, MAX({n}) AS m FROM {t} GROUP BY pid) WHERE m > 0",
        "SELECT k, {b} FROM (SELECT pid, {k} AS k, COUNT(*) AS n FROM {t}{w} GROUP BY 1, 2) GROUP BY k",
        "SELECT COUNT(*), {b} FROM (SELECT DISTINCT pid, {n} AS n FROM {t}{w})",
        "SELECT k, COUNT(*) FROM (SELECT DISTINCT pid, {k} AS k FROM {t}{w}) GROUP BY k",
        "SELECT {b} FROM (SELECT pid, {n} AS n FROM {t} UNION SELECT pid, {n} AS n FROM {t})",
        "SELECT COUNT(*) FROM (SELECT pid, {n} AS n FROM {t} INTERSECT SELECT pid, {n} AS n FROM {t})",
    ),
    "functions of the id": (
        "SELECT k, COUNT(*), COUNT(DISTINCT pid) FROM (SELECT pid, MIN(age) AS k FROM {t}{w} GROUP BY pid) GROUP BY k",
        "SELECT month(d) AS k, COUNT(*) FROM (SELECT pid, MIN(day) AS d FROM {t} GROUP BY pid) GROUP BY 1",
        "SELECT upper(sex) AS k, flag, {a} FROM {t} JOIN (SELECT pid AS q, sex FROM people) ON pid = q GROUP BY 1, 2",
        "SELECT f % 2 AS k, {a} FROM {t} JOIN (SELECT pid AS q, MIN(age) AS f FROM {t} GROUP BY 1) ON pid = q "
        "GROUP BY 1",
    ),
    "first rows": (
        "SELECT {a}, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY {k}, age) AS r FROM {t}{w}) "
        "WHERE r <= {i}",
        "SELECT {k} AS k, COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY day) AS r FROM {t}) "
        "WHERE r = 1 GROUP BY 1",
        "SELECT COUNT(*), {b} FROM (SELECT pid, {n} AS n, ROW_NUMBER() OVER (PARTITION BY pid, flag ORDER BY age DESC) "
        "AS r FROM {t}) WHERE r < {i}",
        "SELECT SUM(CLIP(d, -1, 1)), COUNT(d) FROM (SELECT pid, age - LAG(age) OVER (PARTITION BY pid ORDER BY day) "
        "AS d FROM {t}{w})",
    ),
    "private tables": (
        "SELECT COUNT(*), SUM(v.age) FROM visits v JOIN people p ON v.pid = p.pid WHERE p.age > 0",
        "SELECT sex, COUNT(*), AVG(v.age), COUNT(DISTINCT v.pid) FROM visits v JOIN people p ON v.pid = p.pid "
        "GROUP BY 1",
        "SELECT COUNT(*), AVG(v.age) FROM visits v JOIN (SELECT DISTINCT pid, 1 AS one FROM people) d ON v.pid = d.pid",
        "SELECT COUNT(*), SUM(age) FROM visits WHERE pid IN (SELECT pid FROM people WHERE {c})",
        "SELECT COUNT(*), COUNT(p.pid) FROM visits v LEFT JOIN people p ON v.pid = p.pid AND p.age > 0",
        "SELECT COUNT(*) FROM (SELECT pid, {n} AS n FROM visits UNION ALL SELECT pid, {n} AS n FROM people)",
        "SELECT a.flag, COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.age = b.age GROUP BY 1",
        "SELECT COUNT(*), SUM(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) a FULL JOIN "
        "(SELECT pid AS q, MAX(age) AS m FROM people GROUP BY pid) b ON pid = q",
        "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.pid = p.pid AND v.age > p.age)",
    ),
}
OF_PUBLIC_SIZE = (
    "SELECT SUM({p}), AVG({p}) FROM {t}",
    "SELECT SUM({p}) FROM {t}",
    "SELECT VAR_POP({p}), COUNT({p}) FROM {t}",
    "SELECT COVAR_POP({p}, {n}) FROM {t}",
)
"""{p}: numbers on one side of 0, which a row without a value would jump over."""
POSITIVE = ("CLIP(w, 2, 5)", "CLIP(y, -9, -4)", "CLIP(ABS(age), 3, 4)", "CLIP(code, 1, 3)", "CLIP(x * w, 5, 9)")
MANY = tuple((kind, form) for kind, forms in FORMS.items() for form in forms)
MANY_OF_IDS = tuple((kind, form) for kind, forms in OF_IDS.items() for form in forms)


def random_statement(rng: random.Random, world: World) -> tuple[str, str]:
    """The kind of a statement, and its text."""
    tables = [t.name for t in world.private]
    if any("size" in t.policy for t in world.private) and rng.random() < 0.4:
        kind, form = "public size", rng.choice(OF_PUBLIC_SIZE)
    else:
        kind, form = rng.choice(MANY_OF_IDS if "people" in tables and rng.random() < 0.5 else MANY)
    table = rng.choice(tables)
    holes = {
        "t": lambda: table,
        "w": lambda: f" WHERE {rng.choice(CONDITIONS)}" if rng.random() < 0.3 else "",
        "c": lambda: rng.choice(CONDITIONS),
        "n": lambda: rng.choice(NUMBERS),
        "p": lambda: rng.choice(POSITIVE),
        "k": lambda: rng.choice(KEYS),
        "a": lambda: rng.choice(CALLS),
        "b": lambda: rng.choice(("SUM(CLIP(n, -2, 3))", "AVG(CLIP(n, 0, 4))", "COUNT(n)", "COUNT(DISTINCT n % 2)")),
        "i": lambda: str(rng.randint(1, 3)),
    }
    while "{" in form:
        form = re.sub(r"\{(\w)\}", lambda hole: holes[hole[1]](), form)
    return kind, form
