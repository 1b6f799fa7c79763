"""What leaves a console or the API for statements of many kinds."""

from __future__ import annotations

from pathlib import Path

from tests.faces.server.web.test_nothing_tells import SOME, nothing_that_leaves_holds_a_private_value
from tests.support.canary import MARKER
from tests.support.small_shop import MEANS

MORE = (
    MEANS, "SELECT * FROM orders", f"SELECT COUNT(*) AS n FROM orders WHERE note = '{MARKER[:-1]}'",
    "SELECT SUM(customer / (customer - 1)) AS s FROM orders",
    "SELECT COUNT(*) AS n FROM orders WHERE 1 / (amount - 5) > 2",
    "SELECT error(note) FROM orders", "SELECT AVG(CLIP(customer, 0, 10)) AS a FROM orders",
    "SELECT * FROM dpsql.tables", "SELECT * FROM dpsql.ledger", "EXPLAIN SELECT COUNT(*) AS n FROM orders",
)  # fmt: skip


def test_no_page_no_response_and_no_line_holds_a_private_value(tmp_path: Path) -> None:
    nothing_that_leaves_holds_a_private_value(tmp_path, SOME + MORE, 5)
