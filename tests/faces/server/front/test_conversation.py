"""Conversations, message by message: the simple protocol, the extended one, cursors, copies, settings, refusals."""

from __future__ import annotations

import struct
import threading

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic
from dpsql.diagnostics.note import Note, Rank, Topic
from dpsql.faces.server.statements import StatementSettings
from tests.support.answering import Answers
from tests.support.served import NAME, PASSWORD, Served
from tests.support.wire_client import (
    Client,
    bind,
    close,
    describe,
    execute,
    packet,
    parse,
    rows,
    shape,
    startup,
    text,
)  # fmt: skip


def answers(served: Served) -> Answers:
    assert isinstance(served.answering, Answers)
    return served.answering


# --- the simple protocol ----------------------------------------------------------------------------------------------


def test_a_query_is_answered_with_its_notices(client: Client) -> None:
    replies = client.query("SELECT n, region, none FROM numbers(2)")
    assert shape(replies) == "N T D D C(SELECT 2) ZI"
    assert rows(replies) == [("42", "norð", None)] * 2
    assert replies[0].fields["M"] == "spent ε 0.5" and replies[0].fields["S"] == "NOTICE"


def test_several_statements_run_until_one_is_refused(client: Client, served: Served) -> None:
    replies = client.query("SELECT n; ; SELECT i; SELECT x FROM nowhere; SELECT n")
    assert shape(replies) == "N T D C(SELECT 1) N T D C(SELECT 1) E(42P01) ZI"
    assert replies[-2].fields["P"] == str("SELECT n; ; SELECT i; SELECT x FROM nowhere".index("nowhere") + 1)
    assert [sql.strip() for _, sql, _, _ in answers(served).asked] == ["SELECT n", "SELECT i"]


def test_no_statement_at_all(client: Client) -> None:
    assert shape(client.query(" -- nothing\n")) == "I ZI"


def test_what_is_unforeseen_tells_nothing(client: Client, served: Served) -> None:
    answers(served).fail = True
    replies = client.query("SELECT n")
    assert shape(replies) == "E(XX000) ZI" and b"private row" not in replies[0].body
    assert shape(client.query("SET epsilon = 1")) == "C(SET) ZI"


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t VALUES (1)", "SELECT n INTO t", "COPY t FROM STDIN", "ALTER USER a PASSWORD 'p'"]
)
def test_writes_are_refused_and_reach_nobody(client: Client, served: Served, sql: str) -> None:
    assert shape(client.query(sql)) == "E(25006) ZI"
    assert answers(served).asked == []
    event = served.log.events[-1]
    assert event.outcome == "25006" and "'p'" not in event.statement


@pytest.mark.parametrize(
    ("sql", "outcome", "noted"),
    [
        ("SET epsilon = 0", "22023", "SET epsilon = 0"),
        ("SET dpsql.allow_dearer TO maybe", "22023", "SET dpsql.allow_dearer = maybe"),
        ("SET ROLE ben", "42501", "SET role = ben"),
        ("SET SESSION AUTHORIZATION 'ben'", "42501", "SET session_authorization = ben"),
        ("SET server_version = '9'", "55P02", "SET server_version = 9"),
        ("SET api.key = 'hunter2'", "42704", "SET api.key"),
        ("RESET nothing", "42704", "RESET nothing"),
        ("SET LOCAL 'hunter2'", "42601", "SET"),
    ],
)
def test_a_set_that_is_refused_is_noted_without_what_may_be_a_secret(
    client: Client, served: Served, sql: str, outcome: str, noted: str
) -> None:
    before = len(served.log.events)
    assert shape(client.query(sql)) == f"E({outcome}) ZI"
    (event,) = served.log.events[before:]
    assert (event.what, event.outcome, event.statement) == ("statement", outcome, noted)
    assert shape(client.query("SET epsilon = 0.5; RESET epsilon")) == "C(SET) C(RESET) ZI"
    assert len(served.log.events) == before + 1


