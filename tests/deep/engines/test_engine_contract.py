"""What every engine promises about failures, equal values, and threads that stop, close and take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dpsql.core.engine import Engine, RawTable, engine_failed
from dpsql.diagnostics.errors import EngineError
from tests.engines.test_engine_contract import _LONG, CANARY, ENGINES, chain


@pytest.fixture(params=ENGINES, ids=lambda make: make.__name__)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened: Engine = request.param(tmp_path)
    yield opened
    opened.close()


FORMS = {
    "DOUBLE": ("CAST('0.0' AS DOUBLE)", "CAST('-0.0' AS DOUBLE)"),
    "NaN": ("CAST('nan' AS DOUBLE)", "-CAST('nan' AS DOUBLE)"),
    "FLOAT": ("CAST('0.0' AS FLOAT)", "CAST('-0.0' AS FLOAT)"),
    "INTERVAL": ("INTERVAL 30 DAY", "INTERVAL 1 MONTH", "INTERVAL 720 HOUR", "INTERVAL (2592000000000) MICROSECOND"),
    "DOUBLE[]": ("[CAST('0.0' AS DOUBLE), NULL]", "[CAST('-0.0' AS DOUBLE), NULL]"),
    "INTERVAL[]": ("[INTERVAL 30 DAY]", "[INTERVAL 1 MONTH]"),
}
"""Equal values that look different."""


@pytest.mark.parametrize("forms", FORMS.values(), ids=FORMS)
def test_equal_values_are_one_group_and_have_one_hash(engine: Engine, forms: tuple[str, ...]) -> None:
    """What is kept is the first in the order of a hash (core/printing/kept_first.py): it must not matter which form
    came first."""
    rows = ", ".join(f"({form})" for form in forms)
    table = engine.fetch(
        f"SELECT COUNT(*), COUNT(DISTINCT hash(7, 'a', x, NULL, 5)), COUNT(DISTINCT CAST(x AS VARCHAR)), "
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM (VALUES {rows}) t(x) GROUP BY x)) FROM (VALUES {rows}) t(x)"
    )
    found, hashes, texts, groups = (c[0] for c in table.columns)
    assert (found, hashes, groups) == (len(forms), 1, 1) and texts > 1


FAILURES: dict[str, Callable[[str], str]] = {
    "conversion": lambda t: f"SELECT CAST(t AS INTEGER) FROM {t}",
    "overflow": lambda t: f"SELECT i + 9223372036854775807 FROM {t}",
    "raised by the query": lambda t: f"SELECT error('canary ' || t) FROM {t}",
    "unknown table": lambda t: "SELECT * FROM nowhere",
    "unknown column": lambda t: f"SELECT t{CANARY} FROM {t}",
    "syntax": lambda t: f"SELEC {CANARY}",
    "empty": lambda t: "",
    "two statements": lambda t: f"SELECT 1; SELECT t FROM {t}",
    "not a query": lambda t: f"CREATE TABLE x AS SELECT t FROM {t}",
    "a query that writes": lambda t: f"WITH w AS (INSERT INTO {t} SELECT * FROM {t} RETURNING *) SELECT * FROM w",
}


@pytest.mark.parametrize("kind", FAILURES)
def test_every_failure_is_the_same_error(engine: Engine, kind: str) -> None:
    with pytest.raises(EngineError) as caught:
        engine.fetch(FAILURES[kind](engine.table_sql("numbers")))
    error, constant = caught.value, engine_failed()
    assert (str(error), repr(error), error.args) == (str(constant), repr(constant), constant.args)
    assert error.diagnostics == constant.diagnostics
    assert chain(error) == [error]
    assert getattr(error, "__notes__", []) == []


def test_threads_take_turns(engine: Engine) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for i in range(20):
            table: RawTable = engine.fetch(f"SELECT {number} * 1000 + {i} AS x, CAST({number} AS HUGEINT) AS y")
            if table.columns != ([number * 1000 + i], [number]):
                wrong.append(table.columns)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_closing_stops_a_running_query(engine: Engine) -> None:
    timer = threading.Timer(0.3, engine.close)
    timer.start()
    with pytest.raises(EngineError):
        engine.fetch(_LONG)
    timer.join()
