"""Whose rows: units by rows, by id, by path, with and without `units:`."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.core.policy.units import Hop, IdUnit, PathUnit, RowUnit
from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.policy import Policy
from dpsql.policy.tools.assumptions import promises, protection


def policy(tables: dict[str, Any], **more: Any) -> Policy:
    data = {"version": 1, "name": "t", "tables": tables, "budgets": {"total": {"epsilon": 1}}, **more}
    return Policy.model_validate(data)


def refused(tables: dict[str, Any], **more: Any) -> str:
    with pytest.raises(CannotOpen) as caught:
        policy(tables, **more)
    return " | ".join(d.message for d in caught.value.diagnostics)


ID = {"columns": {"id": {}}, "unit": {"column": "id"}}


def chain() -> dict[str, Any]:
    """a → b → c, c holds the id."""
    return {
        "a": {"unit": {"path": [{"column": "b", "references": "b(b)"}]}, "columns": {"b": {}}},
        "b": {
            "unit": {"path": [{"column": "c", "references": "c(c)"}]},
            "columns": {"b": {}, "c": {}},
            "unique": [["b"]],
        },
        "c": {"unit": {"column": "id"}, "columns": {"c": {}, "id": {}}, "primary_key": ["c"]},
    }


def test_the_one_unit_has_a_default_name() -> None:
    assert policy({"t": ID}).tables["t"].protection == IdUnit("unit", "id", "add_remove")


def test_the_single_declared_unit_is_meant() -> None:
    assert policy({"t": ID}, units={"aircraft": {}}).tables["t"].unit == "aircraft"


def test_the_home_of_a_unit_needs_no_of() -> None:
    units = {"person": {"table": "p", "key": "id"}, "firm": {"table": "f", "key": "id"}}
    found = policy({"p": ID, "f": ID}, units=units)
    assert (found.tables["p"].unit, found.tables["f"].unit) == ("person", "firm")
    assert found.units["firm"].table == "f"


def test_an_id_without_of_beside_named_ones_is_ambiguous() -> None:
    named = {"columns": {"id": {}}, "unit": {"column": "id", "of": "person"}}
    assert "must say whose id this is" in refused({"a": named, "b": ID})


def test_row_units_are_separate_unless_they_share_a_name() -> None:
    rows = {"unit": {"rows": 1}}
    apart = policy({"a": rows, "b": rows})
    assert {u.name: u.tables for u in apart.units.values()} == {"a": ("a",), "b": ("b",)}
    shared = {"unit": {"rows": 2, "of": "household"}}
    together = policy({"a": shared, "b": shared})
    assert {u.name: u.tables for u in together.units.values()} == {"household": ("a", "b")}
    assert set(together.caps_for().total) == {"household"}


def test_path_is_followed_to_the_id() -> None:
    found = policy(chain())
    last = Hop(("c",), "c", ("c",))
    assert found.tables["b"].protection == PathUnit("unit", (last,), "id", "add_remove")
    assert found.tables["a"].protection == PathUnit("unit", (Hop(("b",), "b", ("b",)), last), "id", "add_remove")
    spelled = chain()
    spelled["a"]["unit"]["path"].append({"column": "c", "references": "c(c)"})
    assert policy(spelled).tables["a"].protection == found.tables["a"].protection


def test_paths_that_do_not_hold_are_refused() -> None:
    circle = chain()
    circle["c"]["unit"] = {"path": [{"column": "id", "references": "b(b)"}]}
    assert "goes in a circle" in refused(circle)
    rows = chain()
    rows["c"]["unit"] = {"rows": 1}
    assert "whose unit is a number of rows" in refused(rows)
    other = chain()
    other["b"]["unit"]["of"], other["c"]["unit"]["of"] = "somebody", "person"
    assert "names unit `somebody`, but the path leads to unit `person`" in refused(other)
    further = chain()
    further["b"]["unit"]["path"].append({"column": "id", "references": "d(d)"})
    further["d"] = {"unit": {"column": "d"}, "columns": {"d": {}}, "unique": [["d"]]}
    assert "it may end at `c`" in refused(further)
    enforced = chain()
    enforced["c"]["primary_key"] = {"columns": ["c"], "enforce": "drop"}
    assert "is not promised to be unique" in refused(enforced)


def test_composite_hops() -> None:
    tables = {
        "a": {
            "unit": {"path": [{"columns": ["x", "y"], "references": 'p ("k 1", k2)'}]},
            "columns": {"x": {}, "y": {}},
        },
        "p": {"unit": {"column": "id"}, "columns": {"k 1": {}, "k2": {}, "id": {}}, "unique": [["k 1", "k2"]]},
    }
    found = policy(tables).tables["a"].protection
    assert isinstance(found, PathUnit) and found.path == (Hop(("x", "y"), "p", ("k 1", "k2")),)
    tables["a"]["unit"]["path"][0]["columns"] = ["x"]  # type: ignore[index]
    assert "has 1 column(s) but refers to 2" in refused(tables)


def test_one_neighbour_relation_per_unit() -> None:
    said = {"columns": {"id": {}}, "unit": {"column": "id", "neighbours": "replace_one"}}
    found = policy({"a": said, "b": ID})
    assert {t.protection.neighbours for t in found.tables.values() if t.protection} == {"replace_one"}
    assert found.units["unit"].neighbours == "replace_one"
    against = {"columns": {"id": {}}, "unit": {"column": "id", "neighbours": "add_remove"}}
    assert "of the same unit says replace_one" in refused({"a": said, "b": against})


def test_neighbours_of_the_policy_hold_for_all() -> None:
    found = policy({"a": {"unit": {"rows": 4}, "size": {"exact": 9}}}, privacy={"neighbours": "replace_one"})
    assert found.tables["a"].protection == RowUnit("a", 4, "replace_one") and found.tables["a"].size == 9


def test_enforced_keys_on_id_tables_contain_the_id() -> None:
    table = {**ID, "columns": {"id": {}, "day": {}}, "unique": [{"columns": ["id", "day"], "enforce": "truncate"}]}
    assert policy({"t": table}).tables["t"].unique[0].enforce == "truncate"
    table["unique"] = [{"columns": ["day"], "enforce": "truncate"}]
    assert "would move rows of other ids" in refused({"t": table})
    rows = {"unit": {"rows": 1}, "columns": {"day": {}}, "unique": [{"columns": ["day"], "enforce": "drop"}]}
    assert policy({"t": rows}).tables["t"].unique[0].enforce == "drop"


def test_enforced_keys_on_path_tables_are_refused() -> None:
    tables = chain()
    tables["a"]["max_frequency"] = [{"columns": ["b"], "rows": 3}]
    assert "has no id column of its own" in refused(tables)
    tables["a"]["max_frequency"] = [{"columns": ["b"], "rows": 3, "enforce": "assume"}]
    assert policy(tables).tables["a"].max_frequency[0].assumed


def test_public_frequencies_are_checked_not_cut() -> None:
    table = {"public": True, "columns": {"id": {}}, "max_frequency": [{"columns": ["id"], "rows": 3}]}
    assert policy({"t": table}).tables["t"].max_frequency[0].assumed


def test_a_listed_analyst_section_denies_everyone_else() -> None:
    budgets = {"total": {"epsilon": 5}, "analysts": {"ana": {"epsilon": 1}}}
    found = policy({"t": ID}, budgets=budgets)
    caps = found.caps_for("eve")
    assert caps.analyst["unit"].epsilon == 0 and caps.per_query is None
    assert found.caps_for("ana").analyst["unit"].epsilon == 1
    open_policy = policy({"t": ID})
    assert open_policy.caps_for("eve").analyst == {} and open_policy.account("eve") == "eve"


def test_unit_budgets_override_the_total() -> None:
    budgets = {"total": {"epsilon": 5}, "units": {"b": {"epsilon": 2}}}
    caps = policy({"a": {"unit": {"rows": 1}}, "b": {"unit": {"rows": 1}}}, budgets=budgets).caps_for()
    assert (caps.total["a"].epsilon, caps.total["b"].epsilon) == (5, 2)


def test_rho_under_zcdp() -> None:
    privacy = {"accountant": "zcdp"}
    budgets = {"total": {"rho": 0.5, "delta": 1e-6}, "analysts": {"*": {"rho": 0.1, "per_query": {"max_rho": 0.01}}}}
    caps = policy({"t": ID}, privacy=privacy, budgets=budgets).caps_for()
    assert float(caps.total["unit"].rho) == 0.5 and caps.per_query is not None and float(caps.per_query.rho) == 0.01
    assert "epsilon is not counted under zcdp" in refused({"t": ID}, privacy=privacy, budgets={"total": {"epsilon": 1}})


def test_protection_arithmetic() -> None:
    tables = {"t": ID, "a": {"unit": {"rows": 3}}, "b": {"unit": {"rows": 1, "neighbours": "replace_one"}}}
    added, replaced = protection(policy(tables))
    assert added.startswith("added or removed: (1 + ⌈n(a)/3⌉)·ε") and "one unit in t" in added
    assert replaced.startswith("replaced: n(b)·ε")


def test_of_rho_several_units_are_their_number_squared() -> None:
    """n rows move a count n times as far: l2²/(2σ²) is n² times that of one."""
    tables = {"t": ID, "a": {"unit": {"rows": 2}}}
    found = policy(tables, privacy={"accountant": "zcdp"}, budgets={"total": {"rho": 1}})
    (line,) = protection(found)
    assert line.startswith("added or removed: (1 + ⌈n(a)/2⌉)²·ρ")
    assert [p.when_false for p in promises(found) if p.kind == "unit"] == [
        "someone with n ids is protected at n²·ρ only; rows without an id are left out",
        "someone with n rows is protected at ⌈n/2⌉²·ρ only",
    ]


def test_promises_list_what_is_trusted_and_nothing_else() -> None:
    tables = {
        "p": {"public": True, "columns": {"k": {"nullable": False}}, "unique": [["k"]]},
        "t": {
            "unit": {"column": "id"},
            "columns": {"id": {}, "day": {}, "k": {"domain": {"table": "p", "column": "k"}}},
            "unique": [["id", "day"], {"columns": ["id", "k"], "enforce": "drop"}],
            "foreign_keys": [{"columns": ["k"], "references": "p(k)"}],
            "max_frequency": [{"columns": ["id"], "rows": 9}, {"columns": ["day"], "rows": 8, "enforce": "assume"}],
            "max_rows_per_unit": {"rows": 7, "enforce": "assume"},
        },
        "s": {"unit": {"rows": 1, "neighbours": "replace_one"}, "size": {"exact": 5}},
    }
    found = {(p.kind, p.where) for p in promises(policy(tables))}
    assert found == {
        ("public", "tables.p.public"),
        ("not_null", "tables.p.columns.k.nullable"),
        ("unit", "tables.t.unit"),
        ("unique", "tables.t.unique[0]"),
        ("foreign_key", "tables.t.foreign_keys[0]"),
        ("max_frequency", "tables.t.max_frequency[1]"),
        ("max_rows_per_unit", "tables.t.max_rows_per_unit"),
        ("public", "tables.t.columns.k.domain"),
        ("unit", "tables.s.unit"),
        ("size", "tables.s.size"),
    }
    # Each says what is lost, and where more about it is said.
    assert all(p.claim and "ε" in p.when_false and p.page.endswith(f"/{p.kind}.md") for p in promises(policy(tables)))
    said = {p.where: p.when_false for p in promises(policy(tables))}
    assert said["tables.t.max_frequency[1]"].endswith("ε is ⌈n/8⌉ times what is stated")
    assert said["tables.t.unique[0]"].endswith("ε is n times what is stated")


def test_ids_of_one_unit_are_of_one_kind() -> None:
    number = {"unit": {"column": "id"}, "columns": {"id": {"type": "integer"}}}
    wide = {"unit": {"column": "id"}, "columns": {"id": {"type": "bigint"}}}
    text = {"unit": {"column": "id"}, "columns": {"id": {"type": "varchar"}}}
    assert policy({"a": number, "b": wide}).units["unit"].tables == ("a", "b")
    assert "the same unit's id `a.id` is integer" in refused({"a": number, "b": text})
    assert "an id is one value" in refused({"a": {"unit": {"column": "id"}, "columns": {"id": {"type": "integer[]"}}}})
