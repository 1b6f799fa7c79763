"""The number of rows that an answer will have, as it is known before it is paid: that of the answer, or none."""

from __future__ import annotations

import pytest

from dpsql.api.connection import connect
from dpsql.planner.costs.answer_size import known_size
from tests.support.small_shop import Shop, make_shop

CITIES = "SELECT city, COUNT(*) AS n FROM orders GROUP BY city"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"), epsilon="100")


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        (CITIES, 3),
        ("SELECT COUNT(*) AS n FROM orders", 1),
        (f"{CITIES} ORDER BY n DESC", 3),
        (f"{CITIES} LIMIT 2", 2),
        (f"{CITIES} ORDER BY n LIMIT 2 OFFSET 2", 1),
        (f"SELECT city, n, RANK() OVER (ORDER BY n) AS r FROM ({CITIES}) AS t", 3),
        (f"{CITIES} HAVING COUNT(*) > -1000000", None),
        ("SELECT note, COUNT(*) AS n FROM orders GROUP BY note", None),
    ],
)
def test_it_is_that_of_the_answer(shop: Shop, sql: str, size: int | None) -> None:
    with connect(shop.policy) as connection:
        plan = connection.sql(sql).plan(epsilon=1, delta=1e-9)
        assert known_size(plan) == size
        if size is not None:
            assert len(connection.run(plan)) == size