def test_notices_and_warnings_are_sent_as_client_min_messages_says(client: Client, served: Served) -> None:
    answers(served).warnings = (Diagnostic("DP503", "too small", severity="warning"),)
    assert shape(client.query("SELECT n")) == "N N T D C(SELECT 1) ZI"
    client.query("SET client_min_messages = warning")
    (warning, *rest) = client.query("SELECT n")
    assert warning.fields["S"] == "WARNING" and warning.fields["C"] == "01000" and shape(rest) == "T D C(SELECT 1) ZI"
    client.query("SET client_min_messages = error")
    assert shape(client.query("SELECT n")) == "T D C(SELECT 1) ZI"
    client.query("RESET client_min_messages; SET dpsql.notices = off")
    assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"


def test_a_danger_is_a_warning(client: Client, served: Served) -> None:
    answers(served).notices = (Note("rows are left out", Rank.DANGER), Note("clipped", Rank.BIAS))
    danger, bias, *_ = client.query("SELECT n")
    assert (danger.fields["S"], danger.fields["C"], danger.fields["M"]) == ("WARNING", "01000", "rows are left out")
    assert bias.fields["S"] == "NOTICE"
    client.query("SET client_min_messages = warning")
    assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"
    client.query("SET dpsql.notices = off")
    assert shape(client.query("SELECT n")) == "T D C(SELECT 1) ZI"


def test_three_notes_are_sent_beside_price_and_width_unless_all_are_wanted(client: Client, served: Served) -> None:
    price, width = Note("charged ε 1", Rank.SOURCE, Topic.PRICE), Note("n ± 2", Rank.SOURCE, Topic.WIDTH)
    notes = [Note(f"note {n}", Rank.BIAS) for n in range(5)]
    answers(served).notices = (price, width, *notes)
    told = [m.fields["M"] for m in client.query("SELECT n") if m.kind == "N"]
    assert told == [price, width, *notes[:3], "2 more notes: SET client_min_messages = log"]
    client.query("SET client_min_messages = log")
    assert [m.fields["M"] for m in client.query("SELECT n") if m.kind == "N"] == [price, width, *notes]


def test_settings_come_with_each_statement(client: Client, served: Served) -> None:
    client.query("SET epsilon = 0.25; SET delta = '1e-9'")
    client.query("SELECT n")
    assert rows(client.query("SHOW dpsql.epsilon")) == [("0.25",)]
    client.query("RESET ALL")
    client.query("SELECT n")
    assert [asked for *_, asked in answers(served).asked] == [
        StatementSettings(epsilon="0.25", delta="1e-9"),
        StatementSettings(),
    ]
    assert shape(client.query("SET epsilon = -1")) == "E(22023) ZI"
    assert ("dpsql.epsilon", "") in rows(client.query("SHOW ALL"))


def test_a_changed_setting_is_told(client: Client) -> None:
    client.query("SET application_name = 'abc'")
    assert client.status["application_name"] == "abc"


# --- transactions -----------------------------------------------------------------------------------------------------


def test_a_transaction_fails_until_its_end(client: Client) -> None:
    assert shape(client.query("BEGIN")) == "C(BEGIN) ZT"
    assert shape(client.query("SELECT x FROM nowhere")) == "E(42P01) ZE"
    assert shape(client.query("SELECT n")) == "E(25P02) ZE"
    assert shape(client.query("COMMIT")) == "C(ROLLBACK) ZI"
    assert shape(client.query("COMMIT")) == "N C(COMMIT) ZI"


def test_a_savepoint_makes_it_sound_again(client: Client) -> None:
    client.query("BEGIN; SAVEPOINT s; SET epsilon = 3")
    assert shape(client.query("nonsense")) == "E(42P01) ZE"
    assert shape(client.query("ROLLBACK TO s")) == "C(ROLLBACK) ZT"
    assert rows(client.query("SHOW epsilon")) == [("",)]
    assert shape(client.query("RELEASE s; COMMIT")) == "C(RELEASE) C(COMMIT) ZI"


# --- the extended protocol --------------------------------------------------------------------------------------------


