"""What every engine promises about failures, equal values, and threads that stop, close and take turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.core.engine import Engine
from tests.engines.test_engine_contract import WORDS
from tests.support.engine_contract import FailureContract, Words
from tests.support.engines import ENGINES


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
    """What is kept is the first in the order of a hash (core/printing/forms/kept_first.py): it must not matter which
    form came first."""
    rows = ", ".join(f"({form})" for form in forms)
    table = engine.fetch(
        f"SELECT COUNT(*), COUNT(DISTINCT hash(7, 'a', x, NULL, 5)), COUNT(DISTINCT CAST(x AS VARCHAR)), "
        f"(SELECT COUNT(*) FROM (SELECT 1 FROM (VALUES {rows}) t(x) GROUP BY x)) FROM (VALUES {rows}) t(x)"
    )
    found, hashes, texts, groups = (c[0] for c in table.columns)
    assert (found, hashes, groups) == (len(forms), 1, 1) and texts > 1


class TestDuckDB(FailureContract):
    @pytest.fixture
    def words(self) -> Words:
        return WORDS
