"""Every page of diagnostics is printed, and its commands and its Python do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb
import pytest

import dpsql
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.errors import Error
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.cli.main import main
from dpsql.policy.load import load_policy
from tests.meta.test_page_commands import LANGUAGE
from tests.meta.test_pages import SHARED_POLICY, read_example

PYTHON = [code for code, language in LANGUAGE.items() if language == "python"]
SHELL = [code for code, language in LANGUAGE.items() if language == "sh"]
FOUND = re.compile(r"^(?:error|warning)\[(DP\d{3})\]", re.MULTILINE)
HEREDOC = re.compile(r"cat > (\S+) <<'END'\n(.*?)^END\n", re.DOTALL | re.MULTILINE)
VALUES = {"bigint": "i", "integer": "i % 50 + 1", "double": "i % 90", "boolean": "i % 3 = 0", "varchar": "'k' || i",
          "date": "DATE '2024-01-01' + (i % 300)::INT"}  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fifty rows in each table of the pages' policy."""
    path = tmp_path_factory.mktemp("pages") / "clinic.duckdb"
    with duckdb.connect(str(path)) as db:
        for name, table in load_policy(SHARED_POLICY).tables.items():
            columns = ", ".join(
                f"({VALUES[str(c.type).lower()]})::{c.type} AS {c.name}" for c in table.columns.values()
            )
            db.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM range(50) AS t(i)")
    return path


@pytest.fixture
def folder(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the policy, its data and some queries; ledgers are this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "clinic").mkdir()
    monkeypatch.chdir(tmp_path / "clinic")
    Path("clinic.duckdb").symlink_to(database)
    Path("clinic.yaml").write_text(SHARED_POLICY.read_text(encoding="utf-8"), encoding="utf-8")
    Path("queries").mkdir()
    Path("queries/patients.sql").write_text("SELECT COUNT(*) AS n FROM patients;\n", encoding="utf-8")
    return tmp_path / "clinic"


@pytest.mark.parametrize("role", ["rejected", "accepted"])
@pytest.mark.parametrize("code", PYTHON)
def test_python(code: str, role: str, folder: Path) -> None:
    blocks = read_example(code).blocks
    text = Path("clinic.yaml").read_text(encoding="utf-8")
    budgets = blocks.get(("yaml", "budgets"))
    if budgets is not None:
        text = text[: text.index("defaults:")] + budgets
        Path("clinic.yaml").write_text(text, encoding="utf-8")
    analyst = "ana" if budgets is not None and "ana:" in budgets else None
    with dpsql.connect("clinic.yaml", analyst=analyst) as con:
        if role == "accepted":
            exec(blocks["python", role], {"con": con, "dpsql": dpsql})
            return
        with pytest.raises(Error) as refusal:
            exec(blocks["python", role], {"con": con, "dpsql": dpsql})
    assert {d.code for d in refusal.value.diagnostics} == {code}


@pytest.mark.parametrize("role", ["rejected", "accepted"])
@pytest.mark.parametrize("code", SHELL)
def test_commands(code: str, role: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = read_example(code).blocks["sh", role]
    for name, content in HEREDOC.findall(text):
        Path(name).write_text(content, encoding="utf-8")
    commands = [shlex.split(line) for line in HEREDOC.sub("", text).splitlines() if line]
    assert commands and all(command[0] == "dpsql" for command in commands)
    statuses = [main(command[1:]) for command in commands]
    shown = capsys.readouterr()
    found = set(FOUND.findall(shown.out + shown.err))
    assert found == ({code} if role == "rejected" else set()), shown.out + shown.err
    assert (role == "accepted") == (statuses[-1] == 0)


@pytest.mark.parametrize("code", CODES)
def test_every_page_is_printed(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", code.lower()]) == 0
    assert capsys.readouterr().out == load_page(code)