def test_a_statement_is_described_bound_and_run(client: Client, served: Served) -> None:
    replies = client.extended(
        parse("SELECT n, d WHERE x = $1 AND y = $2", "s"), describe("S", "s"),
        bind([struct.pack("!q", 7), b"abc"], [1, 0], [1], statement="s"), describe("P"), execute(),
    )  # fmt: skip
    assert shape(replies) == "1 t T 2 T N D C(SELECT 1) ZI"
    assert replies[1].body == struct.pack("!HII", 2, 20, 25)
    assert answers(served).asked[0][2] == (7, "abc")
    assert replies[6].body == struct.pack("!HIqIi", 2, 8, 42, 4, 9133)


def test_types_that_the_client_names_are_its_own(client: Client, served: Served) -> None:
    replies = client.extended(
        parse("SELECT n WHERE x = $1", types=[21]), describe("S"), bind([struct.pack("!h", 5)], [1]), execute()
    )
    assert replies[1].body == struct.pack("!HI", 1, 21) and answers(served).asked[0][2] == (5,)
    assert shape(client.extended(parse("SELECT n WHERE x = $1", types=[16_500]))) == "E(42704) ZI"


@pytest.mark.parametrize(
    ("values", "formats", "sqlstate"),
    [([b"x"], [], "22P02"), ([b"123"], [1], "22P03"), ([], [], "08P01"), ([b"1", b"2"], [], "08P01")],
)  # fmt: skip
def test_values_that_are_none_are_refused(
    client: Client, values: list[bytes | None], formats: list[int], sqlstate: str
) -> None:
    replies = client.extended(parse("SELECT n WHERE x = $1"), bind(values, formats), execute())
    assert shape(replies) == f"1 E({sqlstate}) ZI"


def test_null_is_a_value(client: Client, served: Served) -> None:
    client.extended(parse("SELECT n WHERE x = $1"), bind([None]), execute())
    assert answers(served).asked[0][2] == (None,)


def test_rows_come_in_pieces_and_the_query_runs_once(client: Client, served: Served) -> None:
    client.query("BEGIN")
    replies = client.extended(parse("SELECT n FROM numbers(5)"), bind(portal="p"), execute("p", 2), execute("p", 2))
    assert shape(replies) == "1 2 N D D s D D s ZT"
    assert shape(client.extended(execute("p", 2))) == "D C(SELECT 1) ZT"
    assert len(answers(served).asked) == 1
    client.query("COMMIT")
    assert shape(client.extended(execute("p"))) == "E(34000) ZI"


def test_after_an_error_everything_up_to_sync_is_skipped(client: Client, served: Served) -> None:
    replies = client.extended(parse("SELECT x FROM nowhere"), bind(), describe("P"), execute(), parse("SELECT n"))
    assert shape(replies) == "E(42P01) ZI" and answers(served).asked == []
    assert shape(client.extended(parse("SELECT n"), bind(), execute())) == "1 2 N D C(SELECT 1) ZI"


def test_names_are_kept_and_forgotten(client: Client) -> None:
    assert shape(client.extended(parse("SELECT n", "s"))) == "1 ZI"
    assert shape(client.extended(parse("SELECT n", "s"))) == "E(42P05) ZI"
    assert shape(client.extended(close("S", "s"), close("S", "s"), close("P", "none"))) == "3 3 3 ZI"
    assert shape(client.extended(bind(statement="s"))) == "E(26000) ZI"
    assert shape(client.extended(describe("P", "none"))) == "E(34000) ZI"
    assert shape(client.extended(parse("SELECT n; SELECT n"))) == "E(42601) ZI"
    assert shape(client.extended(parse(""), bind(), describe("P"), execute())) == "1 2 n I ZI"


def test_commands_go_the_same_way(client: Client) -> None:
    assert shape(client.extended(parse("BEGIN"), bind(), describe("P"), execute())) == "1 2 n C(BEGIN) ZT"
    replies = client.extended(parse("SHOW epsilon"), describe("S"), bind(), execute())
    assert shape(replies) == "1 t T 2 D C(SHOW) ZT"
    assert shape(client.extended(parse("DISCARD ALL"), bind(), execute())) == "1 2 E(25001) ZE"
    assert shape(client.extended(parse("ROLLBACK"), bind(), execute())) == "1 2 C(ROLLBACK) ZI"


