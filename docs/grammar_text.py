"""The accepted SQL in prose: docs/reference/sql.md, from the grammar and the registry of functions."""

from __future__ import annotations

import json
import re

from dpsql.core.printing.windows import AGGREGATES, WINDOW_FUNCTIONS
from dpsql.functions.registry import describe_registry
from dpsql.spelling import postgres_functions, spark_functions
from dpsql.spelling.postgres_functions import POSTGRES
from dpsql.spelling.spark_functions import SPARK
from grammar.read import sections

EXAMPLES = {
    "Queries": "WITH july AS (SELECT * FROM flights WHERE month = 7)\nSELECT COUNT(*) AS n FROM july",
    "Set operations": "SELECT 'summer' AS season, COUNT(*) AS n FROM flights WHERE month BETWEEN 6 AND 8\nUNION ALL\n"
    "SELECT 'year', COUNT(*) FROM flights\nORDER BY n",
    "FROM": "SELECT airlines.name, hubs.hub, COUNT(*) AS n\nFROM flights\nJOIN airlines USING (carrier)\n"
    "LEFT JOIN (VALUES ('DL', 'ATL'), ('UA', 'EWR')) AS hubs(carrier, hub) ON hubs.carrier = airlines.carrier\n"
    "GROUP BY airlines.name, hubs.hub",
    "Clauses": "SELECT origin, COUNT(*) AS n FROM flights\nWHERE month BETWEEN 6 AND 8\n"
    "GROUP BY ROLLUP (origin) HAVING n > 100\nORDER BY n DESC LIMIT 2",
    "Expressions": "SELECT COUNT(*) AS n FROM flights\n"
    "WHERE (dest LIKE 'S%' OR dest IN ('LAX', 'OAK')) AND NOT dep_delay > 60",
    "Subqueries in expressions": "SELECT COUNT(*) AS n, COUNT(*) / (SELECT COUNT(*) FROM flights) AS part\n"
    "FROM flights\nWHERE tailnum IN (SELECT tailnum FROM planes WHERE engines > 2)\n"
    "  AND NOT EXISTS (SELECT 1 FROM airlines WHERE airlines.carrier = flights.carrier AND name LIKE 'United%')",
    "Aggregates": "SELECT COUNT(*) AS flights, COUNT(DISTINCT tailnum) AS aircraft,\n"
    "       AVG(dep_delay) FILTER (WHERE dep_delay > 0) AS mean_if_late, STDDEV(dep_delay) AS spread\n"
    "FROM flights WHERE month = 7 AND day = 1",
    "Window functions": "SELECT origin, COUNT(*) AS n,\n"
    "       SUM(COUNT(*)) OVER (ORDER BY origin ROWS UNBOUNDED PRECEDING) AS so_far\n"
    "FROM flights GROUP BY origin\nWINDOW w AS (ORDER BY n DESC)\nQUALIFY RANK() OVER w <= 2",
    "Privacy clause": "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_groups_contributed = 2)\n"
    "       origin, COUNT(*, contribution_bounds_per_group => (0, 10)) AS n\nFROM flights GROUP BY origin",
    "Functions": "SELECT CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END AS half, AVG(CLIP(distance, 0, 1000)) AS miles\n"
    "FROM flights GROUP BY half",
    "Constants": "SELECT COUNT(*) AS n FROM flights\n"
    "WHERE time_hour < TIMESTAMP '2013-07-04 00:00:00' + INTERVAL 3 DAY",
}
"""A query for each part; the tests run all of them against the flights example."""


QUESTIONS = (
    ("how many rows, people, different values?", "`COUNT(*)`, `COUNT(DISTINCT id)`, `COUNT(DISTINCT x)`", "Aggregates"),
    (
        "how much in all, on average, how far apart?",
        "`SUM`, `AVG`, `STDDEV`, `VARIANCE` of a column with bounds",
        "Aggregates",
    ),
    ("what is usual?", "`MEDIAN`, `QUANTILE_CONT(x, 0.9)`, `MODE`", "Aggregates"),
    ("what share?", "`COUNT(*) FILTER (WHERE …) / COUNT(*)`, `SUM(x) / SUM(SUM(x)) OVER ()`", "Window functions"),
    ("by region, by month?", "`GROUP BY region, month(day)`; totals by `ROLLUP`, `CUBE`", "Clauses"),
    ("the largest groups, those above a number?", "`ORDER BY n DESC LIMIT 3`, `HAVING n > 100`", "Clauses"),
    ("change, running total?", "`n - LAG(n) OVER (ORDER BY month)`, `SUM(n) OVER (…)`", "Window functions"),
    ("of two tables together?", "`JOIN … USING (id)`; with public tables on any key", "FROM"),
    ("people who did, or did not?", "`EXISTS`, `IN`, `NOT EXISTS` over a subquery", "Subqueries in expressions"),
    (
        "per person first, then all?",
        "`SELECT AVG(CLIP(s, 0, 900)) FROM (SELECT id, SUM(x) AS s … GROUP BY id)`",
        "FROM",
    ),
    ("how do two go together?", "`CORR`, `REGR_SLOPE`, `COVAR_SAMP`", "Aggregates"),
    (
        "with another ε?",
        "`/* dpsql: epsilon=0.5 */ SELECT …`; GoogleSQL's `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) …`",
        "Privacy clause",
    ),
)
"""What analysts ask, what they write, and the part of the page that has it."""

INSTEAD = (
    ("`MIN(x)`, `MAX(x)` of private rows", "`QUANTILE_DISC(x, 0.01)`, `QUANTILE_DISC(x, 0.99)`"),
    ("`SELECT *`, single rows", "an aggregate: one person's row is what is protected"),
    ("`LIMIT`, `ORDER BY` below an aggregate", "`ROW_NUMBER() OVER (PARTITION BY id ORDER BY day)`, for each person"),
    ("`SUM(x)` of a column without bounds", "`SUM(CLIP(x, 0, 500))`"),
    ("a function that is not listed", "`CASE`, or a public table that has the value"),
)
"""What is refused most, and what answers it."""


