"""Settings in comments before a query: what they say, for how long, and what they cannot say."""

from __future__ import annotations

import pytest

from dpsql.faces.server.front.commands.read_command import command
from dpsql.faces.server.front.commands.setting_comments import said_before, with_said
from dpsql.faces.server.front.variables import Variables
from dpsql.faces.server.statements import StatementSettings
from tests.faces.server.front.test_conversation import answers
from tests.support.served import Served
from tests.support.wire_client import Client, bind, execute, parse, shape


def read(sql: str) -> dict[str, str]:
    return {name: value for name, value, _ in said_before(command(sql), sql)}


@pytest.mark.parametrize(
    "sql",
    [
        "/* dpsql: epsilon=0.5 */ SELECT n",
        "-- dpsql: epsilon=0.5\nSELECT n",
        "-- a line of old files\r-- dpsql: epsilon=0.5\rSELECT n",
        "/*dpsql:epsilon = '0.5'*/SELECT n",
        '/* Metabase:: userID: 1 */ -- another\n /* DPSQL: dpsql.Epsilon="0.5" */ (SELECT n)',
        "/* a /* nested */ one */ /* dpsql: epsilon=0.5, */ WITH x AS (SELECT 1) SELECT n",
        "/* dpsql: epsilon=0.5 */ EXPLAIN SELECT n",
        "EXPLAIN /* dpsql: epsilon=0.5 */ SELECT n",
        "EXPLAIN (FORMAT JSON) -- dpsql: epsilon=0.5\nSELECT n",
        "EXPLAIN /* dpsql: epsilon=0.5 */ (SELECT n)",
        'DECLARE "c" CURSOR WITH HOLD FOR /* dpsql: epsilon=0.5 */ SELECT n',
        "/* dpsql: epsilon=0.5 */ DECLARE c CURSOR FOR SELECT n",
        "COPY (/* dpsql: epsilon=0.5 */ SELECT n) TO STDOUT",
        "PREPARE q (bigint) AS /* dpsql: epsilon=0.5 */ SELECT n",
        "/* dpsql: epsilon=0.5 */ EXECUTE q(1)",
        "/* dpsql: epsilon=0.5 */ SHOW budget",
    ],
)
def test_where_a_comment_counts(sql: str) -> None:
    assert read(sql) == {"epsilon": "0.5"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /* dpsql: epsilon=0.5 */ n",
        "SELECT n -- dpsql: epsilon=0.5",
        "SELECT '/* dpsql: epsilon=0.5 */' AS n",
        "/* see dpsql: epsilon=0.5 */ SELECT n",
        "/* dpsql epsilon=0.5 */ SELECT n",
        "SELECT $q$ -- dpsql: epsilon=0.5 $q$",
        "EXPLAIN SELECT /* dpsql: epsilon=0.5 */ n",
        "COPY (SELECT n) /* dpsql: epsilon=0.5 */ TO STDOUT",
        "/* dpsql: epsilon=0.5 */ BEGIN",
        "/* dpsql: epsilon=0.5 */",
        "EXPLAIN (FORMAT",
        "EXPLAIN -- dpsql",
    ],
)
def test_where_none_counts(sql: str) -> None:
    assert read(sql) == {}


def test_every_setting_of_dpsql_may_be_said_and_holds_as_if_it_was_set() -> None:
    said = "epsilon=1/3, delta=1e-9 allow_dearer=on, coverage=on consistent_totals=on limits=search notices=off"
    said += ", intervals=on, anyway=on"
    sql = f"/* dpsql: {said} */ FROM t"
    held = with_said(Variables(), said_before(command(sql), sql)).asked
    assert held == StatementSettings(
        epsilon="1/3", delta="1e-9", allow_dearer=True, coverage=True, consistent_totals=True, limits="search",
        notices=False, intervals=True, anyway=True,
    )  # fmt: skip
    sql = "-- dpsql: rho=0.01\nSELECT 1"
    opened = Variables(StatementSettings(epsilon="1"))
    assert with_said(opened, said_before(command(sql), sql)).asked == StatementSettings(rho="0.01")
    assert opened.asked == StatementSettings(epsilon="1")