def test_a_portal_runs_with_the_settings_of_its_time(client: Client, served: Served) -> None:
    client.query("BEGIN")
    client.extended(parse("SELECT n", "s"), bind(portal="p", statement="s"))
    client.query("SET epsilon = 9")
    client.extended(execute("p"))
    client.extended(bind(statement="s"), execute())
    assert [asked.epsilon for *_, asked in answers(served).asked] == [None, "9"]
    client.query("SET intervals = on")
    assert shape(client.extended(bind(statement="s"))) == "E(0A000) ZE"


def test_functions_are_not_called_and_copies_not_taken_in(client: Client) -> None:
    client.send(packet(b"F", struct.pack("!IHHH", 1, 0, 0, 0)))
    assert shape(client.until("Z")) == "E(0A000) ZI"
    client.send(packet(b"d", b"x"), packet(b"c"), packet(b"f", b"no\0"))
    assert shape(client.query("SHOW epsilon")) == "T D C(SHOW) ZI"


def test_flush_sends_what_there_is(client: Client) -> None:
    client.send(parse("SELECT n"), packet(b"H"))
    assert shape([client.receive()]) == "1"
    assert shape(client.extended()) == "ZI"


# --- cursors, copies, prepared statements of SQL ----------------------------------------------------------------------


def test_a_cursor_runs_its_query_once(client: Client, served: Served) -> None:
    assert shape(client.query("DECLARE c CURSOR FOR SELECT n")) == "E(25P01) ZI"
    client.query("BEGIN; DECLARE c CURSOR FOR SELECT n, i FROM numbers(3)")
    assert answers(served).asked == []
    assert shape(client.extended(describe("P", "c"))) == "T ZT"
    assert shape(client.query("FETCH 2 FROM c")) == "N T D D C(FETCH 2) ZT"
    assert shape(client.query("FETCH ALL FROM c")) == "T D C(FETCH 1) ZT"
    assert shape(client.query("MOVE BACKWARD ALL IN c; FETCH c")) == "C(MOVE 3) T D C(FETCH 1) ZT"
    assert len(answers(served).asked) == 1
    assert shape(client.query("CLOSE c; CLOSE c")) == "C(CLOSE CURSOR) E(34000) ZE"


def test_a_cursor_with_hold_stays(client: Client) -> None:
    client.query("DECLARE c CURSOR WITH HOLD FOR SELECT n")
    client.query("BEGIN; DECLARE other CURSOR FOR SELECT n; COMMIT")
    assert shape(client.query("FETCH c")) == "N T D C(FETCH 1) ZI"
    assert shape(client.query("FETCH other")) == "E(34000) ZI"


def test_a_cursor_with_parameters(client: Client, served: Served) -> None:
    client.query("BEGIN")
    declared = client.extended(parse("DECLARE c CURSOR FOR SELECT n WHERE x = $1"), bind([b"5"]), execute())
    assert shape(declared) == "1 2 C(DECLARE CURSOR) ZT"
    replies = client.extended(parse("FETCH ALL FROM c"), describe("S"), bind(results=[1]), execute())
    assert shape(replies) == "1 t T 2 N D C(FETCH 1) ZT" and answers(served).asked[0][2] == (5,)
    assert replies[5].body == struct.pack("!HIq", 1, 8, 42)


def test_places_of_errors_are_those_of_the_whole_statement(client: Client) -> None:
    for prefix in ("COPY (", "PREPARE q AS ", "DECLARE c CURSOR WITH HOLD FOR "):
        sql = f"SHOW epsilon; {prefix}SELECT x FROM nowhere" + (") TO STDOUT" if "(" in prefix else "")
        error = client.query(sql)[-2]
        assert error.fields["P"] == str(sql.index("nowhere") + 1)
    assert "P" not in client.query("COPY nowhere TO STDOUT")[0].fields


COPIED = {
    "": "42\tnorð\t\\N\n",
    "(FORMAT csv, HEADER)": "n,region,none\n42,norð,\n",
    "CSV NULL 'x' DELIMITER ';'": "42;norð;x\n",
    "(DELIMITER '|', NULL '')": "42|norð|\n",
}


@pytest.mark.parametrize("options", COPIED)
def test_a_query_is_copied_out(client: Client, options: str) -> None:
    replies = client.query(f"COPY (SELECT n, region, none) TO STDOUT {options}")
    assert shape([r for r in replies if r.kind != "d"]) == "N H c C(COPY 1) ZI"
    assert b"".join(r.body for r in replies if r.kind == "d").decode() == COPIED[options]


