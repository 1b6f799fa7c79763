"""Texts → statements and commands: where each ends, which it is, and what is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.faces.server.front.commands import commands as c
from dpsql.faces.server.front.commands.client_tokens import ClientStatement, statements, tokens
from dpsql.faces.server.front.commands.read_command import command
from dpsql.faces.server.front.error_fields import ProtocolFault

READ: dict[str, c.Command | None] = {
    "": None,
    "-- nothing": None,
    "BEGIN": c.Transaction("begin", "BEGIN"),
    "begin isolation level repeatable read, read only": c.Transaction("begin", "BEGIN"),
    "START TRANSACTION READ WRITE": c.Transaction("begin", "START TRANSACTION"),
    "end": c.Transaction("commit", "COMMIT"),
    "ABORT WORK": c.Transaction("rollback", "ROLLBACK"),
    "ROLLBACK TO SAVEPOINT \"S\"": c.Transaction("rollback to", "ROLLBACK", "S"),
    "SAVEPOINT s": c.Transaction("savepoint", "SAVEPOINT", "s"),
    "RELEASE SAVEPOINT s": c.Transaction("release", "RELEASE", "s"),
    "COMMIT PREPARED 'x'": c.Write("COMMIT PREPARED"),
    "SET epsilon = 0.5": c.Set("epsilon", "0.5"),
    "/* hi */ SET dpsql.Epsilon TO '1/3' -- there": c.Set("dpsql.epsilon", "1/3"),
    "SET epsilon = 1/3": c.Set("epsilon", "1/3"),
    "SET SESSION delta = 1e-9": c.Set("delta", "1e-9"),
    "SET LOCAL search_path TO a, \"B\"": c.Set("search_path", "a, B", local=True),
    "SET local = 1": c.Set("local", "1"),
    "SET epsilon = DEFAULT": c.Set("epsilon", None),
    "SET TIME ZONE 'Europe/Berlin'": c.Set("timezone", "Europe/Berlin"),
    "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE": c.Set("timezone", "+00:00"),
    "SET LOCAL TIME ZONE INTERVAL '-8' HOUR": c.Set("timezone", "-8", True),
    "SET SESSION TIME ZONE LOCAL": c.Set("timezone", None),
    "SET TIME ZONE DEFAULT": c.Set("timezone", None),
    "SET TIME ZONE -7": c.Set("timezone", "-7"),
    "SET NAMES 'utf8'": c.Set("client_encoding", "utf8"),
    "SET SESSION AUTHORIZATION bob": c.Set("session_authorization", "bob"),
    "SET ROLE bob": c.Set("role", "bob"),
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE": c.Nothing("SET"),
    "RESET ALL": c.ResetAll("RESET"),
    "RESET dpsql.epsilon": c.Set("dpsql.epsilon", None, tag="RESET"),
    "DISCARD ALL": c.ResetAll("DISCARD ALL", everything=True),
    "DISCARD PLANS": c.Nothing("DISCARD PLANS"),
    "SHOW dpsql.epsilon": c.Show("dpsql.epsilon"),
    "SHOW TIME ZONE": c.Show("timezone"),
    "SHOW transaction isolation level": c.Show("transaction_isolation"),
    "SHOW ALL": c.Show("all"),
    "SHOW no_such_setting": c.Show("no_such_setting"),
    "SHOW TABLES": c.QueryCommand("SHOW TABLES"),
    "SHOW budget": c.QueryCommand("SHOW budget"),
    "SHOW dpsql.budget": c.QueryCommand("SHOW dpsql.budget"),
    "DECLARE \"C\" NO SCROLL CURSOR WITH HOLD FOR SELECT 1": c.Declare("C", c.QueryCommand("SELECT 1", 43), hold=True),
    "DECLARE c BINARY CURSOR FOR SELECT 1": c.Declare("c", c.QueryCommand("SELECT 1", 28), hold=False),
    "FETCH c": c.Fetch("c", "forward", 1),
    "FETCH ALL IN c": c.Fetch("c", "forward", None),
    "FETCH FORWARD 10 FROM c": c.Fetch("c", "forward", 10),
    "FETCH -2 c": c.Fetch("c", "forward", -2),
    "FETCH PRIOR c": c.Fetch("c", "backward", 1),
    "FETCH BACKWARD ALL FROM c": c.Fetch("c", "backward", None),
    "FETCH LAST FROM c": c.Fetch("c", "absolute", -1),
    "MOVE RELATIVE -3 IN c": c.Fetch("c", "relative", -3, move=True),
    "CLOSE ALL": c.CloseCursor(None),
    "CLOSE c": c.CloseCursor("c"),
    "COPY (SELECT (1), ')') TO STDOUT": c.CopyOut(c.QueryCommand("SELECT (1), ')'", 6)),
    "COPY public.t (a, b) TO STDOUT WITH CSV HEADER": c.CopyOut(
        c.QueryCommand("SELECT a, b FROM public.t", None), "csv", ",", "", True
    ),
    "COPY (SELECT 1) TO STDOUT (FORMAT binary)": c.CopyOut(c.QueryCommand("SELECT 1", 6), "binary"),
    "COPY t FROM STDIN": c.Write("COPY FROM"),
    "PREPARE q (int, double precision) AS SELECT $1": c.Prepare(
        "q", c.QueryCommand("SELECT $1", 37), ("int", "double precision")
    ),
    "EXECUTE q (1, 'a''b', NULL, -3, DATE '2020-01-01', '5'::int, true)": c.ExecutePrepared(
        "q", ("1", "a'b", None, "-3", "2020-01-01", "5", "true")
    ),
    "DEALLOCATE PREPARE ALL": c.Deallocate(None),
    "DEALLOCATE q": c.Deallocate("q"),
    "UNLISTEN *": c.Nothing("UNLISTEN"),
    "SELECT pg_advisory_unlock_all()": c.Nothing("SELECT 1", "pg_advisory_unlock_all"),
    "SELECT 1": c.QueryCommand("SELECT 1"),
    "EXPLAIN SELECT 1": c.QueryCommand("EXPLAIN SELECT 1"),
    "SELECT 'INSERT INTO t' AS into_t": c.QueryCommand("SELECT 'INSERT INTO t' AS into_t"),
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_each_command_is_read(text: str) -> None:
    assert command(text) == READ[text]


WRITES = [
    "INSERT INTO t VALUES (1)", "UPDATE t SET a = 1", "DELETE FROM t", "MERGE INTO t USING u ON TRUE",
    "CREATE TABLE t (a int)", "alter user ana password 'x'", "DROP TABLE t", "TRUNCATE t", "GRANT ALL ON t TO u",
    "VACUUM", "ANALYZE t", "LOCK t", "DO $$ BEGIN END $$", "CALL f()", "NOTIFY x", "LISTEN x",
    "REFRESH MATERIALIZED VIEW v", "COMMENT ON TABLE t IS 'x'", "PREPARE TRANSACTION 'x'", "SELECT 1 INTO t",
    "SELECT a FROM t FOR UPDATE", "SELECT a FROM t FOR NO KEY UPDATE",
    "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT a FROM x", "WITH x AS (SELECT 1) DELETE FROM t",
    "WITH x AS (SELECT 1) UPDATE t SET a = 1", "PRAGMA x", "COPY t FROM '/etc/passwd'",
    "/* SELECT */ insert into t values (1)", "INSTALL httpfs", "LOAD 'x'", "ATTACH 'x'",
]  # fmt: skip


@pytest.mark.parametrize("text", WRITES)
def test_whatever_writes_is_a_write(text: str) -> None:
    assert isinstance(command(text), c.Write)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [("SET", "42601"), ("SET epsilon", "42601"), ("SET epsilon = ", "42601"), ("SET epsilon = 1 2", "42601"),
     ("FETCH", "42601"), ("FETCH x y z", "42601"), ("CLOSE", "42601"), ("BEGIN nonsense", "42601"),
     ("COMMIT AND CHAIN", "0A000"), ("DECLARE c CURSOR", "42601"), ("COPY (SELECT 1", "42601"),
     ("COPY (SELECT 1) TO '/tmp/x'", "42501"), ("COPY (SELECT 1) TO PROGRAM 'rm'", "42501"),
     ("COPY t TO STDOUT (FORMAT xml)", "22023"), ("COPY t TO STDOUT (FREEZE)", "0A000"),
     ("COPY t TO STDOUT (DELIMITER 'ab')", "22023"), ("PREPARE q SELECT 1", "42601"), ("EXECUTE q (a + 1)", "42601"),
     ("SET epsilon = '" + "1" * 20_000 + "'", "54000"), ("COPY (SELECT '" + "1" * 120_000 + "') TO STDOUT", "54000"),
     ("FETCH 99999999999999999999 c", "42601")],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(text: str, sqlstate: str) -> None:
    with pytest.raises(ProtocolFault) as refused:
        command(text)
    assert refused.value.sqlstate == sqlstate


def test_statements_end_where_they_end() -> None:
    text = "SELECT 1; ; select ';' -- ;\n; /* ; /* ; */ */ SELECT $a$;$a$, \"a;b\", E'\\';' ; -- end"
    found = statements(text)
    assert [s.text.strip() for s in found] == [
        "SELECT 1",
        "select ';' -- ;",
        "/* ; /* ; */ */ SELECT $a$;$a$, \"a;b\", E'\\';'",
    ]
    assert all(text[s.start :].startswith(s.text) for s in found)


marks = st.text(st.sampled_from(list("a1 ;'\"$-/*\\eE\n(")), max_size=60)


@given(marks)
def test_statements_are_the_text_without_semicolons(text: str) -> None:
    found = statements(text)
    assert all(isinstance(s, ClientStatement) and text[s.start : s.start + len(s.text)] == s.text for s in found)
    assert [s.start for s in found] == sorted({s.start for s in found})
    ends = [t.end for t in tokens(text)]
    assert ends == sorted(ends)


WORDS = """
SET SHOW RESET BEGIN COMMIT FETCH MOVE CLOSE DECLARE COPY PREPARE EXECUTE DEALLOCATE DISCARD SELECT WITH FOR CURSOR TO
STDOUT ALL AS ( ) , = . :: - 1 0.5 'x' x "Y" CSV NULL TIME ZONE LOCAL UPDATE INTO $1 ;
"""
words = st.sampled_from(WORDS.split())


@given(st.lists(words, max_size=9))
def test_any_words_are_a_command_or_refused(given_words: list[str]) -> None:
    try:
        command(" ".join(given_words))
    except ProtocolFault as refused:
        assert len(refused.sqlstate) == 5 and str(refused)
