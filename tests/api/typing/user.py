"""A user's own code as type checkers see it: never run, checked by `mypy` (strict) with the package."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import dpsql


def ask(path: str) -> list[tuple[object, ...]]:
    with dpsql.connect(path, analyst="ana", epsilon="0.5", frames={"a": object()}) as con:
        q: dpsql.Query = con.sql("SELECT COUNT(*) AS n FROM t WHERE x > ?", [5])
        loss: dpsql.PrivacyLoss = q.cost(max_error={"n": 50})
        widths: dict[str, float | tuple[float, float | None] | None] = q.accuracy(epsilon=1)
        release: dpsql.Release = q.run(epsilon=Fraction(1, 3), allow_dearer=True, fresh=True)
        options: dpsql.Options = {"max_error": {"n": 50}, "confidence": "0.9"}
        print(q.run(**options), q.plan(0.5, "1e-6", weights={"n": 2}), con.execute("SELECT 1", epsilon=1, **options))
        # What nobody knows, or of another kind, is an error while it is typed.
        q.run(1, max_eror={"n": 50})  # type: ignore[call-arg]
        q.cost(max_error=50)  # type: ignore[arg-type]
        con.execute("SELECT 1", coverage="yes")  # type: ignore[arg-type]
        bounds = release.intervals(0.9)[0]["n"]
        if bounds is not None:
            low, high = bounds
            print(low is None or high is None or low < high, widths, loss.epsilon, release.plot(y="n"))
        cur: dpsql.Cursor = con.execute("SELECT 1", {"a": 1}, epsilon=0.1)
        with con.cursor() as other:
            other.execute("SELECT 1").executemany("SELECT ?", [(1,), (2,)])
            for name, code, *_ in other.description or []:
                print(name, code == dpsql.NUMBER, dpsql.DateFromTicks(0.0), dpsql.Date(2024, 1, 1))
        left = con.budget.remaining
        print(left.epsilon if left else None, cur.df(), cur.pl(), cur.arrow(), len(cur), cur.rowcount)
        try:
            con.execute("x")
        except dpsql.BudgetExceeded as refusal:
            print([d.code for d in refusal.diagnostics])
        except con.ProgrammingError as error:
            print(error)
        return cur.fetchall() + cur.fetchmany(size=3) + list(cur)


async def later(con: dpsql.Connection) -> dpsql.Cursor:
    return await asyncio.to_thread(con.execute, "SELECT 1")


policy: dpsql.Policy = dpsql.Policy.from_dict({"version": 1})
found: list[dpsql.Diagnostic] = dpsql.check("SELECT 1", policy)
print(dpsql.apilevel, dpsql.paramstyle, dpsql.threadsafety, dpsql.Warning, dpsql.STRING, dpsql.__version__)