def test_a_binary_copy_has_its_head_in_the_first_message(client: Client) -> None:
    replies = client.query("COPY (SELECT n FROM numbers(2)) TO STDOUT (FORMAT binary)")
    one, two, end = (r.body for r in replies if r.kind == "d")
    row = struct.pack("!HIq", 1, 8, 42)
    assert one == b"PGCOPY\n\xff\r\n\0" + bytes(8) + row and two == row and end == b"\xff\xff"


def test_prepared_by_sql(client: Client, served: Served) -> None:
    assert shape(client.query("PREPARE q AS SELECT n WHERE x = $1 AND y = $2")) == "C(PREPARE) ZI"
    assert shape(client.query("EXECUTE q (3, 'x')")) == "N T D C(SELECT 1) ZI"
    assert answers(served).asked[0][2] == (3, "x")
    assert shape(client.query("EXECUTE q (3)")) == "E(42601) ZI"
    assert shape(client.query("EXECUTE q ('x', 'y')")) == "E(22P02) ZI"
    assert shape(client.query("PREPARE r (nonsense) AS SELECT n")) == "E(42704) ZI"
    assert (
        shape(client.extended(parse("EXECUTE q (1, 'y')"), describe("S"), bind(), execute()))
        == "1 t T 2 N D C(SELECT 1) ZI"
    )
    assert shape(client.query("DEALLOCATE q; DEALLOCATE q")) == "C(DEALLOCATE) E(26000) ZI"
    assert shape(client.query("SELECT n WHERE x = $1")) == "E(42P02) ZI"


def test_what_pools_send_when_they_take_a_connection_back(client: Client) -> None:
    replies = client.query("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL")
    assert shape(replies) == "T D C(SELECT 1) C(CLOSE CURSOR ALL) C(UNLISTEN) C(RESET) ZI"
    assert shape(client.query("DISCARD ALL")) == "C(DISCARD ALL) ZI"


def test_a_connection_keeps_a_bounded_number(client: Client) -> None:
    replies = client.extended(*(parse("SHOW epsilon", f"s{i}") for i in range(1001)))
    assert shape(replies[-2:]) == "E(53400) ZI" and len(replies) == 1002
    client.query("DEALLOCATE ALL")
    long = f"SELECT n WHERE x = '{'x' * 99_000}'"
    replies = client.extended(*(parse(long, f"s{i}") for i in range(50)))
    assert shape(replies[-2:]) == "E(53400) ZI" and len(replies) == 42
    client.query("BEGIN")
    replies = client.extended(parse("SELECT n"), *(bind(portal=f"p{i}") for i in range(51)))
    assert shape(replies[-2:]) == "E(53400) ZE" and len(replies) == 53


def test_values_and_statements_of_one_message_are_bounded(client: Client) -> None:
    replies = client.extended(parse("SELECT n WHERE y = $1"), bind([b"x" * 1_000_001]))
    assert shape(replies) == "1 E(54000) ZI"
    assert shape(client.query("SHOW epsilon;" * 1001)) == "E(54000) ZI"


def test_a_text_is_not_as_long_as_a_message(client: Client) -> None:
    assert shape(client.query("SELECT n -- " + "x" * 1_000_001)) == "E(54000) ZI"


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_another_connection_stops_a_run(client: Client, served: Served) -> None:
    answers(served).hold = True
    client.send(packet(b"Q", text("SELECT n")))
    assert answers(served).running.wait(60)
    with served.raw() as other:
        other.sendall(struct.pack("!II", 16, 80877102) + client.key)
        assert other.recv(1) == b""
    assert shape(client.until("Z")) == "E(57014) ZI"


def test_a_wrong_key_stops_nothing(client: Client, served: Served) -> None:
    answers(served).hold = True
    client.send(packet(b"Q", text("SELECT n")))
    assert answers(served).running.wait(60)
    process, key = struct.unpack("!ii", client.key)
    with served.raw() as other:
        other.sendall(struct.pack("!IIii", 16, 80877102, process, key ^ 1))
        assert other.recv(1) == b""
    assert answers(served).stopped == []
    answers(served).hold = False
    assert shape(client.until("Z")) == "N T D C(SELECT 1) ZI"


