"""`dpsql diff` in real repositories: what became of each query, whose policy counted, and what is worse."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsql.faces.cli.main import main

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
]

POLICY = Path(__file__).resolve().parents[3] / "fixtures" / "policies" / "pages.yaml"
QUERIES = """\
-- name: visits_by_ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward;
SELECT AVG(age) AS a FROM patients;
SELECT SUM(amount) AS s FROM orders
"""


def git(folder: Path, *arguments: str) -> None:
    """Nothing of the user's own configuration counts."""
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder),
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | own
    subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=environment, timeout=120
    )


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit."""
    root = tmp_path_factory.mktemp("diff") / "repository"
    (root / "queries").mkdir(parents=True)
    shutil.copy(POLICY, root / "clinic.yaml")
    (root / "queries" / "q.sql").write_text(QUERIES, encoding="utf-8")
    (root / "queries" / "refused.sql").write_text("SELECT SUM(fee) FROM visits\n", encoding="utf-8")
    (root / "queries" / "ü gone.sql").write_text("SELECT COUNT(*) AS n FROM patients\n", encoding="utf-8")
    (root / "notes.txt").write_text("SELECT", encoding="utf-8")
    git(root, "init", "-q", "-b", "main", ".")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "queries")
    return root


@pytest.fixture
def repository(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "clone"
    shutil.copytree(committed, root)
    monkeypatch.chdir(root)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    # A folder of somebody else's, as in a container, must not be what these tests are about.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")
    return root


@pytest.fixture
def diff(repository: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str, policy: str = "clinic.yaml") -> tuple[int, str, str]:
        status = main(["diff", "--against", "HEAD", "--policy", policy, *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def records(diff: Callable[..., tuple[int, str, str]], *arguments: str) -> list[dict[str, Any]]:
    status, out, err = diff("--output-format", "json", *arguments)
    assert status == 0, err
    return list(json.loads(out)["queries"])


def write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")


Diff = Callable[..., tuple[int, str, str]]


def test_values_of_parameters(diff: Diff) -> None:
    write("queries/new.sql", "SELECT COUNT(*) AS n FROM patients WHERE age > $lo\n")
    assert [q["path"] for q in records(diff)] == ["queries/new.sql"]
    assert "DP013" in diff()[1] and "DP013" not in diff("--parameter", "lo=30")[1]
    write("queries/new.sql", "-- dpsql: parameters(lo = 30)\n" + Path("queries/new.sql").read_text(encoding="utf-8"))
    assert "DP013" not in diff()[1]


def test_nothing_has_changed(diff: Diff) -> None:
    status, out, _ = diff("--fail-on-worse")
    assert status == 0 and "the same policy" in out and out.endswith("5 unchanged; none worse\n")


def test_a_change_of_the_policy_alone(diff: Diff) -> None:
    text = Path("clinic.yaml").read_text()
    write("clinic.yaml", text.replace("max_rows_per_group: 4", "max_rows_per_group: 80"))
    status, out, _ = diff("--fail-on-worse")
    assert status == 1
    assert "the policy clinic.yaml has changed, too" in out
    assert "queries/q.sql:2 (visits_by_ward)  changed  WORSE\n" in out
    assert "    sensitivity of n                   12 → 20\n" in out and "rows per patient  " in out
    assert "expected error of n  " in out and out.endswith("1 changed, 4 unchanged; 1 worse\n")
    assert diff()[0] == 0


def test_a_lower_limit_is_a_bias(diff: Diff) -> None:
    """Less noise, and more that is missing: no interval holds that."""
    text = Path("clinic.yaml").read_text()
    write("clinic.yaml", text.replace("max_rows_per_group: 4", "max_rows_per_group: 1"))
    status, out, _ = diff("--fail-on-worse")
    assert status == 1 and "rows per patient                                12 → 3\n" in out
    assert "bias: at most rows of one patient in one group  4 → 1\n" in out and out.endswith("; 1 worse\n")
    (record,) = records(diff)
    assert record["worse"] == ["bias: limit on rows of one patient in one group"]
    assert record["limits"]["rows of one patient in one group"] == {"old": 4, "new": 1}


def test_narrower_bounds_are_a_bias(diff: Diff) -> None:
    text = Path("clinic.yaml").read_text()
    changed = text.replace("bounds: [0, 110]", "bounds: [10, 110]")
    assert changed != text
    write("clinic.yaml", changed)
    assert {tuple(r["worse"]) for r in records(diff)} == {("bias: bounds of age",)}
    assert "bias: bounds of age  [0, 110] → [10, 110]\n" in diff()[1]


def test_each_status(diff: Diff) -> None:
    write("queries/q.sql", QUERIES.replace("AVG(age) AS a FROM patients", "MAX(age) AS a FROM patients"))
    write("queries/refused.sql", "SELECT SUM(CLIP(fee, 0, 10)) FROM visits\n")
    Path("queries/ü gone.sql").unlink()
    write("queries/new.sql", "SELECT COUNT(*) FROM orders;\nSELECT * FROM patients")
    found = {(r["path"], r["line"]): (r["status"], r["worse"]) for r in records(diff)}
    assert found == {
        ("queries/new.sql", 1): ("added", []),
        ("queries/new.sql", 2): ("added", ["refused"]),
        ("queries/q.sql", 3): ("newly refused", ["refused"]),
        ("queries/refused.sql", 1): ("newly accepted", []),
        ("queries/ü gone.sql", 1): ("removed", []),
    }


def test_queries_are_known_by_name_text_and_likeness(diff: Diff) -> None:
    """Moved about in their file, renamed, and rewritten; the name outweighs a likeness."""
    write(
        "queries/q.sql",
        "SELECT sum( amount ) AS s -- the same\nFROM orders;\n"
        "SELECT ward, COUNT(*) AS m FROM visits GROUP BY ward;\n"
        "-- name: visits_by_ward\nSELECT COUNT(*) AS n FROM visits",
    )
    found = {r["line"]: r for r in records(diff, "queries/q.sql") if r["status"] != "removed"}
    assert found[5]["old_line"] == 2 and found[5]["name"] == "visits_by_ward" and found[5]["status"] == "changed"
    assert 1 not in found
    assert found[3]["status"] == "added" and found[3]["old_line"] is None


def test_a_file_that_was_moved(diff: Diff) -> None:
    Path("queries/q.sql").rename("queries/renamed.sql")
    status, out, _ = diff("--fail-on-worse")
    assert status == 0 and out.count("moved from") == 3 and "removed" not in out


def test_a_cheaper_query_may_have_a_larger_error(diff: Diff) -> None:
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5)"
    write("queries/q.sql", QUERIES.replace("SELECT SUM", f"SELECT {clause} SUM"))
    (cheaper,) = records(diff, "queries/q.sql")
    assert cheaper["worse"] == [] and cheaper["cost"]["orders"]["new"]["epsilon"] == 0.5
    write("queries/q.sql", QUERIES.replace("SELECT SUM", f"SELECT {clause.replace('0.5', '2')} SUM"))
    (dearer,) = records(diff, "queries/q.sql")
    assert dearer["worse"] == ["cost of each orders"]


def test_markdown_for_a_comment(diff: Diff) -> None:
    text = Path("clinic.yaml").read_text()
    write("clinic.yaml", text.replace("max_rows_per_group: 4", "max_rows_per_group: 80"))
    write("queries/new.sql", 'SELECT SUM(fee) AS "a|b<c" FROM visits')
    status, out, _ = diff("--output-format", "markdown")
    assert status == 0 and out.startswith("### Privacy of the queries\n")
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert all(line.count("|") == 5 for line in table)
    assert any("| sensitivity of `n` | 12 → 20 |" in line and not line.startswith("| `") for line in table)
    assert "| `queries/new.sql:1` | ⚠ added | refused | DP201 `" in out


def test_names_of_a_branch_are_no_markdown(diff: Diff) -> None:
    """The comment is written by whoever runs CI: an alias must not mention people or load pictures in its name."""
    write("queries/q.sql", QUERIES.replace("AS n", 'AS "![x](http://evil.example/p.png) @org/team"'))
    status, out, _ = diff("--output-format", "markdown")
    assert status == 0 and "| column `![x](http://evil.example/p.png) @org/team` | new |" in out


def test_the_policy_is_not_in_the_commit(diff: Diff, tmp_path: Path) -> None:
    shutil.copy("clinic.yaml", "other.yaml")
    assert "other.yaml is not in that commit" in diff(policy="other.yaml")[1]
    outside = tmp_path / "outside.yaml"
    shutil.copy("clinic.yaml", outside)
    status, out, _ = diff(policy=str(outside))
    assert status == 0 and "is not in that commit" in out


def test_the_policy_of_the_commit_is_not_valid(diff: Diff, repository: Path) -> None:
    good = Path("clinic.yaml").read_text()
    write("clinic.yaml", "version: 1\n")
    git(repository, "commit", "-q", "-a", "-m", "broken")
    write("clinic.yaml", good)
    status, out, _ = diff()
    assert status == 0 and "clinic.yaml is not valid in that commit" in out


def test_from_a_folder_below_and_with_patterns(diff: Diff, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "queries")
    Path("refused.sql").unlink()
    (removed,) = records(lambda *a: diff(*a, policy="../clinic.yaml"))
    assert removed["path"] == "refused.sql" and removed["status"] == "removed"
    (removed,) = records(lambda *a: diff(*a, policy="../clinic.yaml"), "re*.sql")
    assert removed["path"] == "refused.sql"
    assert records(lambda *a: diff(*a, policy="../clinic.yaml"), "q.sql") == []


def test_a_folder_that_is_gone(diff: Diff) -> None:
    shutil.rmtree("queries")
    assert {r["status"] for r in records(diff, "queries")} == {"removed"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--against", "nowhere"], "no commit of this repository"),
        (["--against", "--output=x"], "no commit of this repository"),
        (["--against", ""], "no commit of this repository"),
        (["--policy", "nowhere.yaml"], "there is no such file"),
        (["-"], "standard input has no older version"),
        (["nowhere"], "no *.sql file in nowhere, now or then"),
        (["--dialect", "klingon"], "unknown SQL dialect"),
        (["--output-format", "html"], "--output-format"),
    ],
)
def test_what_cannot_be_compared_is_2(diff: Diff, arguments: list[str], words: str) -> None:
    status, out, err = diff(*arguments)
    assert (status, out) == (2, "") and words in err and "Traceback" not in err
    assert not Path("x").exists()


def test_without_a_repository(diff: Diff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    status, _, err = diff()
    assert status == 2 and "is not in a git repository" in err


def test_without_git(diff: Diff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    status, _, err = diff()
    assert status == 2 and "git is not installed" in err


def test_templates_are_rendered_on_both_sides(diff: Diff, repository: Path) -> None:
    template = "\n\n{% set column = 'cost' %}SELECT SUM(CLIP({{ column }}, 0, {{ most }})) AS s FROM visits\n"
    write("queries/template.sql", template)
    write("dpsql.toml", 'policy = "clinic.yaml"\ntemplater = "jinja"\n[templates]\nmost = 10\n')
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "a template")
    write("queries/template.sql", template.replace("{{ most }}", "{{ most * 20 }}"))
    (changed,) = records(diff)
    assert (changed["path"], changed["line"], changed["status"]) == ("queries/template.sql", 3, "changed")
    assert changed["columns"]["s"]["sensitivity"] == {"old": 200.0, "new": 4000.0}


def test_a_dbt_project_is_refused(diff: Diff) -> None:
    write("dpsql.toml", 'dbt = "."\n')
    status, _, err = diff()
    assert status == 2 and "what dbt compiled of older models is not there" in err


@pytest.mark.skipif(os.name == "nt", reason="links need rights, and names cannot hold a line end")
def test_links_and_odd_names_are_the_same_files_in_both_versions(diff: Diff, repository: Path) -> None:
    """A link is kept in git as the path it leads to, which is no query; it may lead to a file that is left out."""
    (repository / "other").mkdir()
    write("other/bad.ddl", "SELECT SUM(fee) AS linked FROM visits\n")
    for name, target in {"a.sql": "../other/bad.ddl", "b.sql": "a.sql", "gone.sql": "/nowhere.sql"}.items():
        os.symlink(target, repository / "queries" / name)
    write("queries/two\nlines.sql", "SELECT COUNT(*) AS odd FROM patients\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "links")
    os.unlink("queries/gone.sql")  # nothing that can be read now
    assert records(diff) == records(diff, "queries/a.sql", "queries/two\nlines.sql") == []
    write("other/bad.ddl", "SELECT SUM(CLIP(fee, 0, 5)) AS linked FROM visits\n")
    found = {q["path"]: q["status"] for q in records(diff)}
    assert found == {"queries/a.sql": "newly accepted", "queries/b.sql": "newly accepted"}


@pytest.mark.skipif(os.name == "nt", reason="the hook is a shell script")
def test_in_a_hook_of_a_linked_worktree(repository: Path, tmp_path: Path) -> None:
    """Git tells such a hook GIT_DIR alone, and any folder would count as the top of the repository."""
    linked, said = tmp_path / "linked", tmp_path / "said.json"
    git(repository, "worktree", "add", "-q", str(linked), "-b", "other")
    (linked / "queries" / "new.sql").write_text("SELECT COUNT(*) AS n FROM visits", encoding="utf-8")
    git(linked, "add", ".")
    command = [sys.executable, "-m", "dpsql", "diff", "--against", "HEAD", "--policy", "../clinic.yaml"]
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    line = " ".join(map(shlex.quote, [*command, "--output-format", "json"]))
    hook.write_text(f"#!/bin/sh\ncd queries && {line} > {shlex.quote(str(said))}\n", encoding="utf-8")
    hook.chmod(0o755)
    git(linked, "commit", "-q", "-m", "new")
    report = json.loads(said.read_text(encoding="utf-8"))
    assert report["policy"]["in_commit"]
    assert [(q["path"], q["status"], q["old_path"]) for q in report["queries"]] == [("new.sql", "added", None)]
