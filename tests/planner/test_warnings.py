"""DP5xx: warnings from declared numbers alone, with repairs that hold."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from dpsql.core.ir.public_facts import KeysOf, PublicFacts
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import dumps
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import check, static_plan


def policy(**tables: object) -> Policy:
    return Policy.model_validate(
        {"version": 1, "name": "t", "tables": tables, "budgets": {"total": {"epsilon": 100, "delta": 1e-6}}}
    )


def visits(**more: object) -> dict[str, object]:
    """600 patients with at most 20 visits each."""
    return {
        "unit": {"column": "id"},
        "max_rows_per_unit": 20,
        "max_groups_per_unit": 5,
        "max_rows_per_group": 4,
        "columns": {
            "id": {"type": "bigint", "bounds": [1, 600], "nullable": False},
            "ward": {"type": "varchar", "domain": ["a", "b", "c"], "nullable": False},
            "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "nullable": False},
            "hour": {"type": "integer", "bounds": [0, 23], "nullable": False},
            "cost": {"type": "double", "bounds": [0, 5000]},
            "name": {"type": "varchar"},
        },
        **more,
    }


LOG = {
    "unit": {"rows": 1, "neighbours": "replace_one"},
    "size": {"exact": 1000},
    "columns": {
        "kind": {"type": "integer", "bounds": [1, 5000], "nullable": False},
        "reading": {"type": "double", "bounds": [-40, 60], "nullable": False},
    },
}


def warnings(sql: str, of: Policy, **settings: Fraction) -> tuple[Diagnostic, ...]:
    return planned(sql, of, **settings).warnings


def planned(sql: str, of: Policy, **settings: Fraction) -> Plan:
    return static_plan(Source(sql), of, settings=QuerySettings(**settings))  # type: ignore[arg-type]


def codes(sql: str, of: Policy, **settings: Fraction) -> list[str]:
    return [w.code for w in warnings(sql, of, **settings)]


SMALL = Fraction(1, 100)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM visits", []),
        ("SELECT COUNT(DISTINCT ward) FROM visits", ["DP501"]),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", []),
        ("SELECT day, COUNT(*) FROM visits GROUP BY day", ["DP503"]),
        ("SELECT day, COUNT(DISTINCT id) FROM visits GROUP BY day", []),
        ("SELECT day, SUM(cost) FROM visits GROUP BY day", ["DP503"]),
        ("SELECT day, AVG(cost) FROM visits GROUP BY day", ["DP504"]),
        ("SELECT day, STDDEV_POP(cost) FROM visits GROUP BY day", ["DP504"]),
        ("SELECT day, COUNT(*), SUM(cost), AVG(cost) FROM visits GROUP BY day", ["DP503", "DP504"]),
        ("SELECT ward, AVG(cost) FROM visits GROUP BY ward", []),
        ("SELECT name, AVG(cost) FROM visits GROUP BY name", []),
        ("SELECT AVG(CLIP(cost, 10, 20)) FROM visits", []),
    ],
)
def test_each_kind_is_warned_of(sql: str, expected: list[str]) -> None:
    assert codes(sql, policy(visits=visits())) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day, COUNT(*), AVG(cost) FROM visits GROUP BY day",
        "SELECT COUNT(DISTINCT ward), AVG(cost) FROM visits",
        "SELECT COUNT(*), COUNT(DISTINCT id), SUM(cost), AVG(cost) FROM visits",
    ],
)
def test_without_declared_numbers_nothing_is_said(sql: str) -> None:
    table = visits()
    columns = dict(table["columns"])  # type: ignore[call-overload]
    columns["id"] = {"type": "bigint", "nullable": False}
    columns["ward"] = {"type": "varchar", "nullable": False}
    silent = policy(visits={**table, "columns": columns})
    assert codes(sql, silent, epsilon=SMALL) == []


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "DP501"),
        ("SELECT ward, COUNT(DISTINCT id) FROM visits GROUP BY ward", "DP501"),
        ("SELECT SUM(cost) FROM visits", "DP501"),
        ("SELECT AVG(cost) FROM visits", "DP504"),
        ("SELECT hour, COUNT(*) FROM visits GROUP BY hour", "DP503"),
    ],
)
def test_the_epsilon_that_is_named_is_enough_and_not_wasteful(sql: str, code: str) -> None:
    """With the ε of the repair the warning is gone; with a quarter less it is still there."""
    own = policy(visits=visits())
    small = Fraction(4, 1000) if code != "DP503" else Fraction(1, 10)
    (found,) = warnings(sql, own, epsilon=small)
    assert found.code == code and found.severity == "warning" and found.span is not None
    named = re.search(r"an ε of ([\d.]+) or more", found.help[0])
    assert named is not None, found
    enough = Fraction(named[1])
    assert codes(sql, own, epsilon=enough) == []
    assert codes(sql, own, epsilon=enough * 3 / 4) == [code]


def test_the_groups_that_are_named_are_few_enough() -> None:
    (found,) = warnings("SELECT day, COUNT(*) FROM visits GROUP BY day", policy(visits=visits()))
    named = re.search(r"group into at most (\d+) groups", found.help[-1])
    assert named is not None and 12 <= int(named[1]) < 366
    assert codes("SELECT date_trunc('month', day) AS m, COUNT(*) FROM visits GROUP BY m", policy(visits=visits())) == []


def test_no_repair_names_an_epsilon_that_protects_nobody() -> None:
    many = policy(visits=visits(max_rows_per_unit=40, max_groups_per_unit=None, max_rows_per_group=None))
    (found,) = warnings("SELECT COUNT(DISTINCT ward) FROM visits", many)
    assert not any("ε of" in text for text in found.help)
    assert found.help and not found.help[0].startswith("or ")


def test_a_public_size_tells() -> None:
    own = policy(log=LOG)
    (found,) = warnings("SELECT COUNT(*) FROM log WHERE reading > 0", own, epsilon=Fraction(1, 1000))
    assert found.code == "DP501" and "1,000 rows" in found.notes[0]
    assert codes("SELECT COUNT(*) FROM log WHERE reading > 0", own) == []
    assert codes("SELECT kind, COUNT(*) FROM log GROUP BY kind", own) == ["DP503"]
    assert codes("SELECT COUNT(*) FROM log", own, epsilon=Fraction(1, 1000)) == []  # exact and free


def test_a_size_survives_joins_that_look_up() -> None:
    register = {"public": True, "unique": [["kind"]], "columns": {"kind": {"type": "integer", "nullable": False}}}
    several = {**register, "unique": [], "max_frequency": [{"columns": ["kind"], "rows": 3}]}
    sql = "SELECT COUNT(*) FROM log JOIN kinds ON log.kind = kinds.kind WHERE reading > 0"
    (once,) = warnings(sql, policy(log=LOG, kinds=register), epsilon=Fraction(1, 1000))
    (thrice,) = warnings(sql, policy(log=LOG, kinds=several), epsilon=Fraction(1, 1000))
    assert "at most 1,000," in once.message and "at most 3,000," in thrice.message


def test_a_declared_key_tells_how_many_rows_a_group_has() -> None:
    keyed = policy(visits=visits(unique=[["day", "hour"]]))
    (found,) = warnings("SELECT day, COUNT(*) FROM visits GROUP BY day", keyed)
    assert found.code == "DP501" and "at most 24," in found.message and "unique: [day, hour]" in found.notes[0]


def test_promised_rows_and_the_policys_own_limits() -> None:
    def promised(rows: int) -> Policy:
        return policy(visits=visits(max_rows_per_unit={"rows": rows, "enforce": "assume"}))

    sql = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"  # 3 groups of 4 rows at most
    assert codes(sql, promised(24)) == []
    (found,) = warnings(sql, promised(25))
    assert found.code == "DP502" and "25 rows" in found.message and "at most 12" in found.message
    assert codes("SELECT ward, COUNT(DISTINCT id) FROM visits GROUP BY ward", promised(25)) == []


def test_the_querys_own_limits() -> None:
    def asked(rows: int) -> list[str]:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {rows}) COUNT(*) FROM visits"
        return codes(sql, policy(visits=visits(max_groups_per_unit=None, max_rows_per_group=None)))

    assert asked(5) == [] and asked(4) == ["DP502"]


def test_the_longest_note_is_no_riddle() -> None:
    (found,) = warnings("SELECT ward, COUNT(*) FROM visits GROUP BY ward", policy(visits=visits()), epsilon=SMALL)
    assert found.notes == (
        "from declared numbers alone: 600 values of id, at most 4 rows each; errors are at 95 % and ε 0.01",
    )


def test_warnings_show_in_explain() -> None:
    plan = planned("SELECT day, COUNT(*) FROM visits GROUP BY day", policy(visits=visits()))
    assert "warning[DP503]: COUNT(*) is at most " in as_text(plan) and "  = help: " in as_text(plan)
    (record,) = json.loads(dumps(plan))["warnings"]
    assert record["code"] == "DP503" and record["help"]
    quiet = planned("SELECT ward, COUNT(*) FROM visits GROUP BY ward", policy(visits=visits()))
    assert "warning" not in as_text(quiet) and json.loads(dumps(quiet))["warnings"] == []


def test_public_keys_count_once_they_are_known() -> None:
    """The check does not know the keys of a public table; with the data at hand EXPLAIN does."""
    from dpsql.planner.compile import compile_query

    days = {"public": True, "unique": [["d"]], "columns": {"d": {"type": "integer", "nullable": False}}}
    table = visits()
    columns = {
        **table["columns"],
        "hour": {"type": "integer", "nullable": False, "domain": {"table": "days", "column": "d"}},
    }  # type: ignore[dict-item]
    own = policy(visits={**table, "columns": columns}, days=days)
    sql = "SELECT hour, COUNT(*) FROM visits GROUP BY hour"
    assert [d.code for d in check(sql, own)] == []
    keys = {KeysOf("days", ("d",), own.defaults.max_keys): tuple((i,) for i in range(366))}
    settings = QuerySettings(Fraction(1), Fraction(1, 10**9))
    known = compile_query(Source(sql), own, PublicFacts(keys=keys), settings)
    assert [w.code for w in known.warnings] == ["DP503"]


def test_small_values_are_not_rounded_up() -> None:
    """A sum of a thousand rates of at most 0.0001 is at most 0.1."""
    log = {**LOG, "columns": {**LOG["columns"], "rate": {"type": "double", "bounds": [0, 0.0001], "nullable": False}}}  # type: ignore[dict-item]
    (found,) = warnings("SELECT SUM(rate) FROM log WHERE reading > 0", policy(log=log), epsilon=Fraction(1, 1000))
    assert found.code == "DP501" and "is at most 0.1," in found.message and "± 0.3" in found.message
    assert codes("SELECT SUM(rate) FROM log WHERE reading > 0", policy(log=log)) == []


def test_numbers_beyond_floats_are_no_crash() -> None:
    log = {**LOG, "columns": {**LOG["columns"], "x": {"type": "double", "bounds": [0, 9e299], "nullable": False}}}  # type: ignore[dict-item]
    log["size"] = {"exact": 10**12}
    assert check("SELECT kind, SUM(x) AS s, AVG(x) AS a FROM log GROUP BY kind", policy(log=log)) == []


def _of_units(most: int) -> Policy:
    return policy(visits=visits(columns={**visits()["columns"], "id": {"type": "bigint", "bounds": [1, most]}}))  # type: ignore[dict-item]


def test_a_threshold_that_no_group_can_reach() -> None:
    """ε would be spent, and no row shown: refused, unless somebody wants it so, or nobody has said an ε."""
    sql, few = "SELECT name, COUNT(*) AS n FROM visits GROUP BY name", _of_units(20)
    settings = {"epsilon": Fraction(1), "delta": Fraction(1, 10**9)}
    with pytest.raises(Rejected) as refusal:
        warnings(sql, few, **settings)
    (found,) = refusal.value.diagnostics
    assert found.code == "DP305" and found.severity == "error" and found.message.endswith("none can have over 20")
    assert "20 values of id" in str(found.notes)
    enough = re.search(r"use an ε of ([\d.]+) or more", " ".join(found.help))
    assert enough is not None
    better = {**settings, "epsilon": Fraction(enough[1])}
    assert not [w for w in warnings(sql, few, **better) if "none can have over" in w.message]
    many = policy(visits=visits())
    assert not [w for w in warnings(sql, many, **settings) if "are shown from" in w.message]
    for text, more in ((f"/* dpsql: anyway=on */ {sql}", settings), (sql, {})):
        (warning,) = (w for w in warnings(text, few, **more) if "are shown from" in w.message)
        assert warning.code == "DP503" and warning.severity == "warning" and warning.message == found.message
    for text in (f"/* dpsql: epsilon=1 */ {sql}", f"/* dpsql: anyway=off */ {sql}"):
        with pytest.raises(Rejected, match="none can have over 20"):
            warnings(text, few, **settings)


def test_chance_may_show_a_group_that_cannot_reach_the_threshold() -> None:
    """What noise shows more often than once in 20 times is told, and not refused: nothing else is false."""
    sql, settings = "SELECT name, COUNT(*) AS n FROM visits GROUP BY name", {"epsilon": Fraction(4)}
    threshold = planned(sql, _of_units(600), **settings).releases[0].measured.threshold
    assert threshold is not None
    chances = {}
    for below in range(1, 30):
        chances[below] = threshold.mechanism.upper_tail(below, 64)
        few = _of_units(threshold.threshold - below)
        if chances[below] > Fraction(1, 20):
            (warning,) = (w for w in warnings(sql, few, **settings) if "are shown from" in w.message)
            assert warning.code == "DP503" and warning.label == "only chance shows one"
        else:
            with pytest.raises(Rejected) as refusal:
                warnings(sql, few, **settings)
            assert [d.code for d in refusal.value.diagnostics] == ["DP305"]
    assert chances[1] > Fraction(1, 20) > chances[29]


def test_a_threshold_that_groups_may_not_reach() -> None:
    """Above half of what there can be, or large where nobody declares how much that is; and the ε named is enough."""
    sql = "SELECT name, COUNT(*) AS n FROM visits GROUP BY name"
    undeclared = {**visits()["columns"], "id": {"type": "bigint", "nullable": False}}  # type: ignore[dict-item]
    for of, why in (
        (policy(visits=visits()), "one group at most"),
        (policy(visits=visits(columns=undeclared)), "nothing declares"),
    ):
        settings = {"epsilon": Fraction(1, 4), "delta": Fraction(1, 10**9)}
        (warning,) = (w for w in warnings(sql, of, **settings) if w.code == "DP503")
        assert "perhaps all, are paid for and hidden" in warning.message and why in warning.notes[0]
        enough = re.search(r"use an ε of ([\d.]+) or more", warning.help[0])
        assert enough is not None
        assert "DP503" not in codes(sql, of, **{**settings, "epsilon": Fraction(enough[1])})