def test_a_statement_is_stopped_after_its_timeout(client: Client, served: Served) -> None:
    answers(served).hold = True
    assert shape(client.query("SET statement_timeout = '1ms'; SELECT n")) == "C(SET) E(57014) ZI"


def test_a_run_is_stopped_when_its_client_leaves(served: Served) -> None:
    answers(served).hold = True
    with served.raw() as connection:
        client = Client(connection)
        client.login(NAME, PASSWORD)
        client.send(packet(b"Q", text("SELECT n")))
        assert answers(served).running.wait(60)
    assert wait_for(lambda: len(answers(served).stopped) == 1 and not served.front._talking)


def test_the_end_waits_for_what_runs(client: Client, served: Served) -> None:
    """An idle client is told; a run comes to its end, which is told after its answer."""
    with served.raw() as connection:
        idle = Client(connection)
        idle.login(NAME, PASSWORD)
        answers(served).hold = True
        client.send(packet(b"Q", text("SELECT n")))
        assert answers(served).running.wait(60)
        stopping = threading.Thread(target=lambda: served.call(served.front.stop()))
        stopping.start()
        assert shape([idle.receive()]) == "E(57P01)"
        with pytest.raises(EOFError):
            idle.receive()
        answers(served).hold = False
        assert shape(client.until("Z")) == "N T D C(SELECT 1) ZI"
        assert shape([client.receive()]) == "E(57P01)"
        stopping.join(60)
        assert not stopping.is_alive()


def wait_for(condition: object) -> bool:
    """Whether something comes true; a failure takes a minute."""
    assert callable(condition)
    event = threading.Event()
    for _ in range(6000):
        if condition():
            return True
        event.wait(0.01)
    return False


def test_whose_account_is_charged_is_said_by_nobody_but_the_login(served: Served) -> None:
    with served.raw() as connection:
        client = Client(connection)
        client.send(startup(user=NAME, database="clinic", options="-c dpsql.epsilon=0.125", application_name="bob"))
        client.prove(PASSWORD)
        for sql in ("SET ROLE bob", "SET SESSION AUTHORIZATION bob", "SET dpsql.account = bob", "SET analyst = bob"):
            assert shape(client.query(sql)) == "E(42501) ZI"
        client.query("SELECT n")
    (login, _, _, settings) = answers(served).asked[0]
    assert (login.name, login.account, settings.epsilon) == (NAME, NAME, "0.125")


# --- batches: one statement with several answers ----------------------------------------------------------------------


def test_a_batch_has_several_answers(client: Client, served: Served) -> None:
    """Its semicolons end no statement; each answer has its columns, rows and tag."""
    replies = client.query("SELECT n; DP BATCH (SELECT n, region FROM numbers(2); SELECT i); SELECT d")
    assert shape(replies) == "N T D C(SELECT 1) N T D D C(SELECT 2) T D C(SELECT 1) N T D C(SELECT 1) ZI"
    assert rows(replies)[1:4] == [("42", "norð"), ("42", "norð"), ("-1",)]
    assert [sql.strip() for _, sql, _, _ in answers(served).asked] == [
        "SELECT n", "DP BATCH (SELECT n, region FROM numbers(2); SELECT i)", "SELECT d"
    ]  # fmt: skip


def test_a_batch_is_no_cursor_and_is_not_prepared(client: Client) -> None:
    """What gives one answer cannot give several; nothing was asked, and the next statement is answered."""
    for sql in ("DECLARE c CURSOR WITH HOLD FOR DP BATCH (SELECT n)", "COPY (DP BATCH (SELECT n)) TO STDOUT"):
        replies = client.query(sql)
        assert shape(replies) in ("E(0A000) ZI", "E(42601) ZI")
    replies = client.extended(parse("DP BATCH (SELECT n; SELECT i)"), bind(), execute())
    assert shape(replies) == "E(0A000) ZI" and "cursor" in replies[0].fields["H"]
    assert shape(client.query("SELECT n")) == "N T D C(SELECT 1) ZI"
