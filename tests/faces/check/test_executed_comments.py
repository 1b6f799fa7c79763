"""Comments that MySQL executes are refused by name; what only looks like one is not."""

from __future__ import annotations

import pytest

from dpsql.faces.check.examine.examination import examine
from tests.support.checked_files import GOOD, policy

EXECUTED = (
    f"{GOOD} /*!50000 UNION SELECT age FROM patients */",
    f"{GOOD} /*! UNION SELECT age FROM patients */;",
    "/*! SELECT * FROM patients */",
    f"{GOOD}; /*M!100100 SELECT * FROM patients */",
    "SELECT region, /*!COUNT(*) AS*/ COUNT(*) AS n FROM patients GROUP BY region",
)


@pytest.mark.parametrize("text", EXECUTED)
def test_comments_that_mysql_executes_are_refused_by_name(text: str) -> None:
    (remark,) = examine(text, policy(), "mysql").remarks
    (found,) = remark.mistakes
    assert found.code == "DP119" and found.severity == "error" and "executed by MySQL" in found.message
    assert found.span is not None and text[found.span.start :].startswith(("/*!", "/*M!")) and found.help
    assert not examine(text, policy(), "postgres").remarks


@pytest.mark.parametrize(
    "text",
    [GOOD, f"{GOOD} /* plain */ -- !\n# /*! x", f"{GOOD} /* /*! */",
     "SELECT COUNT(*) AS n FROM patients WHERE region = '/*! x */'"],
)  # fmt: skip
def test_what_only_looks_like_one_is_a_comment_or_a_text(text: str) -> None:
    assert not examine(text, policy(), "mysql").remarks


def test_one_that_is_not_closed_is_no_sql() -> None:
    (statement,) = examine(f"{GOOD} /*!\nUNION SELECT age FROM patients", policy(), "mysql").statements
    assert [found.code for found in statement.diagnostics] == ["DP010"]
