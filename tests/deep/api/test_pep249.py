"""PEP 249, sentence by sentence."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpsql
from tests.api.conftest import Opener

COUNT = "SELECT COUNT(*) AS n FROM members"
BY_CITY = "SELECT city, COUNT(*) AS n FROM members GROUP BY city ORDER BY city"


def test_the_globals() -> None:
    assert (dpsql.apilevel, dpsql.threadsafety, dpsql.paramstyle) == ("2.0", 2, "qmark")


def test_the_exceptions() -> None:
    tree = {
        "Warning": Exception,
        "Error": Exception,
        "InterfaceError": dpsql.Error,
        "DatabaseError": dpsql.Error,
        "DataError": dpsql.DatabaseError,
        "OperationalError": dpsql.DatabaseError,
        "IntegrityError": dpsql.DatabaseError,
        "InternalError": dpsql.DatabaseError,
        "ProgrammingError": dpsql.DatabaseError,
        "NotSupportedError": dpsql.DatabaseError,
    }
    for name, parent in tree.items():
        assert getattr(dpsql, name).__bases__ == (parent,)
        assert getattr(dpsql.Connection, name) is getattr(dpsql, name)
    assert issubclass(dpsql.Rejected, dpsql.ProgrammingError) and issubclass(dpsql.BudgetExceeded, dpsql.Rejected)
    assert issubclass(dpsql.CannotOpen, dpsql.OperationalError) and issubclass(
        dpsql.EngineError, dpsql.OperationalError
    )


def test_what_users_have_caught_so_far_is_still_caught(con: dpsql.Connection) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        con.execute("SELECT age FROM members")
    assert refusal.value.diagnostics[0].code == "DP110"
    assert not isinstance(refusal.value, dpsql.CannotOpen | dpsql.EngineError)
    with pytest.raises(dpsql.CannotOpen) as closed:
        dpsql.connect("there-is-no-such.yaml")
    assert not isinstance(closed.value, dpsql.Rejected)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("VARCHAR", dpsql.STRING), ("UUID", dpsql.STRING), ("BLOB", dpsql.BINARY), ("BIGINT", dpsql.NUMBER),
        ("HUGEINT", dpsql.NUMBER), ("DECIMAL(38,2)", dpsql.NUMBER), ("DOUBLE", dpsql.NUMBER),
        ("BOOLEAN", dpsql.NUMBER), ("DATE", dpsql.DATETIME), ("TIMESTAMP", dpsql.DATETIME),
        ("TIMESTAMP WITH TIME ZONE", dpsql.DATETIME), ("TIME", dpsql.DATETIME), ("INTERVAL", dpsql.DATETIME),
    ],
)  # fmt: skip
def test_type_codes(code: str, kind: object) -> None:
    kinds = [dpsql.STRING, dpsql.BINARY, dpsql.NUMBER, dpsql.DATETIME, dpsql.ROWID]
    assert [k for k in kinds if k == code] == [kind] == [k for k in kinds if code == k]
    assert not any(k != code for k in [kind]) and len(set(map(hash, kinds))) == 5


def test_type_objects_are_equal_to_nothing_else() -> None:
    assert dpsql.NUMBER != "NOTHING" and dpsql.NUMBER != 5 and dpsql.NUMBER != dpsql.STRING
    assert dpsql.NUMBER == dpsql.NUMBER and repr(dpsql.NUMBER) == "dpsql.NUMBER"


def test_constructors() -> None:
    assert dpsql.Date(2024, 2, 29) == dt.date(2024, 2, 29)
    assert dpsql.Time(1, 2, 3) == dt.time(1, 2, 3)
    assert dpsql.Timestamp(2024, 2, 29, 1, 2, 3) == dt.datetime(2024, 2, 29, 1, 2, 3)
    assert dpsql.Binary(b"x") == b"x"
    ticks = time.mktime((2024, 2, 29, 1, 2, 3, 0, 0, -1))
    assert dpsql.DateFromTicks(ticks) == dt.date(2024, 2, 29)
    assert dpsql.TimeFromTicks(ticks) == dt.time(1, 2, 3)
    assert dpsql.TimestampFromTicks(ticks) == dt.datetime(2024, 2, 29, 1, 2, 3)


def test_importing_the_module_loads_no_engine() -> None:
    """Nor do its globals, its exceptions and the check."""
    script = (
        "import sys, dpsql; dpsql.paramstyle, dpsql.Error, dpsql.NUMBER, dpsql.Date, dpsql.check, dpsql.Policy\n"
        "print([m for m in ('duckdb', 'numpy', 'pandas', 'polars', 'pyarrow', 'sqlalchemy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


KINDS = [getattr(dpsql, n) for n in ("Rejected", "BudgetExceeded", "CannotOpen", "EngineError", "InterfaceError")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_exceptions_come_back_from_other_processes(
    con: dpsql.Connection, kind: type[dpsql.Error], through: Callable[[dpsql.Error], dpsql.Error]
) -> None:
    """A pool of processes pickles them; one that could not be read again would break the pool."""
    with pytest.raises(dpsql.Rejected) as refusal:
        con.execute("SELECT nmae FROM members")
    error = kind(refusal.value.diagnostics)
    again = through(error)
    assert type(again) is kind and again.diagnostics == error.diagnostics
    assert str(again) == str(error) and again.args == error.args and "DP103" in str(again)


# --- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_connection_has_no_twin(con: dpsql.Connection, through: Callable[[object], object]) -> None:
    for held in (con, con.cursor()):
        if through is copy.copy and held is not con:
            continue  # a second cursor of the same connection
        with pytest.raises(dpsql.Rejected) as refusal:
            through(held)
        assert refusal.value.diagnostics[0].code == "DP903"
    assert con.execute(COUNT).fetchone()


@pytest.mark.parametrize("ledger", [5, b"x.sqlite", True, {}])
def test_what_is_no_ledger(ledger: object) -> None:
    with pytest.raises(dpsql.Rejected) as refusal:
        dpsql.connect("there-is-no-such.yaml", ledger=ledger)  # type: ignore[arg-type]
    assert refusal.value.diagnostics[0].code == "DP903"


def test_commit_and_rollback_do_nothing(opened: Opener) -> None:
    with opened(epsilon=1) as con:
        con.execute(COUNT)
        con.commit()
        con.rollback()
        assert con.budget.spent.epsilon == 1  # nothing is given back


def test_after_closing(opened: Opener) -> None:
    con = opened(epsilon=1)
    cur = con.execute(BY_CITY)
    con.close()
    con.close()
    for use in (con.cursor, con.commit, con.rollback, lambda: cur.execute(COUNT), lambda: con.execute(COUNT)):
        with pytest.raises(dpsql.ProgrammingError) as refusal:
            use()
        assert refusal.value.diagnostics[0].code == "DP903"


# --- cursors ---------------------------------------------------------------------------------------------------------


def test_a_new_cursor(con: dpsql.Connection) -> None:
    cur = con.cursor()
    assert cur.description is None and cur.rowcount == -1 and cur.arraysize == 1 and cur.connection is con
    assert cur and not hasattr(cur, "callproc") and cur.nextset() is None
    assert cur.setinputsizes([1]) is None and cur.setoutputsize(1, 2) is None  # type: ignore[func-returns-value]
    for use in (cur.fetchone, cur.fetchmany, cur.fetchall, lambda: next(cur), lambda: cur.release, lambda: len(cur)):
        with pytest.raises(dpsql.Error) as refusal:
            use()
        assert refusal.value.diagnostics[0].code == "DP903"


def test_description(con: dpsql.Connection) -> None:
    cur = con.cursor()
    cur.execute("SELECT city, COUNT(*) AS n, SUM(fee) AS fees, AVG(age) AS age FROM members GROUP BY city LIMIT 0")
    assert cur.description == [
        ("city", "VARCHAR", None, None, None, None, None),
        ("n", "BIGINT", None, None, None, None, None),
        ("fees", "DECIMAL(38,2)", None, None, 38, 2, None),
        ("age", "DOUBLE", None, None, None, None, None),
    ]
    assert cur.rowcount == 0 and cur.fetchone() is None and cur.fetchmany(5) == [] and cur.fetchall() == []


def test_fetching(con: dpsql.Connection) -> None:
    cur = con.cursor()
    assert cur.execute(BY_CITY) is cur and cur.rowcount == 3
    first = cur.fetchone()
    assert first is not None and first[0] == "Bonn"
    assert [row[0] for row in cur.fetchmany()] == ["Lyon"]  # arraysize
    assert [row[0] for row in cur] == ["Oslo"]
    assert cur.fetchone() is None and cur.fetchall() == [] and list(cur) == []
    cur.execute(BY_CITY)
    assert [row[0] for row in cur.fetchmany(size=2)] == ["Bonn", "Lyon"]
    cur.arraysize = 5
    assert [row[0] for row in cur.fetchmany()] == ["Oslo"] and cur.fetchmany() == []
    assert cur.fetchmany(0) == []
    found = []
    cur.execute(BY_CITY)
    while row := cur.fetchone():
        found.append(row[0])
    assert found == ["Bonn", "Lyon", "Oslo"]


def test_fetchmany_takes_no_row_too_many(con: dpsql.Connection) -> None:
    cur = con.execute(BY_CITY)
    assert len(cur.fetchmany(1)) == 1 and len(cur.fetchmany(1)) == 1 and len(cur.fetchall()) == 1


# --- what is no query, no parameters, no number ----------------------------------------------------------------------

WRONG: dict[str, Callable[[dpsql.Connection], object]] = {
    "a series": lambda con: con.execute(f"{COUNT} WHERE age > ?", pd.Series([40])),  # type: ignore[arg-type]
    "an array": lambda con: con.execute(f"{COUNT} WHERE age > ?", np.array([40])),  # type: ignore[arg-type]
    "a number": lambda con: con.cursor().execute(f"{COUNT} WHERE age > ?", 40),  # type: ignore[arg-type]
    "zero": lambda con: con.execute(f"{COUNT} WHERE age > ?", 0),  # type: ignore[arg-type]
    "a text": lambda con: con.execute(f"{COUNT} WHERE city = ?", "B"),
    "a query as bytes": lambda con: con.execute(b"SELECT 1"),  # type: ignore[arg-type]
    "plan": lambda con: con.plan(COUNT, 5),  # type: ignore[arg-type]
    "preview": lambda con: con.preview(b"x"),  # type: ignore[arg-type]
    "no parameters at all": lambda con: con.executemany(COUNT, None),  # type: ignore[arg-type]
    "a text for many": lambda con: con.executemany(f"{COUNT} WHERE city = ?", "BL"),
    "a word of rows": lambda con: con.execute(BY_CITY).fetchmany("a"),  # type: ignore[arg-type]
    "half a row": lambda con: con.execute(BY_CITY).fetchmany(1.5),  # type: ignore[arg-type]
    "check: a number": lambda con: dpsql.check(COUNT, con.policy, 5),  # type: ignore[arg-type]
    "check: bytes": lambda con: dpsql.check(b"x", con.policy),  # type: ignore[arg-type]
    "check: a dialect": lambda con: dpsql.check(COUNT, con.policy, dialect=5),  # type: ignore[arg-type]
    "check: no policy": lambda con: dpsql.check(COUNT, None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("use", WRONG.values(), ids=list(WRONG))
def test_what_python_would_trip_over_is_refused_with_a_code(
    con: dpsql.Connection, use: Callable[[dpsql.Connection], object]
) -> None:
    with pytest.raises(dpsql.ProgrammingError) as refusal:
        use(con)
    assert [d.code for d in refusal.value.diagnostics] == ["DP903"]


def test_none_is_no_parameters_wherever_a_query_is_taken(con: dpsql.Connection) -> None:
    assert con.execute(COUNT, None).rows and con.sql(COUNT, None).run().rows
    assert con.plan(COUNT, None) == con.plan(COUNT) and con.preview(COUNT, None).basis.complete
    assert dpsql.check(COUNT, con.policy, None) == []
    assert con.executemany(COUNT, [None, ()]).nextset()  # type: ignore[list-item]


def test_cursors_do_not_share_rows(con: dpsql.Connection) -> None:
    first, second = con.execute(BY_CITY), con.execute(BY_CITY)
    assert first.fetchone() == second.fetchone()  # the second one is given again for nothing
    assert len(first.fetchall()) == len(second.fetchall()) == 2


def test_a_closed_cursor(con: dpsql.Connection) -> None:
    with con.cursor() as cur:
        cur.execute(COUNT)
    cur.close()
    for use in (cur.fetchone, cur.fetchall, lambda: cur.execute(COUNT), lambda: cur.release, cur.nextset):
        with pytest.raises(dpsql.Error):
            use()
    assert repr(cur) == "<dpsql.Cursor: closed>" and con.execute(COUNT).fetchone()


def test_a_refusal_leaves_no_rows_of_the_query_before(con: dpsql.Connection) -> None:
    cur = con.execute(COUNT)
    with pytest.raises(dpsql.Rejected):
        cur.execute("SELECT age FROM members")
    assert cur.description is None and cur.rowcount == -1
    with pytest.raises(dpsql.Rejected):
        cur.fetchone()


def test_parameters(con: dpsql.Connection) -> None:
    sql = "SELECT city, country FROM cities WHERE city = {} OR country = {} ORDER BY city"
    wanted = [("Bonn", "Germany"), ("Lyon", "France")]
    assert con.execute(sql.format("?", "?"), ("Bonn", "France")).fetchall() == wanted
    assert con.execute(sql.format("$a", "$b"), {"a": "Bonn", "b": "France"}).fetchall() == wanted
    assert con.execute("SELECT COUNT(*) FROM cities", None).fetchall() == [(3,)]
    cur = con.cursor().execute("SELECT founded FROM cities WHERE founded = ?", [dpsql.Date(1, 1, 1)])
    assert cur.fetchall() == [(dt.date(1, 1, 1),)]
    with pytest.raises(dpsql.Rejected):
        con.execute("SELECT city FROM cities WHERE city = ?")
    with pytest.raises(dpsql.Rejected):
        con.execute(5)  # type: ignore[arg-type]


def test_executemany(opened: Opener) -> None:
    with opened(epsilon=1) as con:
        cur = con.cursor()
        cur.executemany("SELECT city FROM cities WHERE city = ?", [["Bonn"], ["Oslo"]])
        assert cur.fetchall() == [("Bonn",)] and cur.nextset() and cur.fetchall() == [("Oslo",)]
        assert cur.nextset() is None and con.budget.spent.epsilon == 0
        con.executemany("SELECT COUNT(*) FROM members WHERE age < ?", [(5,), (6,)], epsilon=0.25)
        assert con.budget.spent.epsilon == 0.5
        cur.executemany("SELECT COUNT(*) FROM members", [])
        assert cur.description is None and cur.rowcount == -1


def test_a_run_of_many_that_is_refused_leaves_those_before_it(opened: Opener) -> None:
    with opened(epsilon=1) as con:
        cur = con.cursor()
        with pytest.raises(dpsql.Rejected) as refusal:
            cur.executemany("SELECT COUNT(*) FROM members WHERE age < ?", [(5,), (6, 7)])
        (found,) = refusal.value.diagnostics
        assert found.code == "DP013" and found.notes[0].startswith("this is run 2: those before it stay charged")
        assert con.budget.spent.epsilon == 1 and len(cur.fetchall()) == 1 and cur.nextset() is None
        with pytest.raises(dpsql.Rejected) as refusal:
            cur.executemany("SELECT COUNT(*) FROM members WHERE age < ?", [(6, 7), (5,)])
        assert not any("run" in note for note in refusal.value.diagnostics[0].notes) and cur.rowcount == -1


# --- ε ---------------------------------------------------------------------------------------------------------------


def test_where_epsilon_comes_from(opened: Opener) -> None:
    """Keyword, clause, SET, session; without any of them an error."""
    with opened() as con:
        with pytest.raises(dpsql.Rejected) as refusal:
            con.execute(COUNT)
        assert refusal.value.diagnostics[0].code == "DP401"
        assert con.execute(COUNT, epsilon=0.5).spent.epsilon == 0.5
        clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2) COUNT(*) AS n FROM members WHERE age < 7"
        assert con.execute(clause).spent.epsilon == 2
        cur = con.cursor()
        assert cur.execute("SET epsilon = 0.25").fetchall() == [("epsilon", "0.25")]
        with pytest.raises(dpsql.Rejected):
            cur.df()
        assert cur.execute("SELECT COUNT(*) FROM members WHERE age < 8").spent.epsilon == 0.25
        assert con.execute("SELECT COUNT(*) FROM members WHERE age < 9").spent.epsilon == 0.25
        assert con.execute("SELECT COUNT(*) FROM members WHERE age < 9", epsilon=1).spent.epsilon == 1
        assert con.execute("RESET epsilon").fetchall() == [("epsilon", None)]
        with pytest.raises(dpsql.Rejected):
            con.execute("SELECT COUNT(*) FROM members WHERE age < 10")


def test_every_keyword_of_a_run(opened: Opener) -> None:
    with opened() as con:
        cur = con.execute(COUNT, max_error={"n": 10}, confidence=0.9)
        low, high = cur.intervals(0.9)[0]["n"] or (0, 0)
        assert 0 < (high - low) / 2 <= 10
        again = con.execute(COUNT, max_error={"n": 10}, confidence=0.9)
        assert again.spent.epsilon == 0 and again.rows == cur.rows
        assert con.execute(COUNT, epsilon=1, fresh=True).spent.epsilon == 1
        sql = "SELECT COUNT(*) AS n, SUM(age) AS s FROM members WHERE age < 50"
        cur = con.execute(sql, epsilon=1, delta=0, weights={"n": 3})
        shares = {c["aggregate"]: c["epsilon"] for c in cur.components}
        assert len(shares) == 2 and max(shares.values()) == pytest.approx(3 * min(shares.values()))


@pytest.mark.parametrize(
    ("statement", "epsilon", "delta"),
    [
        ("SET epsilon = 0.25", "0.25", None),
        ("set session epsilon to '1/3';", "1/3", None),
        ("-- why\n/* and */ SET delta = 1e-9", None, "1e-9"),
        ("SET epsilon = DEFAULT", None, None),
        ("RESET EPSILON ;", None, None),
    ],
)
def test_settings(opened: Opener, statement: str, epsilon: str | None, delta: str | None) -> None:
    with opened() as con:
        con.execute(statement)
        assert con._settings.epsilon == (None if epsilon is None else Fraction(epsilon))
        assert con._settings.delta == (None if delta is None else Fraction(delta))


def test_resetting_goes_back_to_what_the_session_was_opened_with(opened: Opener) -> None:
    with opened(epsilon=2, delta=1e-7) as con:
        opened_with = con._settings
        for statement in ("SET rho = 0.5", "SET delta = 0"):
            con.execute(statement)
        assert con._settings.rho is not None and con._settings.epsilon is None
        for statement in ("RESET rho", "RESET delta"):
            con.execute(statement)
        assert con._settings == opened_with


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SET epsilon = -1", "DP406"),
        ("SET epsilon = x", "DP406"),
        ("SET delta = 2", "DP406"),
        ("SET threads = 4", "DP903"),
        ("RESET nothing", "DP903"),
    ],
)
def test_wrong_settings(con: dpsql.Connection, statement: str, code: str) -> None:
    before = con._settings
    with pytest.raises(dpsql.Rejected) as refusal:
        con.execute(statement)
    assert refusal.value.diagnostics[0].code == code and con._settings == before


def test_explain(opened: Opener) -> None:
    """Rows of text, for nothing; without an ε anywhere, too."""
    with opened() as con:
        sql = "SELECT COUNT(*) AS n FROM members WHERE age < ?"
        cur = con.execute(f"EXPLAIN {sql}", [5])
        assert cur.description == [("plan", "VARCHAR", None, None, None, None, None)]
        assert "\n".join(row[0] for row in cur) == con.sql(sql, [5]).explain()
        assert con.budget.spent.epsilon == 0
        with pytest.raises(dpsql.Rejected):
            con.execute("EXPLAIN SELECT age FROM members")
        with pytest.raises(dpsql.Rejected):
            cur.df()


# --- what a cursor has of its answer ---------------------------------------------------------------------------------


def test_a_cursor_has_what_its_answer_has(con: dpsql.Connection) -> None:
    cur = con.execute(BY_CITY)
    release = cur.release
    cur.fetchone()
    assert cur.rows == release.rows and len(cur) == len(release) == 3  # all rows, whatever was fetched
    assert (cur.columns, cur.types, cur.spent, cur.notes) == (
        release.columns, release.types, release.spent, release.notes,
    )  # fmt: skip
    assert cur.plan is release.plan and cur.components == release.components
    assert cur.intervals(0.9) == release.intervals(0.9) and cur.to_dict() == release.to_dict()
    assert cur.df().equals(release.df()) and cur.pl().equals(release.pl()) and cur.arrow().equals(release.arrow())
    assert str(cur) == str(release) and cur._repr_html_() == release._repr_html_()


def test_a_cursor_has_every_public_name_of_a_release() -> None:
    public = {name for name in vars(dpsql.Release) if not name.startswith("_")} | {"_repr_html_", "__arrow_c_stream__"}
    assert [name for name in sorted(public) if not hasattr(dpsql.Cursor, name)] == []


# --- what an analyst's objects may do --------------------------------------------------------------------------------


class Sly(int):
    """Prints itself as other SQL."""

    def __str__(self) -> str:
        return "0) OR (1 = 1"

    __repr__ = __str__


class SlyText(str):
    def __str__(self) -> str:
        return "x') OR ('a' = 'a"

    def replace(self, *_: object) -> str:  # type: ignore[override]
        return "x') OR ('a' = 'a"


def test_parameters_are_what_they_hold(opened: Opener) -> None:
    with opened(epsilon=400) as con:
        cur = con.cursor()
        assert cur.execute("SELECT COUNT(*) FROM members WHERE age < ?", [Sly(40)]).fetchone() == (1520,)
        assert cur.execute("SELECT COUNT(*) FROM members WHERE note = $n", {"n": SlyText("no")}).fetchone() == (0,)
        cur.executemany("SELECT COUNT(*) FROM members WHERE age < ?", iter([(Sly(40),)]))
        assert cur.fetchone() == (1520,)
        for wrong in ([object()], [[1]], [float("nan")], "40"):
            with pytest.raises(dpsql.Rejected):
                cur.execute("SELECT COUNT(*) FROM members WHERE age < ?", wrong)  # type: ignore[arg-type]


def test_what_an_engine_says_is_not_shown(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(epsilon=1) as con:
        cur = con.execute(COUNT)

        def broken(*_: object) -> None:
            raise RuntimeError("row 17: Ada Lovelace")

        monkeypatch.setattr("dpsql.engines.duckdb.engine.read", broken)
        with pytest.raises(dpsql.OperationalError) as error:
            cur.execute("SELECT COUNT(*) FROM members WHERE age < 3")
        assert isinstance(error.value, dpsql.EngineError) and "Ada" not in str(error.value)
        assert error.value.__cause__ is None and error.value.__context__ is None
        with pytest.raises(dpsql.Rejected):
            cur.fetchone()  # nor the rows of the query before
