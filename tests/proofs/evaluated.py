"""What Plan.v says that operators mean, and Bounds.v that weights are, compared with what DuckDB computes.

Plans of every operator over tiny tables, NULL and equal rows among them, are run by Coq (`vm_compute`, Tiny.v) and
by DuckDB. Weights are the emitted SQL's, over enumerated rows, groups and limits. A twin in which NULL equals NULL
differs.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import duckdb

from dpsql.core.printing.forms.weights import divisors, over_groups, over_rows, scaled
from dpsql.spelling.duckdb_functions import DUCKDB
from tests.proofs import compiled
from tests.proofs.printed import listed

Row = tuple[int | None, ...]
TABLES = 12
ORDER = "x NULLS FIRST, y NULLS FIRST"

ONE = {
    "scan": ("(Scan 0)", "SELECT * FROM a"),
    "filter": ("(Filter 0 [] (Scan 0))", "SELECT * FROM a WHERE x > y"),
    "filter by a number": ("(Filter 0 [(1, 1%Z)] (Scan 0))", "SELECT * FROM a WHERE x > y AND y = 1"),
    "project": ("(Project [Col 1; Fun 0] (Scan 0))", "SELECT y, x + y FROM a"),
    "unnest": ("(Unnest 0 2 (Scan 0))", "SELECT x, y, unnest([x, y]) FROM a"),
    "unnest, cut": ("(Unnest 0 1 (Scan 0))", "SELECT x, y, unnest(([x, y])[1:1]) FROM a"),
    "distinct": ("(Distinct (Project [Col 0] (Scan 0)))", "SELECT DISTINCT x FROM a"),
    "groups": ("(Group [Col 0] 0 (Scan 0))", "SELECT x, COUNT(*), SUM(y) FROM a GROUP BY x"),
    "groups by what is computed": (
        "(Group [Fun 0] 0 (Scan 0))",
        "SELECT x + y, COUNT(*), SUM(y) FROM a GROUP BY x + y",
    ),
    "total": ("(Total 0 (Scan 0))", "SELECT COUNT(*), SUM(y) FROM a"),
    "window": ("(Window [Col 0] 0 (Scan 0))", "SELECT x, y, COUNT(*) OVER (PARTITION BY x) FROM a"),
    "keep": (
        "(Truncate [0] 2 false (Scan 0))",
        f"SELECT * FROM a QUALIFY x IS NULL OR ROW_NUMBER() OVER (PARTITION BY x ORDER BY {ORDER}) <= 2",
    ),
    "drop": (
        "(Truncate [0] 2 true (Scan 0))",
        "SELECT * FROM a QUALIFY x IS NULL OR COUNT(*) OVER (PARTITION BY x) <= 2",
    ),
    "keep by two columns": (
        "(Truncate [0; 1] 1 false (Scan 0))",
        f"SELECT * FROM a QUALIFY x IS NULL OR y IS NULL OR ROW_NUMBER() OVER (PARTITION BY x, y ORDER BY {ORDER}) = 1",
    ),
}
JOINS = ("Inner", "Left", "Full", "Semi", "Anti")
SETS = ("UnionAll", "Union", "IntersectAll", "Intersect", "ExceptAll", "Except")


def plans() -> Iterator[tuple[str, str, str]]:
    """(name, plan of Plan.v, SQL) for every operator."""
    yield from ((name, plan, sql) for name, (plan, sql) in ONE.items())
    for kind in JOINS:
        word = kind.upper() + (" OUTER" if kind == "Full" else "")
        for rest, more in (("None", ""), ("(Some 1)", " AND a.x > b.y")):
            if kind == "Full" and more:
                word = "FULL"
            yield (
                f"{kind} join {more}",
                f"(Join {kind} [(Col 0, Col 0)] {rest} (Scan 0) (Scan 1))",
                (f"SELECT * FROM a {word} JOIN b ON a.x = b.x{more}"),
            )
    both = "(Join Inner [(Col 0, Col 1); (Col 1, Col 0)] None (Scan 0) (Scan 1))"
    yield "two equalities", both, "SELECT * FROM a JOIN b ON a.x = b.y AND a.y = b.x"
    yield "no equality", "(Join Inner [] None (Scan 0) (Scan 1))", "SELECT * FROM a CROSS JOIN b"
    computed = "(Join Left [(Fun 0, Col 0)] None (Scan 0) (Scan 1))"
    yield "a computed key", computed, "SELECT * FROM a LEFT JOIN b ON a.x + a.y = b.x"
    for kind in SETS:
        word = kind.removesuffix("All").upper() + (" ALL" if kind.endswith("All") else "")
        yield kind, f"(SetOp {kind} (Scan 0) (Scan 1))", f"SELECT * FROM a {word} SELECT * FROM b"


def tables(seed: int) -> tuple[list[Row], list[Row]]:
    """Two tables of up to five rows, with NULL and equal rows among them."""
    rng = random.Random(seed)
    pick = lambda: tuple(rng.choice((None, 1, 1, 2, 3)) for _ in range(2))  # noqa: E731
    return [pick() for _ in range(rng.randint(0, 5))], [pick() for _ in range(rng.randint(0, 5))]


def row(values: Sequence[int | None]) -> str:
    return listed("None" if v is None else f"Some ({v})%Z" for v in values)


def rows(held: Sequence[Sequence[int | None]]) -> str:
    return listed(map(row, held))


def cases() -> list[tuple[str, str]]:
    """(name, case of Tiny.v): what DuckDB gives beside the plan."""
    found = []
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a (x BIGINT, y BIGINT); CREATE TABLE b (x BIGINT, y BIGINT)")
        for seed in range(TABLES):
            held = tables(seed)
            for name, content in zip("ab", held, strict=True):
                connection.execute(f"DELETE FROM {name}")
                for each in content:
                    connection.execute(f"INSERT INTO {name} VALUES (?, ?)", list(each))
            for name, plan, sql in plans():
                given = connection.execute(sql).fetchall()
                found.append((name, f"({rows(held[0])}, {rows(held[1])}, {plan}, {rows(given)})"))
    return found


def different(made: Sequence[tuple[str, str]], folder: Path = compiled.BUILT) -> list[str]:
    """The plans to which Coq gives other rows than DuckDB."""
    numbers = compiled.computed(
        "Evaluated", "List ZArith", "Plan Tiny", f"different 0 ({listed(case for _, case in made)} : list case)", folder
    )
    return sorted({made[i][0] for i in numbers})


def twin() -> list[str]:
    """What differs if NULL equals NULL in joins."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in ("Near", "Ops"):
            for end in ("v", "vo"):
                shutil.copy(compiled.BUILT / f"{name}.{end}", folder)
        plan = (compiled.FOLDER / "Plan.v").read_text(encoding="utf-8")
        old = "Some x, Some y => Z.eqb x y | _, _ => false end."
        assert plan.count(old) == 1
        new = old.replace("| _, _ => false", "| None, None => true | _, _ => false")
        (folder / "Plan.v").write_text(plan.replace(old, new), encoding="utf-8")
        shutil.copy(compiled.FOLDER / "Tiny.v", folder)
        for name in ("Plan", "Tiny"):
            compiled.coqc(name, folder)
        return different(cases(), folder)


