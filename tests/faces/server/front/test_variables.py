"""SET, RESET and SHOW: what may be set, what is refused, and what holds after ROLLBACK."""

from __future__ import annotations

import pytest

from dpsql.faces.server.catalogue.postgres_types import postgres_settings
from dpsql.faces.server.front.commands.commands import Set, Transaction
from dpsql.faces.server.front.error_fields import ProtocolFault
from dpsql.faces.server.front.transactions import Transactions
from dpsql.faces.server.front.variables import Variables, milliseconds, startup_options
from dpsql.faces.server.statements import StatementSettings


def test_epsilon_and_rho_replace_each_other() -> None:
    now = Variables().set("epsilon", "0.5")
    assert now.asked == StatementSettings(epsilon="0.5") and now.show("dpsql.epsilon") == "0.5"
    now = now.set("dpsql.rho", "1/3")
    assert now.asked == StatementSettings(rho="1/3") and now.show("epsilon") == ""
    assert now.set("rho", None).asked == StatementSettings()


def test_reset_goes_back_to_how_the_connection_began() -> None:
    opened = (
        Variables(StatementSettings(epsilon="0.1")).set("application_name", "psql").set("delta", "1e-9").as_opened()
    )
    now = opened.set("epsilon", "2").set("application_name", "x").set("coverage", "on").set("notices", "off")
    assert now.asked == StatementSettings(epsilon="2", delta="1e-9", coverage=True, notices=False)
    assert now.reset().asked == opened.asked and now.reset().get("application_name") == "psql"
    assert (
        now.set("epsilon", None).asked.epsilon == "0.1"
        and now.set("application_name", None).get("application_name") == "psql"
    )


@pytest.mark.parametrize(
    ("name", "value", "sqlstate"),
    [("epsilon", "0", "22023"), ("epsilon", "x", "22023"), ("delta", "1", "22023"), ("coverage", "perhaps", "22023"),
     ("limits", "none", "22023"), ("confidence", "0.9", "42704"), ("dpsql.nothing", "1", "42704"),
     ("no_such", "1", "42704"), ("server_version", "14", "55P02"), ("client_encoding", "LATIN1", "22023"),
     ("datestyle", "German", "22023"), ("intervalstyle", "roman", "22023"), ("bytea_output", "escape", "22023"),
     ("standard_conforming_strings", "off", "22023"), ("client_min_messages", "loud", "22023"),
     ("statement_timeout", "soon", "22023"), ("role", "bob", "42501"), ("session_authorization", "bob", "42501"),
     ("analyst", "bob", "42501"), ("account", "bob", "42501"), ("dpsql.account", "bob", "42501")],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_by_name(name: str, value: str, sqlstate: str) -> None:
    with pytest.raises(ProtocolFault) as refused:
        Variables(user="ana").set(name, value)
    assert refused.value.sqlstate == sqlstate


def test_what_is_set_to_what_it_is_anyway_is_accepted() -> None:
    now = Variables(user="ana").set("datestyle", "iso, dmy").set("client_encoding", "utf-8").set("role", "none")
    assert now.get("DateStyle") == "ISO, MDY" and now.get("client_encoding") == "UTF8"
    assert now.show("session_authorization") == "ana" and ("server_encoding", "UTF8") in now.reported()
    assert now.set("is_superuser", "off") == now


def test_every_setting_of_postgresql_may_be_set_and_is_shown_as_it_holds() -> None:
    now = Variables(user="ana")
    for name in postgres_settings():
        known = now.show(name.lower())
        assert now.set(name.lower(), known).show(name.lower()) == known, name
    assert now.set("cursor_tuple_fraction", "0.5").show("cursor_tuple_fraction") == "0.5"
    assert now.set("intervalstyle", "iso_8601").show("intervalstyle") == "postgres"  # as intervals are sent


def test_messages_are_sent_as_client_min_messages_says() -> None:
    told = {level: Variables().set("client_min_messages", level) for level in ("debug1", "notice", "warning", "error")}
    assert [v.tells_notices for v in told.values()] == [True, True, False, False]
    assert [v.tells_warnings for v in told.values()] == [True, True, True, False]


def test_times_are_milliseconds_unless_they_have_a_unit() -> None:
    assert [milliseconds(text) for text in ("0", "250", "5s", " 2 min ")] == [0, 250, 5000, 120_000]
    assert Variables().timeout is None and Variables().set("statement_timeout", "5s").timeout == 5


def test_options_of_the_start() -> None:
    assert startup_options(r"-c dpsql.epsilon=0.5 -cdelta=1e-9  --search-path=a\ b") == [
        ("dpsql.epsilon", "0.5"), ("delta", "1e-9"), ("search_path", "a b"),
    ]  # fmt: skip
    for bad in ("-x", "-c", "-c a", "epsilon=1"):
        with pytest.raises(ProtocolFault):
            startup_options(bad)


def test_rollback_takes_settings_back_and_commit_keeps_them() -> None:
    t = Transactions(Variables())
    t.set(Set("epsilon", "1"))
    t.do(Transaction("begin", "BEGIN"))
    t.set(Set("epsilon", "2"))
    t.do(Transaction("savepoint", "SAVEPOINT", "s"))
    t.set(Set("epsilon", "3"))
    t.failed()
    assert t.state == "E"
    with pytest.raises(ProtocolFault):
        t.require_sound()
    t.do(Transaction("rollback to", "ROLLBACK", "s"))
    assert t.state == "T" and t.now.asked.epsilon == "2"
    t.set(Set("epsilon", "4", local=True))
    assert t.now.asked.epsilon == "4"
    assert t.do(Transaction("commit", "COMMIT")) == ("COMMIT", "", True) and t.now.asked.epsilon == "2"
    t.do(Transaction("begin", "BEGIN"))
    t.set(Set("epsilon", "5"))
    t.failed()
    assert t.do(Transaction("commit", "COMMIT")) == ("ROLLBACK", "", True) and t.now.asked.epsilon == "2"
    assert "no transaction" in t.do(Transaction("commit", "COMMIT"))[1]
    assert t.set(Set("epsilon", "6", local=True)) and t.now.asked.epsilon == "2"


@pytest.mark.parametrize("what", [Transaction("savepoint", "", "s"), Transaction("release", "", "s")])
def test_savepoints_stand_in_transactions_and_have_names(what: Transaction) -> None:
    t = Transactions(Variables())
    with pytest.raises(ProtocolFault) as refused:
        t.do(what)
    assert refused.value.sqlstate == "25P01"
    t.do(Transaction("begin", "BEGIN"))
    with pytest.raises(ProtocolFault) as refused:
        t.do(Transaction("rollback to", "", "other"))
    assert refused.value.sqlstate == "3B001"
