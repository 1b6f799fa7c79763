"""What cannot be computed exactly on PostgreSQL is refused by name where it stands, without a server or its client."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import dpsql
from dpsql.faces.cli.main import main
from dpsql.functions.registry import FAMILIES
from dpsql.policy.load import load_policy, parse_policy
from dpsql.spelling.postgres_functions import FUNCTIONS, LIMITS, POSTGRES

POLICY = """\
version: 1
name: clinic
{database}units:
  patient: {{table: patients, key: id}}
tables:
  patients:
    unit: {{column: id}}
    primary_key: [id]
    columns:
      id:     {{type: bigint, nullable: false}}
      age:    {{type: integer, bounds: [0, 110]}}
      name:   {{type: varchar}}
      weight: {{type: double, bounds: [0, 300]}}
      born:   {{type: date, bounds: [1900-01-01, 2024-12-31]}}
  regions:
    public: true
    columns:
      id:   {{type: integer}}
      name: {{type: varchar}}
      size: {{type: double}}
budgets:
  total: {{epsilon: 10, delta: 1e-6}}
"""


@pytest.fixture(autouse=True)
def no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever imports psycopg fails."""
    monkeypatch.setitem(sys.modules, "psycopg", None)


def policy(database: str) -> dpsql.Policy:
    return parse_policy(POLICY.format(database=database))


ON_SERVER, ON_DUCKDB = policy("database: postgresql://reader@db.example/clinic\n"), policy("")

WORDS = "cannot be computed exactly on PostgreSQL"
REFUSED = [
    ("SELECT COUNT(*) FROM patients WHERE |reverse(name)| = 'x'", f"reverse {WORDS}"),
    ("SELECT COUNT(*) FROM patients WHERE |strip_accents(name)| = 'x'", f"strip_accents {WORDS}"),
    ("SELECT SUM(CLIP(|LOG2(age)|, 0, 7)) FROM patients", f"log2 {WORDS}"),
    ("SELECT SUM(CLIP(|POW(weight, age)|, 0, 9)) FROM patients", f"pow {WORDS}: the exponent must"),
    ("SELECT COUNT(*) FROM patients WHERE |POW(weight, 1e200 * 1e200)| > 3", f"pow {WORDS}: the exponent must"),
    ("SELECT SUM(CLIP(|weight % 7|, 0, 9)) FROM patients", f"% {WORDS}: there is no remainder"),
    ("SELECT COUNT(*) FROM patients WHERE |CAST(name AS INTEGER)| = 3", f"cast {WORDS}"),
    ("SELECT COUNT(*) FROM patients WHERE |substring(name, age)| = 'a'", f"substring {WORDS}"),
    ("SELECT COUNT(*) FROM patients WHERE |date_sub('month', born, DATE '2024-01-01')| > 3", f"date_sub {WORDS}"),
    ("SELECT |AVG(size)| FROM regions", f"avg {WORDS}: of DOUBLE"),
    ("SELECT id, |lag(name IGNORE NULLS) OVER (ORDER BY id)| FROM regions", f"lag ignore nulls {WORDS}"),
    ("SELECT COUNT(*) AS n FROM regions a FULL JOIN |regions b ON a.size < b.size|", f"FULL JOIN {WORDS}"),
]


@pytest.mark.parametrize(("written", "message"), REFUSED, ids=lambda x: x)
def test_the_check_names_what_is_refused_where_it_stands(written: str, message: str) -> None:
    before, inside, _ = written.split("|") if written.count("|") == 2 else ("", "", "")
    sql = written.replace("|", "")
    (found,) = [d for d in dpsql.check(sql, ON_SERVER) if d.severity == "error"]
    assert found.code == "DP105" and found.message.startswith(message), found.message
    assert found.span is not None and found.help
    assert sql[found.span.start : found.span.end].startswith(inside[:3]) and found.span.start == len(before)
    assert not [d for d in dpsql.check(sql, ON_DUCKDB) if d.severity == "error"]


def test_what_is_made_of_released_numbers_is_duckdbs_affair() -> None:
    sql = "SELECT LOG2(COUNT(*)), SUM(age) % 0.7e0, reverse('ab') FROM patients"
    assert not [d for d in dpsql.check(sql, ON_SERVER) if d.severity == "error"]


def test_the_command_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clinic.yaml").write_text(POLICY.format(database="database: postgresql://reader@db.example/clinic\n"))
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) AS n\nFROM patients\nWHERE reverse(name) = 'x';\n")
    assert main(["check", "--policy", str(tmp_path / "clinic.yaml"), str(tmp_path / "q.sql")]) == 1
    shown = "".join(capsys.readouterr())
    assert "DP105" in shown and f"reverse {WORDS}" in shown and "q.sql:3:7" in shown
    assert "WHERE reverse(name) = 'x'" in shown and "^^^^" in shown


def test_only_functions_that_are_spelled_have_limits() -> None:
    names = {f.name for family in FAMILIES.values() for f in family}
    assert set(FUNCTIONS) <= names and set(LIMITS) <= set(FUNCTIONS)
    patterns = {
        f"regexp_{what}" for what in ("matches", "full_match", "extract", "replace")
    }  # not in linear time there
    assert names - set(FUNCTIONS) == {"log2", "reverse", "strip_accents", "json_extract_string"} | patterns
    assert all(POSTGRES.spells(name) for name in FUNCTIONS) and not POSTGRES.spells("reverse")


def test_a_policy_file_may_name_the_server(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(POLICY.format(database="database: postgresql://reader@db.example/clinic\n"))
    assert dpsql.check("SELECT COUNT(*) FROM patients", load_policy(tmp_path / "clinic.yaml")) == []
