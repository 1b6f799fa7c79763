"""`limits = 'search'`: one setting, under one name, wherever a query is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dpsql
from dpsql.api.session_statements import Set, Show, special
from dpsql.faces.cli.shell.state import Shell
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.privacy_settings import setting, settled
from tests.api.conftest import POLICY, Opener, members

COUNT = "SELECT COUNT(*) AS n FROM members"


@pytest.mark.parametrize(
    ("word", "search"), [("search", True), (" SEARCH ", True), ("declared", False), ("Declared", False)]
)
def test_limits_are_searched_or_declared(word: str, search: bool) -> None:
    now = settled({"limits": word}, QuerySettings(search=not search))
    assert now.search is search and setting(now, "limits") == word.strip().lower()
    assert settled({}, QuerySettings(search=search)).search is search


@pytest.mark.parametrize("word", ["", "on", "all", "searched", True, 1, b"search"])
def test_other_limits_are_refused(word: Any) -> None:
    with pytest.raises(dpsql.Rejected, match="'auto', 'search' or 'declared'") as refusal:
        settled({"limits": word}, QuerySettings())
    assert (
        refusal.value.diagnostics[0].code == "DP406" and "SET limits = 'search'" in refusal.value.diagnostics[0].help[0]
    )


def test_statements_read_it() -> None:
    assert special("SET limits = 'search'") == Set("limits", "search") == special("SET LIMITS TO search;")
    assert special("SHOW limits") == Show("limits") and special("RESET limits") == Set("limits", None)


def test_a_session_holds_it(opened: Opener) -> None:
    with opened(epsilon=1) as con:
        assert con.execute("SHOW limits").fetchall() == [("limits", "auto")]
        assert con.execute("SET limits = 'search'").fetchall() == [("limits", "search")]
        assert con.settings.search and con.execute("SHOW limits").fetchall() == [("limits", "search")]
        assert con.execute("RESET limits").fetchall() == [("limits", "auto")]
        assert con.set("limits", "search") == "search" and con.set("limits", "declared") == "declared"
        with pytest.raises(dpsql.Rejected, match="DP406"):
            con.execute("SET limits = 'on'")
        shell = Shell(con)
        shell.set_amount("limits", "search")
        assert shell.amount("limits") == "search" and shell.confirmation("limits", None) == "limits: back to search"


def test_a_session_is_opened_with_it(opened: Opener) -> None:
    with opened(limits="search") as con:
        assert con.execute("SHOW limits").fetchall() == [("limits", "search")]
        assert con.execute("SET limits = 'declared'").fetchall() == [("limits", "declared")]
        assert con.execute("RESET limits").fetchall() == [("limits", "search")]


def refusing() -> dpsql.Connection:
    data = {**POLICY, "search": "refuse", "tables": {"members": POLICY["tables"]["members"]}}
    return dpsql.connect(dpsql.Policy.from_dict(data), frames={"members": members(10)}, ledger=":memory:")


@pytest.mark.parametrize(
    "ask",
    [
        lambda con: con.execute("SET limits = 'search'"),
        lambda con: con.sql(COUNT).plan(epsilon=1, limits="search"),
        lambda con: con.sql(COUNT).explain(epsilon=1, limits="search"),
        lambda con: con.sql(COUNT).cost(epsilon=1, limits="search"),
        lambda con: con.execute(COUNT, epsilon=1, limits="search"),
        lambda con: con.execute("SELECT SUM(CLIP(fee, AUTO)) AS s FROM members", epsilon=1),
    ],
)
def test_a_policy_refuses_it_everywhere(ask: Callable[[dpsql.Connection], object]) -> None:
    with refusing() as con:
        with pytest.raises(dpsql.Rejected, match="DP213"):
            ask(con)
        assert con.execute("SET limits = 'declared'").fetchall() == [("limits", "declared")]
        assert con.budget["member"].spent == dpsql.PrivacyLoss()


def test_a_search_that_found_nothing_does_not_say_that_nothing_was_spent() -> None:
    found = dpsql.Diagnostic("DP212", "nothing was found", notes=("ε 0.8 was charged",))
    error = dpsql.NothingFound([found])
    assert "nothing was spent" not in str(error) and "ε 0.8 was charged" in str(error)
    assert isinstance(error, dpsql.OperationalError) and not isinstance(error, dpsql.Rejected)