# --- weights ---------------------------------------------------------------------------------------------------------

F, B = 4, 3
LIMITS = (1, 2, 3, 5)
Weighed = tuple[str, int]
"""A formula of Bounds.v, and what the emitted SQL gives."""


def weights() -> list[Weighed]:
    """C over all groups, and M and G, of an id with n rows in a group that add up to m, in K groups, N rows in all."""
    found: list[Weighed] = []
    partials = [(n, m) for n in range(1, 7) for m in range(-n * B, n * B + 1)]
    with duckdb.connect() as connection:
        for most in LIMITS:
            of_id = [(n, m, all_rows) for n, m in partials for all_rows in range(n, 9, 3)]
            sql = scaled(DUCKDB, "m", F * most, B, {"nn": most})
            values = ", ".join(f"({nn}::BIGINT, {m}::HUGEINT)" for _, m, nn in of_id)
            text = f"SELECT {sql} FROM (SELECT *, {', '.join(divisors({'nn': most}))} FROM (VALUES {values}) t(nn, m))"
            for (n, m, nn), (given,) in zip(of_id, connection.execute(text).fetchall(), strict=True):
                gs = listed([f"({n}, {m})", f"({nn - n}, 0)"])
                found.append((f"hd 0 (by_rows {F} {most} {gs})", given))
        for most, groups in product(LIMITS[:3], LIMITS[:3]):
            term = over_groups(DUCKDB, 0, over_rows(DUCKDB, "m", F * groups, B, most), groups)
            (held,) = term.columns.values()
            among = [(n, m, k) for n, m in partials for k in range(1, 6, 2)]
            values = ", ".join(f"({n}::BIGINT, {m}::HUGEINT, {k}::BIGINT)" for n, m, k in among)
            text = f"SELECT {term.over} FROM (SELECT {held} AS q0, kk FROM (VALUES {values}) t(n, m, kk))"
            for (n, m, k), (given,) in zip(among, connection.execute(text).fetchall(), strict=True):
                gs = listed([f"({n}, {m})", *["(1, 0)"] * (k - 1)])
                found.append((f"hd 0 (by_groups {F} {most} {groups} {gs})", given))
    return found


def other_weights(made: Sequence[Weighed], folder: Path = compiled.BUILT) -> list[str]:
    """Formulas that Coq computes otherwise than the emitted SQL."""
    pairs = listed(f"({formula}, ({given}))" for formula, given in made)
    text = f"wrong 0 ({pairs} : list (Z * Z))%Z"
    wrong = (
        "Fixpoint wrong (n : nat) (l : list (Z * Z)) : list nat := match l with [] => [] "
        "| (a, b) :: r => if Z.eqb a b then wrong (S n) r else n :: wrong (S n) r end.\nOpen Scope Z_scope."
    )
    numbers = compiled.computed("Weighed", "List ZArith", "Bounds", text, folder, wrong)
    return [made[i][0] for i in numbers]
