"""psql: carets, notices, FETCH_COUNT, \\copy, \\gdesc, \\bind, and how it says that a connection cannot be had."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.clients_elsewhere.clients import PSQL, missing
from tests.support.answering import Answers
from tests.support.served import DATABASE, NAME, PASSWORD, Served

pytestmark = pytest.mark.xfail(missing(PSQL), reason=f"needs {PSQL}", run=False, strict=False)


def psql(served: Served, script: str, password: str = PASSWORD, **more: str) -> tuple[str, str]:
    """What it prints and what it says."""
    said = {"host": "127.0.0.1", "port": served.port, "user": NAME, "dbname": DATABASE, **more}
    done = subprocess.run(
        ["psql", "-X", "-A", " ".join(f"{k}={v}" for k, v in said.items())], input=script, text=True,
        capture_output=True, timeout=60,
        env={**os.environ, "PGPASSWORD": password, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    return done.stdout, done.stderr


def test_an_answer_and_its_notice(served: Served) -> None:
    printed, said = psql(served, "SELECT n, region, none FROM numbers(2);", sslmode="require")
    assert printed == "n|region|none\n42|norð|\n42|norð|\n(2 rows)\n" and said == "NOTICE:  spent ε 0.5\n"


def test_an_error_with_its_caret(served: Served) -> None:
    said = psql(served, "SHOW epsilon;\nSELECT n\nFROM nowhere;")[1]
    lines = said.splitlines()
    assert lines[0] == "ERROR:  [DP102] unknown table" and lines[1] == "LINE 2: FROM nowhere;"
    assert lines[2].index("^") == lines[1].index("nowhere")
    assert lines[3:] == [
        "DETAIL:  here",
        "nothing was run and nothing was spent. page: `dpsql rule DP102`",
        "HINT:  SELECT n",
    ]


def test_what_it_does_by_itself(served: Served, answers: Answers) -> None:
    script = r"""
\set FETCH_COUNT 2
SELECT n FROM numbers(5);
\unset FETCH_COUNT
\copy (SELECT n, region) TO STDOUT CSV HEADER
SELECT n, d WHERE x = $1 \gdesc
BEGIN; SAVEPOINT a; nonsense; ROLLBACK TO a; SELECT n; COMMIT;
SET epsilon = 0.5; SHOW epsilon;
\conninfo
"""
    printed = psql(served, script)[0]
    assert printed.count("42\n") == 5 + 1 and "n,region\n42,norð\n" in printed
    assert "Column|Type\nn|bigint\nd|date\n" in printed  # it asks for the types' names
    assert "SAVEPOINT" in printed and "COMMIT" in printed and "epsilon\n0.5\n" in printed
    assert 'You are connected to database "clinic" as user "ana"' in printed and "SSL connection" in printed
    assert len(answers.asked) == 3


def test_a_wrong_password(served: Served) -> None:
    said = psql(served, "", "wrong wrong")[1]
    assert 'FATAL:  password authentication failed for user "ana"' in said
    assert 'database "other" does not exist' in psql(served, "", dbname="other")[1]


def test_a_batch_is_one_statement_with_all_its_answers(served: Served, answers: Answers) -> None:
    """Its semicolons stand in brackets, so psql sends it whole, and shows every answer."""
    printed, said = psql(served, "DP BATCH (SELECT n, region;\n  SELECT i);\nSELECT d;")
    assert printed == "n|region\n42|norð\n(1 row)\ni\n-1\n(1 row)\nd\n2025-01-02\n(1 row)\n"
    assert said == "NOTICE:  spent ε 0.5\n" * 2 and len(answers.asked) == 2
