"""Item 38: texts that explode are refused."""

from __future__ import annotations

import pytest

from tests.support.checklist_clinic import Attack


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM patients WHERE " + "(" * 500 + "age = 1" + ")" * 500,
        "SELECT COUNT(*) FROM patients WHERE " + "NOT " * 500 + "age = 1",
        "SELECT SUM(" + "-".join(["age"] * 2000) + ") FROM patients",
        "SELECT COUNT(*) FROM patients WHERE " + " OR ".join(f"age = {i}" for i in range(5000)),
        "SELECT COUNT(*) FROM patients WHERE age IN (" + ", ".join(map(str, range(15000))) + ")",
        "SELECT age x0, " + ", ".join(f"x{i} + x{i} AS x{i + 1}" for i in range(40)) + " FROM patients GROUP BY x40",
        "WITH a0 AS (SELECT age AS x FROM patients), "
        + ", ".join(f"a{i + 1} AS (SELECT x + x AS x FROM a{i})" for i in range(40))
        + " SELECT SUM(x) FROM a40",
        "WITH a0 AS (SELECT pid FROM patients), "
        + ", ".join(f"a{i + 1} AS (SELECT l.pid FROM a{i} l JOIN a{i} r ON l.pid = r.pid)" for i in range(40))
        + " SELECT COUNT(*) FROM a40",
        "SELECT COUNT(*) FROM patients" + " -- x" * 30000,
    ],
    ids=["parentheses", "not", "sum", "or", "in", "aliases", "nested names", "nested joins", "long"],
)
def test_item_38_texts_that_explode_are_refused(attack: Attack, text: str) -> None:
    attack.refused(text, "DP010", "DP101")