def _questions() -> list[str]:
    """The part of the page that stands first."""
    lines = ["", "## What do you want to know?", "", "| you ask | you write | more |", "|---|---|---|"]
    for asked, written, part in QUESTIONS:
        lines.append(f"| {asked} | {written} | [{part}](#{part.lower().replace(' ', '-')}) |")
    lines += ["", "The [cookbook](../cookbook.md) has forty such questions whole, each with its answer.", ""]
    lines += ["| refused | write |", "|---|---|"]
    return [*lines, *(f"| {refused} | {written} |" for refused, written in INSTEAD)]


ELSEWHERE = [
    "All of them work where DuckDB reads the data; *elsewhere* says what works where the data is in PostgreSQL or",
    "Apache Spark, if not all does. A value is the same there to the last bit, or the query is refused by name (DP105)",
    "when it is planned or checked. Functions of released numbers work everywhere: DuckDB computes them.",
    "",
    "| | refused there as well |",
    "|---|---|",
    "| PostgreSQL, Spark | casts of texts to other types; casts of DOUBLEs to texts, HUGEINT, FLOAT and DECIMAL of "
    "more than 18 digits; over public rows quantiles, averages and sums of DOUBLEs, and variances |",
    "| PostgreSQL | FULL JOIN without an equality of both sides; `IGNORE NULLS` |",
    "| Spark | whole numbers of more than 38 digits; casts to unsigned integers; values of TIME and UUID; frames of "
    "`GROUPS`, of `RANGE` with a distance, and any frame of a function that takes none, as `ROW_NUMBER` |",
    "",
    "Spark's logarithms, powers and angles round their last digit otherwise than DuckDB's: write `x * x` for a square.",
]

_SERVERS = (("PostgreSQL", POSTGRES, postgres_functions.LIMITS), ("Spark", SPARK, spark_functions.LIMITS))


def _elsewhere(function: str) -> str:
    """What does not work on servers, in a word or two; empty where all does."""
    said = {name: limits.get(function, "") if d.spells(function) else "no" for name, d, limits in _SERVERS}
    if len(set(said.values())) == 1:
        return next(iter(said.values()))
    return "; ".join(f"{name}: {limit}" for name, limit in said.items() if limit)


def _called(signature: str) -> str:
    """A function's arguments without the kinds that its family says; what must be a constant is said."""
    name, bracket, rest = signature.partition("(")
    inside, _, _ = rest.rpartition(")")
    if not bracket or not name.isidentifier() or "·" in signature:
        return signature if "·" in signature or "literal" in signature else signature.partition(": ")[0]
    kept = [a if "literal" in a else re.sub(r":.*?(?= =|$)", "", a) for a in inside.split(", ")]
    return f"{name}({', '.join(kept)})"


_KEYWORD = re.compile(r'"([A-Z][A-Z_]*)"i')


def clauses() -> str:
    """dpsql/faces/cli/shell/commands/clauses.json: what the shell's help says of each part, and the keywords of its
    rules.
    """
    found = [
        {
            "heading": part.heading,
            "words": sorted({word for _, rule in part.parts for word in _KEYWORD.findall(rule)}),
            "texts": [" ".join(comment.replace("`", "").split()) for comment, _ in part.parts if comment],
            "example": EXAMPLES.get(part.heading, ""),
        }
        for part in sections()
        if part.heading not in ("Names", "Functions")
    ]
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def sql_page() -> str:
    """docs/reference/sql.md: what is accepted, part by part, and all functions."""
    lines = [
        "# SQL",
        "",
        "One query in DuckDB's dialect. GoogleSQL's [privacy clause](dialects.md#the-privacy-clause), Snowflake's",
        "interval functions and [other dialects](dialects.md) are read as well (`dialect=`, `--dialect`).",
        "What is not in the [grammar](../../grammar/dpsql.lark) is refused by name, with a DP1xx code. What is in it",
        "is *read*; whether it is *answered* is decided by the [privacy analysis](../explanation/joins.md).",
    ]
    lines += _questions()
    for part in sections():
        lines += ["", f"## {part.heading}"]
        lines += [text for comment, _ in part.parts if comment for text in ("", comment)]
        if part.heading in EXAMPLES:
            lines += ["", "```sql", EXAMPLES[part.heading], "```"]
    lines += [
        "",
        "## List of functions",
        "",
        "A function that is not listed does not exist. Every function is total: no value",
    ]
    lines += ["makes it fail. `literal` marks arguments that must be constants of the query."]
    lines += ["", *ELSEWHERE]
    for family, functions in describe_registry().items():
        lines += [
            "",
            f"### {family}",
            "",
            "| call | meaning | elsewhere |",
            "|---|---|---|",
        ]
        for f in functions:
            names = f["names"]
            assert isinstance(names, list)
            others = [] if f["operator"] else names[1:]
            call = ", ".join(f"`{n}`" for n in (_called(str(f["signature"])).replace("|", "\\|"), *others))
            summary = str(f["summary"]).replace("|", "\\|")
            lines.append(f"| {call} | {summary} | {_elsewhere(str(names[0]))} |")
    lines += ["", "### Over a window", "", f"Also {', '.join(name.upper() for name in AGGREGATES)}.", ""]
    lines += ["| call | meaning |", "|---|---|"]
    lines += [f"| `{w.signature}` | {w.summary} |" for w in WINDOW_FUNCTIONS.values()]
    return "\n".join(lines) + "\n"
