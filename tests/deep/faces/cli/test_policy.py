"""`dpsql policy init` drafts a policy that loads and answers, and `dpsql rule` has a page for every code."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.policy.load import load_policy
from tests.support.command_line import Call
from tests.support.drafts import as_decided, decide


def test_init_drafts_a_policy_that_loads_and_answers(
    dpsql: Call, clinic_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a database and from files, with paths relative to the draft; no value of the data is in it."""
    data = tmp_path / "data"
    (data / "parts").mkdir(parents=True)
    with duckdb.connect(str(data / "shop.duckdb")) as con:
        con.execute("CREATE TABLE people (id BIGINT PRIMARY KEY, secret VARCHAR, income DOUBLE)")
        con.execute("INSERT INTO people VALUES (4711, 'sesame', 31337.5)")
        for number in (1, 2):
            con.execute(f"COPY people TO '{data / 'parts' / f'{number}.parquet'}'")
        con.execute(f"COPY people TO '{data / '2024 people.csv'}'")
    monkeypatch.chdir(tmp_path)
    arguments = ["data/shop.duckdb", "data/parts/*.parquet", "data/2024 people.csv"]
    done = dpsql("policy", "init", *arguments, "-o", "data/draft.yaml")
    assert done.status == 0 and done.out == "" and "wrote data/draft.yaml" in done.err
    text = (data / "draft.yaml").read_text(encoding="utf-8")
    assert not any(value in text for value in ("4711", "sesame", "31337"))
    assert 'database: "shop.duckdb"' in text and "'parts/*.parquet'" in text
    policy = load_policy(data / "draft.yaml")
    assert set(policy.tables) == {"people", "parts", "t_2024_people"} and policy.name == "shop"
    assert dpsql("policy", "check", "data/draft.yaml", "--data").status == 0
    decide(data / "draft.yaml")
    for table in policy.tables:
        assert dpsql("query", "data/draft.yaml", f"SELECT COUNT(*) FROM {table}", "--epsilon", "0.1").status == 0
    again = dpsql("policy", "init", *arguments, "-o", "data/draft.yaml")
    assert again.status == 1 and "exists already" in again.err
    assert (data / "draft.yaml").read_text(encoding="utf-8") == as_decided(text)
    done = dpsql("policy", "init", *arguments, "--name", "mine")
    assert "name: mine\n" in done.out and "'data/parts/*.parquet'" in done.out
    assert dpsql("policy", "init", "data/shop.duckdb", clinic_data / "clinic.duckdb").codes == {"DP903"}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page(code: str, dpsql: Call) -> None:
    for spelling in (code, code.lower(), code[2:]):
        done = dpsql("rule", spelling)
        assert done.status == 0 and done.out.startswith(f"# {code}: ")
