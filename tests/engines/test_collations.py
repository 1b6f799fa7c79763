"""Group keys that the engine takes for equal although they differ.

With a collation one row decides which spelling a whole group comes under. `COLLATE` in the text of a table or a view is
refused; a view can also get it from a macro, and a registered relation has it in its query.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas
import pytest

import dpsql
from tests.support.checklist_clinic import DELTA, LARGE, POLICY, Clinic

HIDDEN = (
    (
        "CREATE MACRO cased() AS TABLE SELECT pid, diag COLLATE nocase AS diag FROM patients",
        "CREATE VIEW listed AS SELECT * FROM cased()",
    ),
    (
        "CREATE MACRO cased(x) AS CAST(x AS VARCHAR) COLLATE nocase",
        "CREATE VIEW listed AS SELECT pid, cased(diag) AS diag FROM patients",
    ),
    (
        "CREATE MACRO cased(x) AS CAST(x AS VARCHAR) COLLATE nocase",
        "CREATE VIEW below AS SELECT pid, cased(diag) AS diag FROM patients",
        "CREATE VIEW listed AS SELECT * FROM below",
    ),
)
LISTED = (
    POLICY.partition("  patients:")[0]
    + """
  listed:
    unit: {column: pid}
    max_rows_per_unit: 1
    columns:
      pid: {type: bigint}
      diag: {type: varchar}
"""
)
ASKED = "SELECT diag, COUNT(*) FROM listed GROUP BY diag"


@pytest.mark.parametrize("statements", HIDDEN)
def test_probe_a_collation_behind_a_macro(make: Callable[..., Clinic], statements: tuple[str, ...]) -> None:
    with make(*statements, policy=LISTED).connect() as con, pytest.raises(dpsql.Error, match="collation"):
        con.execute(ASKED, epsilon=LARGE, delta=DELTA)


def test_probe_a_macro_without_a_collation_hides_nothing(make: Callable[..., Clinic]) -> None:
    clinic = make(
        "CREATE MACRO named() AS TABLE SELECT pid, diag FROM patients",
        "CREATE VIEW listed AS SELECT * FROM named()",
        policy=LISTED,
    )
    with clinic.connect() as con:
        assert con.execute(ASKED, epsilon=LARGE, delta=DELTA).rows is not None


def test_probe_a_collation_in_a_registered_relation(tmp_path: Path) -> None:
    policy = tmp_path / "clinic.yaml"
    policy.write_text(LISTED.replace("database: d.duckdb\n", ""))
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE loose (pid BIGINT, diag VARCHAR COLLATE nocase)")
        mine.execute("CREATE TABLE exact AS SELECT pid, CAST(diag AS VARCHAR) AS diag FROM loose")
        mine.execute("INSERT INTO exact SELECT i, ['flu', 'FLU'][1 + i % 2] FROM range(1000) t(i)")
        frame = mine.table("exact").df()
        for relation in (mine.table("loose"), mine.sql("SELECT pid, diag COLLATE nocase AS diag FROM exact")):
            with (
                pytest.raises(dpsql.Error, match="collation"),
                dpsql.connect(mine, policy=policy, frames={"listed": relation}, optimizers="ours") as con,
            ):
                con.execute(ASKED, epsilon=LARGE, delta=DELTA)
        # A frame's columns have none, whatever else there is.
        assert isinstance(frame, pandas.DataFrame)
        with dpsql.connect(mine, policy=policy, frames={"listed": frame}, optimizers="ours") as con:
            assert dict(con.execute(ASKED, epsilon=LARGE, delta=DELTA).rows) == {"flu": 500, "FLU": 500}


def test_probe_a_key_with_a_nul_in_a_later_release(make: Callable[..., Clinic]) -> None:
    """It was refused with "nothing was spent" when the first release was charged and shown already to its store."""
    clinic = make(
        "CREATE TABLE listed AS SELECT i AS pid, ['a', 'b' || chr(0), chr(0) || '''c'][1 + i % 3] AS diag "
        "FROM range(3000) t(i)",
        policy=LISTED,
    )
    sql = (
        f"WITH g AS ({ASKED.replace('COUNT(*)', 'COUNT(*) AS n')}) "
        "SELECT g.diag, COUNT(*) FROM listed JOIN g USING (diag) WHERE g.n > 0 GROUP BY g.diag"
    )
    with clinic.connect() as con:
        assert dict(con.execute(sql, epsilon=LARGE, delta=DELTA).rows) == {"a": 1000, "b\0": 1000, "\0'c": 1000}


def test_probe_a_uuid_reads_alike_whether_it_is_computed_with_or_not(make: Callable[..., Clinic]) -> None:
    name = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    clinic = make(
        f"CREATE TABLE listed AS SELECT i AS pid, CAST('{name}' AS UUID) AS diag FROM range(100) t(i)",
        policy=LISTED.replace("diag: {type: varchar}", "diag: {type: uuid}"),
    )
    with clinic.connect() as con:
        for sql in (ASKED, f"{ASKED} HAVING COUNT(*) > 0 ORDER BY diag"):
            assert con.execute(sql, epsilon=LARGE, delta=DELTA).rows == ((name, 100),)


def test_probe_a_public_date_that_python_cannot_hold(make: Callable[..., Clinic]) -> None:
    """YEAR(day) of a public table's keys ended in a traceback."""
    dates = "['2024-01-01', '10000-01-01', '0001-01-01 (BC)', 'infinity']"
    clinic = make(
        f"CREATE TABLE listed AS SELECT i AS pid, CAST({dates}[1 + i % 4] AS DATE) AS diag FROM range(400) t(i)",
        "CREATE TABLE days AS SELECT DISTINCT diag FROM listed",
        policy=LISTED.replace("diag: {type: varchar}", "diag: {type: date}")
        + "  days:\n    public: true\n    columns: {diag: {type: date}}\n",
    )
    with clinic.connect() as con:
        for key in ("YEAR(days.diag)", "days.diag", "days.diag + 1", "date_trunc('month', days.diag)"):
            sql = f"SELECT {key}, COUNT(*) FROM listed JOIN days USING (diag) GROUP BY 1"
            assert 100 in dict(con.execute(sql, epsilon=LARGE, delta=DELTA).rows).values()
