"""Every mistake is told with the dotted path, the place and words a custodian understands."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.errors import CannotOpen
from dpsql.policy.load import load_policy, parse_policy
from dpsql.policy.policy import Policy
from tests.policy.policies import good, mistakes, spoiled

# (what is exchanged, by what, what the message says, the text under the caret)
ONE = [
    ("version: 1\n", "", "version is missing", ""),
    ("version: 1", "version: 2", "version must be 1", "2"),
    ("name: good", "name: 2024", "name must be text, got 2024; put it in quotes", "2024"),
    ("name: good", "name: a/b", "name must be a name of letters", "a/b"),
    ("name: good", "name: good\nledgr: x", "ledgr is not a key of the policy format, did you mean `ledger`?", "ledgr"),
    (
        "name: good",
        "name: good\nnoise: exakt",
        "noise must be one of `exact`, `opendp`, got 'exakt', did you mean `exact`?",
        "exakt",
    ),
    ("name: good", "name: good\nprivacy: {accountant: rdp}", "privacy: accountant must be one of", "rdp"),
    ("name: good", "name: good\ndefaults: {epsilon: 0}", "defaults: epsilon must be a number above 0, got 0", "0"),
    ("name: good", "name: good\ndefaults: {epsilon: '0.2'}", "(remove the quotes)", "'0.2'"),
    (
        "name: good",
        "name: good\ndefaults: {epsilon: .inf}",
        "defaults: epsilon must be a number above 0, got inf",
        ".inf",
    ),
    ("name: good", "name: good\ndefaults: {delta: 1}", "defaults: delta must be a number in [0, 1), got 1", "1"),
    (
        "name: good",
        "name: good\ndefaults: {max_keys: 1.5}",
        "max_keys must be a whole number of at least 1, got 1.5",
        "1.5",
    ),
    (
        "[0, 110]",
        "[110, 0]",
        "tables.people.columns.age: bounds must be [lower, upper] with lower < upper, got [110, 0]",
        "[110, 0]",
    ),
    ("[0, 110]", "[0, 0]", "with lower < upper, got [0, 0]", "[0, 0]"),
    ("[0, 110]", "110", "bounds must be [lower, upper], got 110", "110"),
    ("[0, 110]", "[0, 1, 2]", "bounds must be [lower, upper], got [0, 1, 2]", "[0, 1, 2]"),
    ("[0, 110]", "[0, 0.5]", "must hold whole numbers for INTEGER, got 0.5", "[0, 0.5]"),
    ("[0, 110]", "[0, many]", "must hold finite numbers for INTEGER, got 'many'", "[0, many]"),
    ("[0, 110]", "[0, 3000000000]", "must fit INTEGER, which holds -2147483648 to 2147483647", "[0, 3000000000]"),
    ("[0, 99.5]", "[0, 99.125]", "must have at most 2 decimals for DECIMAL(5,2), got 99.125", "[0, 99.125]"),
    ("[0, 99.5]", "[0, 1e6]", "must fit DECIMAL(5,2)", "[0, 1e6]"),
    ("{type: bigint}, age", "{type: double, bounds: [0, 1e300]}, age", "must lie between -1e300", "[0, 1e300]"),
    ("{type: bigint}, age", "{type: double, bounds: [-1.7e308, 0]}, age", "must lie between -1e300", "[-1.7e308, 0]"),
    ("2024-12-31]", "2024-13-31]", "tables.visits.columns.day: bounds must hold a date", "[2024-01-01, 2024-13-31]"),
    ("2024-12-31]", "31]", "must hold a date, e.g. 2024-01-31, got 31", "[2024-01-01, 31]"),
    ("{type: bigint}, age", "{type: bigint, bounds: [0, x]}, age", "must hold finite numbers for BIGINT", "[0, x]"),
    (
        "town: {type: varchar}",
        "town: {type: varchar, bounds: [a, b]}",
        "bounds fit numbers, dates and timestamps only",
        "[a, b]",
    ),
    (
        "type: tinyint",
        "type: tinyintt",
        "tables.log.columns.level: type `tinyintt` is not known, did you mean `tinyint`?",
        "tinyintt",
    ),
    (
        "town: {type: varchar}",
        "town: {type: 'enum(a)'}",
        "a column of another type cannot be used: leave it out",
        "'enum(a)'",
    ),
    ("town: {type: varchar}", "town: varchar", "tables.people.columns: town must be a mapping", "varchar"),
    (
        "town: {type: varchar}",
        "town: {typ: varchar}",
        "typ is not a key of the policy format, did you mean `type`?",
        "typ",
    ),
    ("town: {type: varchar}", "town: {type: varchar, nullable: no}", "(yes and no are text in YAML 1.2)", "no"),
    (
        "town: {type: varchar}",
        "town: {type: varchar, max_length: 3}",
        "max_length is for lists, and the column is VARCHAR",
        "3",
    ),
    ("town: {type: varchar}", "town: {type: varchar, domain: [1]}", "must list text, got 1; put it in quotes", "1"),
    ("town: {type: varchar}", "town: {type: varchar, domain: []}", "domain is empty", "[]"),
    ("town: {type: varchar}", "town: {type: varchar, domain: [a, null]}", "lists null; write {values:", "[a, null]"),
    ("town: {type: varchar}", "town: {type: varchar, domain: [a, a]}", "domain lists 'a' twice", "[a, a]"),
    (
        "town: {type: varchar}",
        "town: {type: varchar, domain: {table: towns}}",
        "must be a list of values or {table:",
        "{table: towns}",
    ),
    (
        "town: {type: varchar}",
        "town: {type: varchar, domain: {table: town, column: code}}",
        "did you mean `towns`?",
        "town",
    ),
    (
        "town: {type: varchar}",
        "town: {type: varchar, domain: {table: towns, column: cod}}",
        "did you mean `code`?",
        "cod",
    ),
    (
        "town: {type: varchar}",
        "town: {type: varchar, domain: {table: log, column: level}}",
        "group keys must come from a public table",
        "log",
    ),
    (
        "town: {type: varchar}",
        "town: {type: varchar, domain: {table: towns, column: area}}",
        "is DOUBLE in `towns`",
        "area",
    ),
    ("[1, 2, 3]", "[1, 2, 300]", "must fit TINYINT", "300"),
    ("[1, 2, 3]", "[1, true]", "must hold finite numbers for TINYINT, got true", "true"),
    ("town: {type: varchar}", "Age: {type: varchar}", "SQL names do not differ by case", "Age"),
    ("  log:", "  LOG: {public: true}\n  log:", "is the same name as `LOG`", "log"),
    ("    unit: {rows: 2}\n", "", "tables.log: unit is missing: the table is private", "log"),
    ("{rows: 2}", "{rows: 0}", "rows must be a whole number of at least 1, got 0", "0"),
    (
        "{rows: 2}",
        "{rows: 2, column: level}",
        "exactly one of `rows`, `column` and `path`, got `rows`, `column`",
        "{rows: 2, column: level}",
    ),
    ("{rows: 2}", "{}", "exactly one of `rows`, `column` and `path`, got none", "{}"),
    ("{rows: 2}", "{column: lvl}", "names column `lvl`, which table `log` does not list", "lvl"),
    ("{rows: 2}", "{rows: 2, of: persn}", "neither `units` nor another table names, did you mean `person`?", "persn"),
    ("{rows: 2}", "{rows: 2, of: person}", "one counts rows and the other ids", "{rows: 2, of: person}"),
    (
        "unit: {column: id}",
        "unit: {column: id, of: persons}",
        "names unit `persons`, which `units` does not list, did you mean `person`?",
        "persons",
    ),
    ("public: true", "public: true\n    unit: {rows: 1}", "is given, but the table is public", "{rows: 1}"),
    ("public: true", "public: true\n    max_rows_per_unit: 3", "a public table has no unit to limit", "3"),
    ("[[code]]", "[code]", "tables.towns: unique[0] must be a list of column names, e.g. [code]", "code"),
    ("[[code]]", "[[cod]]", "names column `cod`, which table `towns` does not list, did you mean `code`?", "[cod]"),
    (
        "[[code]]",
        "[{columns: [code], enforce: drop}]",
        "the table is public: it is checked, never cut",
        "{columns: [code], enforce: drop}",
    ),
    ("[[visit_id]]", "[{columns: [visit_id], enforce: truncate}]", "not promised to be unique", "visits(visit_id)"),
    ("visits(visit_id)}", "visits(day)}", "refers from `visit_id` (BIGINT) to `visits.day` (DATE)", "visits(day)"),
    (
        "visits(visit_id)}",
        "visit(visit_id)}",
        "names table `visit`, which the policy does not list, did you mean `visits`?",
        "visit(visit_id)",
    ),
    ("visits(visit_id)}", "visits}", "must be table(column), e.g. patients(patient_id), got 'visits'", "visits"),
    (
        "visits(visit_id)}",
        "towns(code)}",
        "leads to `towns`, which is public",
        "[{column: visit_id, references: towns(code)}]",
    ),
    ("visits(visit_id)}]}", "items(visit_id)}]}\n    unique: [[visit_id]]", "unit goes in a circle: items → items", ""),
    ("path: [{column: visit_id,", "path: [{", "must have one of `column` and `columns`", ""),
    ("max_rows_per_unit: 20", "max_rows_per_unit: {rows: 20, enforce: drop}", "enforce must be truncate", "drop"),
    ("max_rows_per_unit: 20", "max_rows_per_unit: twenty", "must be a mapping", "twenty"),
    ("max_rows_per_unit: 20", "max_rows_per_unit: serach", "did you mean `search`?", "serach"),
    ("max_rows_per_unit: 20", "max_rows_per_unit: {}", "max_rows_per_unit: rows is missing", "max_rows_per_unit"),
    ("max_rows_per_unit: 20", "max_rows_per_unit: {enforce: assume}", "rows is missing", "max_rows_per_unit"),
    ("max_rows_per_unit: 20", "max_rows_per_unit: {search: false}", "search must be true, or left out", "false"),
    (
        "max_rows_per_unit: 20",
        "max_rows_per_unit: {search: true, rows: 20}",
        "max_rows_per_unit: rows cannot stand beside  search: true",
        "20",
    ),
    (
        "max_rows_per_unit: 20",
        "max_rows_per_unit: {search: true, enforce: assume}",
        "max_rows_per_unit: enforce cannot stand beside  search: true",
        "assume",
    ),
    ("max_rows_per_unit: 20", "max_rows_per_unit: {search: true, at_most: 0}", "at_most must be a whole number", "0"),
    (
        "max_rows_per_unit: 20",
        "max_rows_per_unit: {rows: 5, at_most: 9}",
        "at_most goes with  search: true",
        "9",
    ),
    ("public: true", "public: true\n    max_rows_per_unit: search", "a public table has no unit to limit", "search"),
    ("{rows: 2}", "{rows: 2}\n    max_rows_per_unit: search", "needs a unit that is an id", "search"),
    ("[0, 110]", "serach", "bounds must be [lower, upper] or search, got 'serach'", "serach"),
    ("[0, 110]", "{}", "must be [lower, upper], search or {search: true, within: [lower, upper]}", "{}"),
    ("[0, 110]", "{within: [0, 1]}", "must be [lower, upper], search or {search: true,", "{within: [0, 1]}"),
    ("[0, 110]", "{search: true, ends: [0, 1]}", "bounds: ends cannot stand beside  search: true", "[0, 1]"),
    ("[0, 110]", "{search: true, within: [1, 0]}", "bounds: within must be [lower, upper] with lower <", "[1, 0]"),
    ("[0, 110]", "{search: true, within: [0, 0.5]}", "within must hold whole numbers for INTEGER", "[0, 0.5]"),
    ("[0, 110]", "{search: yes}", "bounds: search must be true, or left out, got 'yes'", "yes"),
    ("[0, 110]", "{serach: true}", "serach is not a key of the policy format, did you mean `search`?", "serach"),
    ("[2024-01-01, 2024-12-31]", "search", "bounds can be searched for numbers only, and the column is DATE", "search"),
    (
        "area: {type: double}",
        "area: {type: bigint, resolution: 1}",
        "resolution is for columns of type double, and the column is BIGINT",
        "1",
    ),
    ("area: {type: double}", "area: {type: double, resolution: 0}", "resolution must be a number above 0", "0"),
    (
        "area: {type: double}",
        "area: {type: double, resolution: 1e-16}",
        "resolution must be a number from 1e-15 to 1e15",
        "1e-16",
    ),
    (
        "name: good",
        "name: good\nsearch: never",
        "search must be one of `auto`, `allow`, `refuse`, got 'never'",
        "never",
    ),
    (
        "max_rows_per_unit: 20",
        "max_frequency: [{columns: [day], rows: 3}]",
        "enforce: truncate (the default) on columns without the id `person_id`",
        "{columns: [day], rows: 3}",
    ),
    (
        "max_rows_per_unit: 20",
        "foreign_keys: [{columns: [person_id], references: people(id), enforce: truncate}]",
        "enforce must be assume, got 'truncate': a policy leaves out no rows that refer to nothing",
        "truncate",
    ),
    (
        "max_rows_per_unit: 20",
        "foreign_keys: [{columns: [person_id], references: people(id), enforce: drop}]",
        "enforce must be assume, got 'drop': a policy leaves out no rows that refer to nothing; leave `enforce` out",
        "drop",
    ),
    (
        "max_rows_per_unit: 20",
        "size: {exact: 5}",
        "is public only for  unit: {rows: k, neighbours: replace_one}",
        "{exact: 5}",
    ),
    ("{rows: 2}", "{rows: 2}\n    size: {exact: 5}", "needs neighbours: replace_one", "{exact: 5}"),
    (
        "{rows: 2}",
        "{rows: 2}\n    max_groups_per_unit: 5",
        "needs a unit that is an id; the unit here is 2 row(s)",
        "5",
    ),
    (
        "{rows: 2}",
        "{rows: 2}\n    source: read_parquet(x)",
        "the path must be a literal in single quotes",
        "read_parquet(x)",
    ),
    ("{rows: 2}", "{rows: 2}\n    source: SELECT 1", "must be one call of read_parquet", "SELECT 1"),
    (
        "{person: {table: people, key: id}}",
        "{person: {table: people, key: age}}",
        "units.person: key is `age`, but tables.people.unit.column is `id`",
        "age",
    ),
    (
        "{person: {table: people, key: id}}",
        "{person: {table: towns, key: id}}",
        "whose `unit` is no id column",
        "towns",
    ),
    ("{person: {table: people, key: id}}", "{person: {key: id}}", "key is given without `table`", "id"),
    (
        "{person: {table: people, key: id}}",
        "{person: {}, staff: {}}",
        "must say whose id this is with `of:` one of `person`, `staff`",
        "{column: id}",
    ),
    (
        "unit: {column: person_id}",
        "unit: {column: person_id, neighbours: replace_one, of: person}\n    max_groups_per_unit: 0",
        "max_groups_per_unit must be a whole number",
        "0",
    ),
    ("budgets: {total: {epsilon: 10, delta: 1e-6}}", "", "budgets: total is missing", ""),
    (
        "{epsilon: 10, delta: 1e-6}",
        "{delta: 1e-6}",
        "budgets.total: epsilon is missing (the accountant is approx_dp)",
        "",
    ),
    ("{epsilon: 10, delta: 1e-6}", "{epsilon: 0}", "must be above 0, else no query can ever run", "0"),
    ("{epsilon: 10, delta: 1e-6}", "{epsilon: -1}", "must be a number of at least 0, got -1", "-1"),
    ("{epsilon: 10, delta: 1e-6}", "{epsilon: 10, rho: 1}", "rho is not counted under approx_dp; give epsilon", "1"),
    (
        "delta: 1e-6}}",
        "delta: 1e-6}, units: {people: {epsilon: 1}}}",
        "budgets.units: people is no unit of this policy",
        "people",
    ),
    (
        "delta: 1e-6}}",
        "delta: 1e-6}, analysts: {ana: {epsilon: 1, per_query: {max_epsilon: 0}}}}",
        "max_epsilon must be a number above 0",
        "0",
    ),
    (
        "delta: 1e-6}}",
        "delta: 1e-6}, analysts: {ana: {epsilon: 1, per_query: {max_delta: 0}}}}",
        "max_epsilon is missing",
        "",
    ),
    (
        "name: good",
        "name: good\nprivacy: {accountant: pure_dp}",
        "delta must be 0 under pure_dp, which knows no δ",
        "1e-6",
    ),
]


@pytest.mark.parametrize(("old", "new", "message", "under"), ONE)
def test_mistake(old: str, new: str, message: str, under: str) -> None:
    found = mistakes(spoiled(old, new))
    hits = [d for d in found if message in d.message]
    assert hits, [d.message for d in found]
    hit = hits[0]
    assert hit.code == "DP003" and hit.source is not None and hit.span is not None and hit.span.end > hit.span.start
    if under:
        assert hit.source.text[hit.span.start : hit.span.end] == under
        line, column = hit.source.position(hit.span.start)
        assert under.split("\n")[0] in hit.source.line(line)[column - 1 :]


@pytest.mark.parametrize(("old", "new", "message", "under"), ONE)
def test_one_mistake_is_told_once(old: str, new: str, message: str, under: str) -> None:
    found = [d.message for d in mistakes(spoiled(old, new))]
    allowed = 1 if "did you mean" in message or "is missing" in message else 2
    assert len(found) <= allowed + 1 and len(set(found)) == len(found), found


def test_all_at_once_in_the_order_of_the_text() -> None:
    text = spoiled("[0, 110]", "[110, 0]")
    text = text.replace("type: tinyint", "type: tiny").replace("rows: 2", "rows: x").replace("name: good", "nam: good")
    text = text.replace("[0, 99.5]", "[0, y]").replace("columns: {code", "columns: {code: {type: date}, code")
    found = mistakes(text)
    said = " | ".join(d.message for d in found)
    for part in ("nam is not a key", "name is missing", "bounds must be [lower, upper] with", "`tiny` is not known",
                 "rows must be a whole number", "got 'y'", "key `code` is given twice"):  # fmt: skip
        assert part in said
    starts = [d.span.start for d in found if d.span is not None]
    assert starts == sorted(starts) and len(starts) == len(found)


def test_a_mistake_hides_no_other_of_its_table() -> None:
    text = spoiled("max_rows_per_unit: 20", "max_rows_per_unit: 0").replace("2024-12-31", "2023-12-31")
    said = [d.message for d in mistakes(text)]
    assert len(said) == 2 and "max_rows_per_unit" in said[0] and "lower < upper" in said[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        ("a: [1", "flow sequence"),
        ("a: 'x", "unexpected end of stream"),
        ("a: b: c", "mapping values are not allowed here"),
        ("a:\n\tb: 1", "cannot start any token"),
        ("a: 1\na: 2\n", "key `a` is given twice"),
        ("a: *b", "*b refers to nothing before it"),
        ("a: &b [*b]", "*b refers to nothing before it"),
        ("a: !!python/object:os.system x", "tags such as tag:yaml.org,2002:python/object:os.system"),
        ("a: !x {}", "tags such as !x"),
        ("a: 1\n---\nb: 2\n", "a policy is one YAML document"),
        ("? [a]\n: 1\n", "a key must be plain text"),
        ("? {a: 1}\n: 1\n", "a key must be plain text"),
        ("a: &b {c: 1}\nd: {<<: *b}", "`<<` (merge) is not part of YAML 1.2"),
        ("a: " + "[" * 100 + "]" * 100, "nested too deeply"),
        ("a: " + "9" * 1000, "more digits than any policy needs"),
        ("a: 1e99999999999999999999", "more digits than any policy needs"),
        ("a: \x01", "a character that YAML does not allow"),
    ],
)
def test_bad_yaml(text: str, message: str) -> None:
    found = mistakes(text)
    hits = [d for d in found if message in d.message]
    assert hits and hits[0].code == "DP002", [d.message for d in found]


@pytest.mark.parametrize(
    ("old", "new", "repair"),
    [
        ("town: {type: varchar}", "town: varchar", "a column is written  age: {type: integer}"),
        ("town: {type: varchar}", "unit: varchar", "a column is written  age: {type: integer}"),
        ("max_rows_per_unit: 20", "max_rows_per_unit: twenty", "max_rows_per_unit: 20, or  max_rows_per_unit: search"),
        ("unit: {column: person_id}", "unit: person_id", "unit: {column: id}"),
        ("town: {type: varchar}", "town: {type: varchar, domain: towns.code}", "{table: regions, column: region}"),
    ],
)
def test_what_is_no_mapping_is_told_its_form(old: str, new: str, repair: str) -> None:
    helped = [d for d in mistakes(spoiled(old, new)) if "must be a mapping" in d.message]
    assert helped and repair in helped[0].help[0]


@pytest.mark.parametrize(
    ("path", "repair"),
    [
        ("data/a.parquet", "source: read_parquet('data/a.parquet')"),
        ("a.csv", "`dpsql policy init a.csv` drafts the call, which says what the file looks like"),
        ("SELECT 1", "source: read_parquet('data/visits/*.parquet')"),
    ],
)
def test_a_file_without_a_reader_is_told_its_call(path: str, repair: str) -> None:
    (helped,) = [d.help for d in mistakes(spoiled("{rows: 2}", f"{{rows: 2}}\n    source: {path}")) if d.help]
    assert helped == (repair,)


def test_a_colon_in_a_text() -> None:
    text = "version: 1\ntables:\n  t:\n    source: read_csv('t.csv', columns = {'a': 'BIGINT'})\n"
    (found,) = mistakes(text)
    assert (found.code, len(found.help)) == ("DP002", 1) and ">-" in found.help[0]


def test_alias_bomb_is_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    assert any("more than 50,000 values" in d.message for d in mistakes("\n".join(lines)))
    chain = ["a0: &a0 [x]", *(f"a{i}: &a{i} [[[[[[[[*a{i - 1}]]]]]]]]" for i in range(1, 300))]
    assert any("nested too deeply" in d.message for d in mistakes("\n".join(chain)))


def test_aliases_work() -> None:
    assert good("town: {type: varchar}", "town: &t {type: varchar}, city: *t").tables["people"].column("city")


@pytest.mark.parametrize("text", ["[]", "x", "1", "null", "- a\n- b\n"])
def test_not_a_mapping(text: str) -> None:
    assert [d.code for d in mistakes(text)] in (["DP003"], ["DP002"])


def test_unreadable_files(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "binary.yaml").write_bytes(b"a: \x00\x01")
    (folder / "latin.yaml").write_bytes("a: é".encode("latin-1"))
    (folder / "huge.yaml").write_bytes(b"# " + b"x" * (5 << 20))
    (folder / "long.yaml").write_bytes(b"# " + b"x" * (2 << 20))
    for name, reason in [
        ("absent.yaml", "there is no such file"),
        (".", "it is a folder"),
        ("binary.yaml", "it is a binary file"),
        ("latin.yaml", "it is not UTF-8 text"),
        ("huge.yaml", "it is too large"),
        ("long.yaml", "which no policy needs"),
        ("a\x00b", "the path is not valid"),
    ]:
        with pytest.raises(CannotOpen) as caught:
            load_policy(folder / name)
        assert [d.code for d in caught.value.diagnostics] == ["DP001"] and reason in caught.value.diagnostics[0].message


def test_byte_order_mark_and_windows_line_ends(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + spoiled("", "").replace("\n", "\r\n").encode())
    assert load_policy(file).hash == good().hash


@pytest.mark.parametrize("data", [None, 3, [], {"a": object()}, {1: 2}, {"version": 1, "name": "a", "tables": {2: {}}}])
def test_bad_mappings_in_code(data: object) -> None:
    with pytest.raises(CannotOpen) as caught:
        Policy.model_validate(data)
    assert {d.code for d in caught.value.diagnostics} == {"DP003"}


@pytest.mark.parametrize("above", ["", "# a comment\n\n"])
def test_what_is_missing_at_the_top_is_at_the_first_line(above: str) -> None:
    """Not under the whole file."""
    table = "tables: {t: {unit: {column: id}, columns: {id: {type: bigint}}}}"
    text = f"{above}version: 1\nname: c\nunits: {{patient: {{}}}}\n{table}\n"
    with pytest.raises(CannotOpen) as refused:
        parse_policy(text)
    (found,) = [d for d in refused.value.diagnostics if "budgets" in d.message]
    assert found.span is not None and text[found.span.start : found.span.end] == "version: 1"