@pytest.mark.parametrize(
    "sql",
    [
        "{} SELECT n",
        "COPY ({} SELECT n) TO STDOUT",
        "{} COPY (SELECT n) TO STDOUT",
        "BEGIN; DECLARE c CURSOR FOR {} SELECT n; FETCH ALL FROM c; COMMIT",
        "BEGIN; {} DECLARE c CURSOR FOR SELECT n; FETCH ALL FROM c; COMMIT",
        "PREPARE q AS {} SELECT n; EXECUTE q",
        "{} PREPARE q AS SELECT n; EXECUTE q",
        "PREPARE q AS {} SELECT n; /* dpsql: epsilon=1 */ EXECUTE q",
        "PREPARE q AS SELECT n; {} EXECUTE q",
    ],
)
def test_what_comments_alone_say_holds_wherever_its_query_is_written(client: Client, served: Served, sql: str) -> None:
    client.query(sql.format("/* dpsql: anyway=on */") + "; SELECT n")
    assert [settings.anyway for _, _, _, settings in answers(served).asked] == [True, False]
    assert shape(client.query("SET anyway = on")) == shape(client.query("SHOW anyway")) == "E(42704) ZI"


@pytest.mark.parametrize(
    ("comment", "state", "word"),
    [
        ("/* dpsql: epsilon=lots */", "22023", "epsilon"),
        ("/* dpsql: epsilon=-1 */", "22023", "epsilon"),
        ("/* dpsql: anyway=maybe */", "22023", "anyway"),
        ("/* dpsql: account=ben */", "42704", "account"),
        ("/* dpsql: delta=1e-9, analyst=ben */", "42704", "analyst"),
        ("-- dpsql: statement_timeout=0\n", "42704", "statement_timeout"),
        ("/* dpsql: epsilon */", "42601", "epsilon"),
        ("/* dpsql: use a small epsilon=1 */", "42601", "use"),
        ("/* dpsql: epsilon='1 */", "42601", "epsilon"),
        ("/* dpsql: epsilon=1, epsilon=2 */", "42601", "epsilon"),
        ("/* dpsql: epsilon=1 */ -- dpsql: rho=1\n", "42601", "rho"),
        ("/* dpsql: epsilon=1 /* dpsql: delta=1 */ */", "42601", "/* dpsql: delta"),
    ],
)
def test_what_is_not_understood_is_refused_at_its_place(
    client: Client, served: Served, comment: str, state: str, word: str
) -> None:
    sql = f"SELECT n; {comment} SELECT n"
    refused = client.query(sql)
    assert shape(refused).endswith(f"E({state}) ZI")
    assert refused[-2].fields["P"] == str(sql.index(word) + 1) and refused[-2].fields["H"]
    assert (served.log.events[-1].outcome, served.log.events[-1].statement.strip()) == (state, sql[9:].strip())


def test_it_holds_for_its_statement_alone(client: Client, served: Served) -> None:
    client.query("SET delta = 1e-9; /* dpsql: epsilon=0.25 */ SELECT n; SELECT n")
    client.extended(parse("-- dpsql: epsilon=0.5\nSELECT n", "s"), bind(statement="s"), execute())
    client.query("SET epsilon = 2")
    client.extended(bind(statement="s"), execute())
    client.query("BEGIN; DECLARE c CURSOR FOR /* dpsql: epsilon=3 */ SELECT n; FETCH 1 FROM c; COMMIT")
    client.query("PREPARE q AS /* dpsql: epsilon=4 */ SELECT n; EXECUTE q; /* dpsql: epsilon=5 */ EXECUTE q; EXECUTE q")
    client.query("COPY (/* dpsql: epsilon=6 */ SELECT n) TO STDOUT; SELECT n")
    asked = [settings.epsilon for _, _, _, settings in answers(served).asked]
    assert asked == ["0.25", None, "0.5", "0.5", "3", "4", "5", "4", "6", "2"]
    assert {settings.delta for _, _, _, settings in answers(served).asked} == {"1e-9"}


def test_a_comment_that_changes_the_columns_holds_when_they_are_told(client: Client) -> None:
    replies = client.query("/* dpsql: intervals=on */ SELECT n")
    assert replies[1].body[:2] == b"\0\2"
