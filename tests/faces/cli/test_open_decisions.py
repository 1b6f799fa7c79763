"""A policy in which a decision is open answers nobody, at any door; made-up rows alone can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest
from ruamel.yaml import YAML

from dpsql.api.connection import connect
from dpsql.core.privacy_loss import NO_LOSS
from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import CannotOpen, Rejected
from dpsql.faces.audit.audited_query import audit_query
from dpsql.faces.editor.file_settings import FileSettings, look
from dpsql.faces.server.open_databases import MadeUp, opened, planned
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from dpsql.service.checks.check import check
from dpsql.service.open_data import open_data
from dpsql.service.service import Service
from tests.support.command_line import Call
from tests.support.drafts import decide

COUNT = "SELECT COUNT(*) AS n FROM visits"
POLICY = """version: 1
name: clinic
database: clinic.duckdb
tables:
  visits:
    unit: {column: patient}   # DECIDE: whose rows are these?
    max_rows_per_unit: 2
    columns: {patient: {type: bigint}, cost: {type: double, bounds: [0, 9]}}
defaults: {epsilon: 0.1}
budgets: {total: {epsilon: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with duckdb.connect("clinic.duckdb") as con:
        con.execute("CREATE TABLE visits AS SELECT i % 50 AS patient, 1.0::DOUBLE AS cost FROM range(100) AS t(i)")
    Path("draft.yaml").write_text(POLICY, encoding="utf-8")
    Path("policy.yaml").write_text(POLICY.replace("DECIDE: ", ""), encoding="utf-8")
    return tmp_path


def codes(ask: Callable[[], Any]) -> list[str]:
    with pytest.raises(CannotOpen) as refusal:
        ask()
    return [d.code for d in refusal.value.diagnostics]


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "draft.yaml", COUNT),
        ("explain", "draft.yaml", COUNT),
        ("shell", "draft.yaml", "-c", COUNT),
        ("draft.yaml", "-c", COUNT),
        ("check", ".", "--policy", "draft.yaml"),
        ("audit", "draft.yaml", COUNT, "--runs", "100"),
        ("serve", "draft.yaml"),
        ("serve", "policy.yaml", "draft.yaml", "--made-up", "beside"),
        ("policy", "suggest", "draft.yaml"),
        ("policy", "diff", "draft.yaml", "policy.yaml"),
        ("policy", "diff", "policy.yaml", "draft.yaml"),
    ],
)
def test_no_command_answers_under_a_draft(arguments: tuple[str, ...], folder: Path, dpsql: Call) -> None:
    (folder / "one.sql").write_text(COUNT, encoding="utf-8")
    (folder / "users.yaml").write_text("users: {}\n", encoding="utf-8")
    if arguments[:2] == ("policy", "diff"):  # which looks at a ledger
        assert dpsql("query", "policy.yaml", COUNT).status == 0
    before = {path.name for path in folder.iterdir()}
    done = dpsql(*arguments)
    assert done.status == 2 and done.codes == {"DP016"} and done.out == "", done.err
    assert "line 6 is not decided" in done.err and "--draft" in done.err
    assert {path.name for path in folder.iterdir()} - {"state"} == before - {"state"}


def test_no_interface_answers_under_a_draft(folder: Path) -> None:
    policy = load_policy("draft.yaml")
    engine = open_data("policy.yaml", None, None, None, None)[1]
    with duckdb.connect() as own:
        for ask in (
            lambda: connect("draft.yaml"),
            lambda: connect(policy, ledger=":memory:"),
            lambda: connect(own, policy=policy),
            lambda: check(COUNT, "draft.yaml"),
            lambda: Service(policy, engine),
            lambda: audit_query(policy, Source(COUNT)),
        ):
            assert codes(ask) == ["DP016"]
    engine.close()
    Path("clinic.duckdb").unlink()
    assert codes(lambda: connect("draft.yaml")) == ["DP016"], "said before anything is opened"


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        (POLICY, True),
        (POLICY.replace("DECIDE: whose rows are these?", "DECIDE"), True),
        (POLICY.replace("# DECIDE", "#DECIDE"), True),
        (POLICY.replace("# DECIDE", "# who is it? DECIDE"), True),
        (POLICY.replace("DECIDE", "decided") + "# DECIDE", True),
        (POLICY.replace("DECIDE", "decided"), False),
        (POLICY.replace("DECIDE", "UNDECIDED?"), False),
        (POLICY.replace("DECIDE", "decided") + "draft: true\n", True),
        (POLICY.replace("DECIDE", "decided") + "draft: false\n", False),
    ],
)
def test_what_is_a_draft(text: str, is_open: bool, folder: Path) -> None:
    policy = Policy.from_yaml(text, directory=folder)
    assert [d.code for d in policy.warnings] == ["DP016"] * is_open
    if is_open:
        assert codes(lambda: connect(policy, ledger=":memory:")) == ["DP016"]
    else:
        connect(policy, ledger=":memory:").close()


