"""Summaries at a server: who may make them, part by part, what is told, and that others are refused with 25006."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dpsql.faces.server.front.commands.commands import QueryCommand, Write
from dpsql.faces.server.front.commands.read_command import command
from dpsql.faces.server.people.users import load_users
from dpsql.faces.server.statements import Ceilings, Login, Refused, StatementSettings
from tests.support.served import people
from tests.support.served_shop import FINE, Served, inside, served, with_serve
from tests.support.small_shop import Shop
from tests.support.summary_board import CREATE, TILES, make_board

MAKER = Login("ana", "ana", address="127.0.0.1", may=("summaries",))
VIEWER = Login("ana", "ana", address="127.0.0.1")
BOB = Login("bob", "bob", address="127.0.0.1", may=("summaries",))
LITTLE = StatementSettings(epsilon="0.001")


def board(folder: Path) -> Shop:
    make_board(folder).rename(folder / "shop.yaml")
    return with_serve(Shop(folder), f"{FINE}}}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    shop = board(tmp_path_factory.mktemp("board"))
    with served(shop, inside(shop)) as server:
        answer = server.ask(CREATE, login=MAKER, settings=LITTLE)
        assert list(answer.rows) == [("board", "ε 0.5")] and answer.command == "CREATE DP SUMMARY"
        assert answer.spent.count("ε") > 5 and str(answer.charged) == "ε 0.5"  # parts, and all of them
        assert any(n.startswith("charged ε") for n in answer.notices)
        yield server


@pytest.mark.parametrize("sql", TILES)
def test_a_tile_is_answered_for_nothing(server: Served, sql: str) -> None:
    first = server.ask(sql, login=VIEWER, settings=replace(LITTLE, intervals=True))
    again = server.ask(sql, login=VIEWER, settings=replace(LITTLE, intervals=True))
    assert first.rows == again.rows and first.spent == again.spent == ""
    assert "nothing was charged" in first.notices
    assert any(note.startswith("from summary board of ") for note in first.notices)
    assert any(name.endswith("_low") for name, _ in first.columns)


@pytest.mark.parametrize(
    "sql", [CREATE, "DROP DP SUMMARY board", "create dp summary x on flights (month)", f"EXPLAIN (COST) {CREATE}"]
)
def test_without_the_right_it_is_refused_as_a_write(server: Served, sql: str) -> None:
    for login in (VIEWER, replace(VIEWER, role="custodian"), Login("bi", "ana", kind="bi")):
        with pytest.raises(Refused) as refusal:
            server.ask(sql, login=login, settings=LITTLE)
        assert refusal.value.sqlstate == "25006" and "may not make or drop" in str(refusal.value)


def test_the_list_is_a_relation(server: Served) -> None:
    for sql in ("SHOW dpsql.summaries", "SELECT name, held, first_receipt FROM dpsql.summaries"):
        answer = server.ask(sql, login=VIEWER)
        assert [row[0] for row in answer.rows] == ["board"] and answer.spent == ""
    (row,) = server.ask("SELECT held, first_receipt FROM dpsql.summaries", login=BOB).rows
    assert row == (False, "ε 0.5")


def test_a_name_is_taken_and_what_is_wrong_is_shown_in_the_statement(server: Served) -> None:
    with pytest.raises(Refused, match="there is a summary board already"):
        server.ask(CREATE.replace("month, ", ""), login=BOB, settings=LITTLE)
    with pytest.raises(Refused) as refusal:
        server.ask("CREATE DP SUMMARY x ON flights (monthh) WITH (epsilon = 1)", login=MAKER)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP103" and found.source is not None and found.span is not None
    assert found.source.text[found.span.start : found.span.end] == "monthh"


def test_explain_says_that_it_is_free(server: Served) -> None:
    lines = [line for (line,) in server.ask("EXPLAIN " + TILES[0], login=VIEWER, settings=LITTLE).rows]
    assert any(str(line).startswith("note: from summary board of ") for line in lines)
    (line,) = {str(row[0]) for row in server.ask("EXPLAIN (COST) " + TILES[0], login=VIEWER, settings=LITTLE).rows}
    assert line == "ε 0"


def test_what_it_would_cost_is_seen_before_for_nothing(server: Served) -> None:
    sql = "CREATE DP SUMMARY seen ON flights (month, late) WITH (epsilon = 0.4)"
    before = server.shop.entries()
    costs = list(server.ask(f"EXPLAIN (COST) {sql}", login=MAKER, settings=LITTLE).rows)
    assert {cost[0] for cost in costs} == {"ε 0.4"} and {cost[1] for cost in costs} >= {"late", "month × late"}
    assert all(isinstance(cost[2], float) and cost[2] > 0 for cost in costs)
    answer = server.ask(f"EXPLAIN {sql}", login=MAKER, settings=LITTLE)
    lines = [str(line) for (line,) in answer.rows]
    assert "month × late" in "\n".join(lines) and lines[-1] == "cost: ε 0.4" and answer.command == "EXPLAIN"
    unsaid = server.ask("EXPLAIN CREATE DP SUMMARY seen ON flights (month, late)", login=MAKER, settings=LITTLE)
    assert str(list(unsaid.rows)[-1][0]).startswith("cost: ε 0.000")  # one of the two is stored
    (again,) = {str(row[0]) for row in server.ask(f"EXPLAIN (COST) {CREATE}", login=MAKER, settings=LITTLE).rows}
    assert again == "ε 0" and server.shop.entries() == before
    with pytest.raises(Refused) as refusal:  # also where the same text was described for somebody who may
        server.ask(f"EXPLAIN (COST) {sql}", login=VIEWER, settings=LITTLE)
    assert refusal.value.sqlstate == "25006"
    assert [row[0] for row in server.ask("SHOW dpsql.summaries", login=VIEWER).rows] == ["board"]


@pytest.mark.parametrize(
    ("sql", "code", "at"),
    [
        ("EXPLAIN DROP DP SUMMARY board", "DP012", ""),
        (f"EXPLAIN (FORMAT JSON) {CREATE}", "DP903", ""),
        ("EXPLAIN /* x */ CREATE DP SUMMARY x ON flights (month", "DP010", ""),
        ("EXPLAIN (COST) CREATE DP SUMMARY x ON flights (month, monthh) WITH (epsilon = 1)", "DP103", "monthh"),
        ("EXPLAIN (COST) CREATE DP SUMMARY x ON flights (month, month)", "DP010", ""),
        ("EXPLAIN CREATE DP SUMMARY x ON flights (month) WITH (eps = 1)", "DP010", "eps"),
    ],
)
def test_what_cannot_be_explained_is_shown_in_the_statement(server: Served, sql: str, code: str, at: str) -> None:
    with pytest.raises(Refused) as refusal:
        server.ask(sql, login=MAKER, settings=LITTLE)
    (found,) = refusal.value.diagnostics
    assert found.code == code and (found.source is None or found.source.text == sql)
    if at:
        assert found.source is not None and found.span is not None
        assert found.source.text[found.span.start : found.span.end] == at


def test_a_ceiling_holds_for_the_whole(server: Served) -> None:
    login = replace(BOB, ceilings=Ceilings(per_query="0.2"))
    with pytest.raises(Refused) as refusal:
        server.ask("CREATE DP SUMMARY small ON flights (month, late) WITH (epsilon = 0.3)", login=login)
    assert refusal.value.diagnostics[0].code == "DP413"
    made = server.ask("CREATE DP SUMMARY small ON flights (month, late) WITH (epsilon = 0.2)", login=login)
    assert list(made.rows) == [("small", "ε 0.2")]
    dropped = server.ask("DROP DP SUMMARY small", login=login)
    assert list(dropped.rows) == [("small",)] and dropped.command == "DROP DP SUMMARY"


def test_the_front_hands_it_on_and_all_else_is_a_write() -> None:
    assert isinstance(command(CREATE), QueryCommand) and isinstance(command("drop dp summary x"), QueryCommand)
    assert isinstance(command(f"EXPLAIN (COST) {CREATE}"), QueryCommand)
    for other in ("CREATE TABLE x (y int)", "CREATE DP TABLE x", "DROP TABLE dp", "CREATE SUMMARY dp ON x (y)"):
        assert isinstance(command(other), Write)


def test_the_right_stands_in_the_file_of_users(tmp_path: Path) -> None:
    secret = people().secret_of("ana")
    path = tmp_path / "users.yaml"
    path.write_text(f"users:\n  ana: {{secret: '{secret}', may: [summaries]}}\n  ben: {{secret: '{secret}'}}\n")
    found = load_users(path)
    ana, ben = found.login("ana"), found.login("ben")
    assert ana is not None and ana.may == ("summaries",) and ben is not None and ben.may == ()
    for wrong in ("[all]", "summaries", "[1]", "{summaries: true}"):
        path.write_text(f"users:\n  ana: {{secret: '{secret}', may: {wrong}}}\n")
        with pytest.raises(Exception, match="DP009"):
            load_users(path)
