"""Names that want to be commands to what runs CI, and rows that want to be SQL to the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dpsql.faces.cli.main import main
from tests.faces.test_around_a_query import GIT
from tests.support.checked_files import POLICY


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs git in an empty repository, the current folder. Nothing of the user's own configuration counts."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_COMMITTER_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
    }  # fmt: skip
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=120)

    run("init", "-q", "-b", "main", ".")
    return run


@GIT
def test_probe_a_name_is_no_command_to_what_runs_ci(
    git: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """GitHub's runner obeys a line that begins with `::`: no name of a file, table or query begins one."""
    shutil.copy(POLICY, tmp_path / "p.yaml")
    git("add", ".")
    git("commit", "-q", "-m", "policy")
    (tmp_path / "evil\n::error file=x::owned.sql").write_text('SELECT COUNT(*) FROM "t\n::stop-commands::x"')
    for form in ("text", "markdown", "json"):
        capsys.readouterr()
        assert main(["diff", "--against", "HEAD", "--policy", "p.yaml", "--output-format", form]) == 0
        out = capsys.readouterr().out
        assert "owned.sql" in out and not any(line.lstrip().startswith("::") for line in out.splitlines()), out
    for form in ("full", "concise", "json", "github", "sarif", "gitlab"):
        capsys.readouterr()
        assert main(["check", ".", "--policy", "p.yaml", "--no-cache", "--output-format", form]) == 1
        lines = capsys.readouterr().out.splitlines()
        commands = [line for line in lines if line.lstrip().startswith("::")]
        assert all(line.startswith("::error file=evil ") for line in commands) and len(commands) == (form == "github")


def test_probe_the_shell_reads_no_rows_as_sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A refusal quotes the line that it is about: whoever has nothing but the shell would read the table so."""
    (tmp_path / "rows.csv").write_text("1,of-one-person\n", encoding="utf-8")
    (tmp_path / "link.sql").symlink_to("rows.csv")
    os.link(tmp_path / "rows.csv", tmp_path / "hard.sql")
    (tmp_path / "fine.sql").write_text("SELECT COUNT(*) AS n FROM t;", encoding="utf-8")
    reader = "read_csv('r*.csv', auto_detect = false, header = false, columns = {'pid': 'BIGINT', 'name': 'VARCHAR'})"
    (tmp_path / "p.yaml").write_text(
        f'version: 1\nname: p\nledger: l.db\ntables:\n  t:\n    source: "{reader}"\n    unit: {{column: pid}}\n'
        "    max_rows_per_unit: 1\n    columns: {pid: {type: bigint}, name: {type: varchar}}\n"
        "budgets: {total: {epsilon: 9}}\n",
        encoding="utf-8",
    )
    policy = str(tmp_path / "p.yaml")
    for name in ("rows.csv", "link.sql", "hard.sql", f"../{tmp_path.name}/rows.csv"):
        assert main(["shell", policy, "--epsilon", "1", "-c", f"\\i '{tmp_path / name}'"]) != 0
        out, err = capsys.readouterr()
        assert "error[DP906]" in err and "of-one-person" not in out + err
    assert main(["shell", policy, "--epsilon", "1", "-c", f"\\i '{tmp_path / 'fine.sql'}'"]) == 0
