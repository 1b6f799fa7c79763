"""Items 15 to 25: errors, time and resources as side channels, through whole sessions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest

import dpsql
from dpsql.core.engine import RawTable
from tests.support.checklist_clinic import CANARY, Attack, Clinic, assert_silent

BOB = "CASE WHEN name = 'bob' THEN"


@pytest.mark.parametrize(
    "target", ["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(4,2)", "DATE", "TIMESTAMP", "BOOLEAN", "UUID"]
)
def test_item_15_a_failed_cast_is_null(attack: Attack, target: str) -> None:
    """'abc' and the canary are no such value; nobody may learn that from an error."""
    ((n,),) = attack.answer(f"SELECT COUNT(*) FROM patients WHERE CAST(zip AS {target}) IS NULL")
    assert n in (2, 3, 4)
    ((n,),) = attack.answer(f"SELECT COUNT(CAST(zip AS {target})) FROM patients WHERE CAST(zip AS {target}) IS NULL")
    assert n == 0


@pytest.mark.parametrize(
    "target", ["JSON", "INTERVAL", "BLOB", "INTEGER[]", "STRUCT(a INTEGER)", "MAP(INTEGER, INTEGER)", "BIT"]
)
def test_item_15_casts_to_other_types_do_not_exist(attack: Attack, target: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE CAST(zip AS {target}) IS NULL", "DP106")


@pytest.mark.parametrize(
    "call",
    [
        "error('bob has ' || diag)",
        "getvariable('x')",
        "read_text('/etc/passwd')",
        "query('SELECT 1')",
        "current_setting('threads')",
        "getenv('HOME')",
        "json_execute_serialized_sql('x')",
        "nextval('s')",
        "sleep(1)",
        "no_such_function(age)",
    ],
)
def test_item_16_error_function(attack: Attack, call: str) -> None:
    """Default deny: whatever is not registered does not exist, in any clause."""
    for sql in (
        f"SELECT SUM({BOB} {call} ELSE 1 END) FROM patients",
        f"SELECT COUNT(*) FROM patients WHERE {call} = 'x'",
        f"SELECT COUNT(*) FROM patients GROUP BY {call}",
        f"SELECT COUNT(*) FROM patients HAVING COUNT(*) > 0 AND {call} = 'x'",
        f"SELECT COUNT(*) FROM patients ORDER BY {call}",
        f"SELECT COUNT(*) FILTER (WHERE {call} = 'x') FROM patients",
        f"SELECT COUNT(*) FROM patients JOIN pub ON patients.diag = pub.diag AND {call} = 'x'",
    ):
        attack.refused(sql, "DP105", "DP114")


@pytest.mark.parametrize(
    "call", ["1 << age", "factorial(age)", "bit_count(age)", "gcd(big, 0)", "age >> age", "1 << 70"]
)
def test_item_17_functions_that_raise_are_not_registered(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} > 0", "DP101", "DP105", "DP106")


@pytest.mark.parametrize(
    "call", ["abs(big - 9223372036854775807 - 9223372036854775807)", "-big", "sqrt(-income)", "ln(-age)"]
)
def test_item_17_registered_functions_are_total(attack: Attack, call: str) -> None:
    attack.answer(f"SELECT COUNT(*) FROM patients WHERE {call} > 0")


@pytest.mark.parametrize(
    "call",
    [
        "name LIKE zip",
        "date_part(zip, ts) = 1",
        "strftime(ts, zip) = 'x'",
        "date_trunc(zip, ts) = ts",
        "lpad(name, age, 'x') = 'x'",
        "replace(name, zip, 'x') = 'x'",
        "split_part(name, zip, 1) = 'x'",
        "regexp_matches(name, zip)",
        "regexp_extract(name, zip) = 'x'",
        "regexp_replace(name, 'a', zip) = 'x'",
    ],
)
def test_item_18_patterns_and_parts_are_literals(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call}", "DP115", "DP106")


@pytest.mark.parametrize(
    "call",
    [
        "strptime(zip, '%Y')",
        "json_extract(zip, '$')",
        "from_base64(zip)",
        "unhex(zip)",
        "chr(age)",
        "repeat(zip, age)",
        "timezone(zip, ts)",
        "format(zip, 1)",
        "printf(zip, 1)",
        "list_value(age)[9]",
    ],
)
def test_item_18_functions_that_raise_on_data_do_not_exist(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} = 'x'", "DP101", "DP105", "DP106", "DP115")


@pytest.mark.parametrize("pattern", ["a\\", "\\", "%\\"])
def test_item_18_a_pattern_is_checked_when_it_is_planned(attack: Attack, pattern: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE name LIKE '{pattern}' ESCAPE '\\'", "DP106", "DP101")


def test_item_19_odd_keys_of_a_public_table_are_harmless(make: Callable[..., Clinic]) -> None:
    clinic = make(
        "ALTER TABLE pub ADD COLUMN day DATE",
        "INSERT INTO pub VALUES ('x', 1, 'infinity'), ('y', 1, '9999-12-31'), ('z', 1, '20000-01-01'), ('w', 1, NULL)",
        "UPDATE patients SET diag = 'y'",
        "UPDATE patients SET diag = 'x' WHERE pid = 2",
    )
    clinic.policy.write_text(
        clinic.policy.read_text().replace(
            "      cost: {type: double}\n  grid", "      cost: {type: double}\n      day: {type: date}\n  grid"
        )
    )
    with clinic.connect() as con:
        rows = con.execute(
            "SELECT u.day, COUNT(*) FROM patients p JOIN pub u USING (diag) GROUP BY 1", epsilon=1000
        ).rows
        assert dict(rows).get(dt.date(9999, 12, 31)) == 3


@pytest.mark.parametrize(
    "call", ["[1, 2][age]", "list_extract([1, 2], age)", "array_value(1, 2)[age]", "{'a': 1}.a", "name[1]"]
)
def test_item_20_no_indexing(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} = 1", "DP101", "DP105", "DP106")


def test_item_21_no_private_scalar_subqueries(attack: Attack) -> None:
    """Without noise, that is: a COUNT in an expression is released like any other (items 41 and 42)."""
    for inner in ("SELECT age FROM patients", "SELECT MAX(age) FROM patients", "SELECT age FROM patients LIMIT 1"):
        attack.refused(f"SELECT COUNT(*) FROM patients WHERE age = ({inner})", "DP111", "DP101")
        attack.refused(f"SELECT SUM(({inner})) FROM patients", "DP111", "DP101")
        attack.refused(f"SELECT COUNT(*), ({inner}) FROM patients", "DP111", "DP101")
        attack.refused(f"SELECT diag FROM pub WHERE cost > ({inner})", "DP111", "DP101")
    for inner in ("SELECT age FROM patients", "SELECT COUNT(*) FROM patients"):
        attack.refused(f"SELECT COUNT(*) FROM patients GROUP BY ({inner})", "DP111")
        attack.refused(f"SELECT COUNT(*) FROM patients LIMIT ({inner})", "DP111", "DP115")
        attack.refused(f"SELECT name, ({inner}) FROM patients", "DP110", "DP111")


def test_item_22_no_guard_is_relied_on(attack: Attack) -> None:
    """The optimizer may run the cast first: it is total by itself."""
    for sql in (
        "SELECT COUNT(*) FROM patients WHERE zip <> 'abc' AND CAST(zip AS INTEGER) > 0",
        "SELECT COUNT(*) FROM patients WHERE CAST(zip AS INTEGER) > 0 AND zip <> 'abc'",
        "SELECT COUNT(*) FROM (SELECT CAST(zip AS INTEGER) z, zip FROM patients) WHERE zip <> 'abc' AND z > 0",
        "SELECT COUNT(*) FROM patients JOIN grid ON CAST(patients.zip AS INTEGER) = grid.age",
    ):
        assert attack.answer(sql)[0][0] in (0, 1)


@pytest.mark.parametrize("who", ["bob", "nobody"])
def test_item_23_no_conditional_memory(attack: Attack, who: str) -> None:
    """`replace` nested in itself used to grow a text on chosen rows by a factor of 100 each time."""
    x = f"CASE WHEN name = '{who}' THEN name ELSE '' END"
    for _ in range(6):
        x = f"replace({x}, 'b', '{'b' * 100}')"
    try:
        attack.answer(f"SELECT COUNT(*) FROM patients WHERE length({x}) > 0")
    except dpsql.Rejected as refusal:
        assert refusal.diagnostics[0].code == "DP101"  # too long to print: refused whoever is in the data


@pytest.mark.parametrize(
    "call", ["range(age)", "repeat('x', age)", "generate_series(1, age)", "lpad(name, 100000000, 'x')"]
)
def test_item_23_no_sizes_from_data(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE length({call}) > 0", "DP101", "DP105", "DP106")


@pytest.mark.parametrize(
    "call",
    [
        "list_transform([1], x -> x)",
        "list_reduce([1], (x, y) -> x)",
        "regexp_replace(name, '((a{50}){50}){50}', 'b')",
        r"regexp_matches(name, '(a*)*\1b')",
        "levenshtein(name, zip)",
    ],
)
def test_item_24_no_heavy_functions(attack: Attack, call: str) -> None:
    attack.refused(f"SELECT COUNT(*) FROM patients WHERE {call} IS NOT NULL", "DP101", "DP105", "DP106")


def test_item_25_a_failure_costs_and_says_nothing(clinic: Clinic) -> None:
    """Whatever goes wrong after the reservation, inside the engine or in our own code, looks alike and is paid for."""

    def broken_rows(sql: str) -> RawTable:
        raise RuntimeError(f"could not convert {CANARY}")

    def odd_rows(sql: str) -> RawTable:
        return RawTable(("k0", "m0"), (["a", "b"], [1, CANARY]))

    shown = set()
    for fetch in (broken_rows, odd_rows):
        with clinic.connect() as con:
            plan = con.sql("SELECT name, COUNT(*) FROM patients GROUP BY name").plan(1, 1e-3)
            before = con.budget["unit"].total_spent.epsilon
            con.service.engine.fetch = fetch  # type: ignore[method-assign]
            with pytest.raises(dpsql.EngineError) as caught:
                con.run(plan)
            assert con.budget["unit"].total_spent.epsilon == before + 1
            assert caught.value.__cause__ is None and caught.value.__context__ is None
            assert_silent(caught.value)
            shown.add(str(caught.value))
    assert len(shown) == 1


def test_item_25_nothing_private_is_read_before_the_charge(clinic: Clinic) -> None:
    """Planning, EXPLAIN, cost and a refused charge touch public tables only."""
    with clinic.connect() as con:
        read: list[str] = []
        fetch = con.service.engine.fetch

        def watched(sql: str) -> RawTable:
            read.append(sql)
            return fetch(sql)

        con.service.engine.fetch = watched  # type: ignore[method-assign]
        query = con.sql(
            "SELECT u.label, name, COUNT(*), AVG(amt) FROM visits v JOIN patients p USING (pid) "
            "JOIN grid u ON p.diag = u.diag GROUP BY 1, 2"
        )
        query.explain(), query.cost(1, 1e-3), query.accuracy(1, 1e-3)
        with pytest.raises(dpsql.BudgetExceeded):
            query.run(epsilon=10**10, delta=1e-12)
        assert read and not any("patients" in sql or "visits" in sql for sql in read)


def test_item_25_nothing_private_is_read_without_a_charge(clinic: Clinic) -> None:
    """Public keys and sums that are always 0 cost nothing; so they may not run anything on private rows either."""
    with clinic.connect() as con:
        read: list[str] = []
        fetch = con.service.engine.fetch

        def watched(sql: str) -> RawTable:
            read.append(sql)
            return fetch(sql)

        con.service.engine.fetch = watched  # type: ignore[method-assign]
        for sql in (
            "SELECT DISTINCT diag FROM patients WHERE name = 'bob'",
            "SELECT SUM(CASE WHEN age > 5 THEN 0 ELSE 0 END) FROM patients",
        ):
            answer = con.execute(sql, epsilon=1)
            assert answer.spent.epsilon == 0 and len(answer) in (1, 4)
        assert not any("patients" in sql for sql in read)