def test_a_draft_without_its_comments_is_one_still(folder: Path, dpsql: Call) -> None:
    """A tool that reads YAML and writes it again loses every DECIDE."""
    drafted = dpsql("policy", "init", "clinic.duckdb").out
    document = YAML(typ="safe", pure=True).load(drafted)
    assert "DECIDE" in drafted and "DECIDE" not in str(document)
    assert codes(lambda: connect(Policy.from_dict(document))) == ["DP016"]


def test_the_mark_is_no_part_of_what_is_measured(folder: Path) -> None:
    assert load_policy("draft.yaml").hash == load_policy("policy.yaml").hash
    assert Policy.from_yaml(POLICY + "draft: true\n").hash == load_policy("policy.yaml").hash


def test_a_custodian_looks_at_data_under_a_draft(folder: Path, dpsql: Call) -> None:
    for arguments in (("check", "draft.yaml"), ("check", "draft.yaml", "--data")):
        done = dpsql("policy", *arguments)
        assert done.status == 0 and "warning[DP016]" in done.err and "policy clinic is valid" in done.out
    for arguments in (("show", "draft.yaml"), ("audit", "draft.yaml"), ("verify", "draft.yaml")):
        assert dpsql("policy", *arguments).status == 0
    assert not (folder / "clinic.ledger.sqlite").exists()


def test_made_up_rows_are_asked_for_nothing_and_no_data_is_opened(folder: Path, dpsql: Call) -> None:
    (folder / "one.sql").write_text(COUNT, encoding="utf-8")
    Path("clinic.duckdb").unlink()
    for policy in ("draft.yaml", "policy.yaml"):
        done = dpsql("query", policy, COUNT, "--draft")
        assert done.status == 0 and "spent nothing; free: the data is made up" in done.out
        assert "free: the data is made up" in dpsql("shell", policy, "--draft", "-c", COUNT).out
        assert "free: the data is made up" in dpsql("explain", policy, COUNT, "--draft").out
        assert dpsql("check", "one.sql", "--policy", policy, "--draft").status == 0
    assert dpsql("query", "draft.yaml", "SELECT * FROM visits", "--draft").codes == {"DP110"}
    assert not (folder / "clinic.ledger.sqlite").exists()


def test_a_connection_to_made_up_rows(folder: Path) -> None:
    Path("clinic.duckdb").unlink()
    with connect("draft.yaml", draft=True) as con:
        assert con.execute(COUNT, epsilon=1).spent == NO_LOSS and con.budget.spent == NO_LOSS
        assert "made up" in str(con.sql(COUNT).explain(epsilon=1))
    assert check(COUNT, "draft.yaml", draft=True) == []
    with duckdb.connect() as own, pytest.raises(Rejected):
        connect(own, draft=True)


def test_a_check_of_a_draft_leaves_no_results_for_others(folder: Path, dpsql: Call) -> None:
    (folder / "one.sql").write_text(COUNT, encoding="utf-8")
    (folder / "dpsql.toml").write_text('policy = "draft.yaml"\n', encoding="utf-8")
    assert dpsql("check", "--draft").status == 0
    assert dpsql("check").codes == {"DP016"}


def test_an_editor_says_that_the_policy_is_a_draft(folder: Path) -> None:
    (folder / "dpsql.toml").write_text('policy = "draft.yaml"\n', encoding="utf-8")
    found = look(FileSettings(), folder / "one.sql", COUNT)
    assert [d.code for d in found.trouble] == ["DP016"] and not found.findings
    decide_only(folder)
    assert not look(FileSettings(), folder / "one.sql", COUNT).trouble


def decide_only(folder: Path) -> None:
    (folder / "draft.yaml").write_text(POLICY.replace("DECIDE", "decided"), encoding="utf-8")


@pytest.mark.parametrize("made_up", ["none", "beside"])
def test_a_server_starts_no_worker_for_a_draft(made_up: MadeUp, folder: Path) -> None:
    assert codes(lambda: planned(["policy.yaml", "draft.yaml"], (), made_up)) == ["DP016"]


def test_a_server_of_made_up_rows_alone_has_a_draft(folder: Path) -> None:
    Path("clinic.duckdb").unlink()

    async def asked() -> None:
        async with AsyncExitStack() as stack:
            databases, _ = await opened(planned(["draft.yaml"], (), "only"), stack)
            assert [database.name for database in databases.by_name.values()] == ["clinic_made_up"]

    asyncio.run(asked())


def test_a_draft_that_is_decided_answers(folder: Path, dpsql: Call) -> None:
    assert dpsql("policy", "init", "clinic.duckdb", "-o", "own.yaml").status == 0
    assert dpsql("query", "own.yaml", COUNT).codes == {"DP016"}
    decide("own.yaml")
    assert dpsql("query", "own.yaml", COUNT).status == 0
