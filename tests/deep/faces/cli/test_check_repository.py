"""`dpsql check` over a repository: selections, ignores, reports, cache and processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faces.cli.test_check_repository import GOOD, NO_BOUNDS, NO_KEY, NOISY, concise, configure
from tests.support.command_line import Call

DEAR = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 5) COUNT(*) AS n FROM patients"


@pytest.fixture
def repository(policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a configuration, and the current folder in it."""
    folder = tmp_path / "repository"
    (folder / "queries").mkdir(parents=True)
    (folder / "policy.yaml").write_bytes((policies / "pages.yaml").read_bytes())
    (folder / "dpsql.toml").write_text('policy = "policy.yaml"\n')
    (folder / "queries" / "good.sql").write_text(f"{GOOD};\n")
    monkeypatch.chdir(folder)
    return folder


def test_select_ignore_and_files(dpsql: Call, repository: Path) -> None:
    (repository / "queries" / "a.sql").write_text(f"{NO_KEY};\n{NO_BOUNDS};\n")
    (repository / "legacy").mkdir()
    (repository / "legacy" / "b.sql").write_text(f"{NO_KEY};\n{NO_BOUNDS};\n")
    a, b = ["queries/a.sql:1 DP301", "queries/a.sql:2 DP201"], ["legacy/b.sql:1 DP301", "legacy/b.sql:2 DP201"]
    assert concise(dpsql) == [*b, *a]
    assert concise(dpsql, "--ignore", "DP3") == [b[1], a[1]]
    assert concise(dpsql, "--select", "DP5") == [b[1], a[1]]
    configure(repository, 'per-file-ignores = {"legacy/" = ["DP301"]}')
    assert concise(dpsql) == [b[1], *a]
    assert concise(dpsql, "--stdin-filename", "legacy/new.sql", stdin=NO_KEY.encode()) == []
    assert concise(dpsql, "--stdin-filename", "new.sql", "-", stdin=NO_KEY.encode()) == ["new.sql:1 DP301"]
    configure(repository, 'exclude = ["legacy"]')
    assert concise(dpsql) == a
    assert concise(dpsql, "legacy/b.sql") == b and concise(dpsql, "legacy/b.sql", "queries", "--force-exclude") == a
    named = ["--stdin-filename", "legacy/b.sql", "--allow-empty"]
    assert concise(dpsql, *named, stdin=NO_KEY.encode()) == ["legacy/b.sql:1 DP301"]
    assert concise(dpsql, *named, "--force-exclude", stdin=NO_KEY.encode()) == []
    configure(repository, 'ignore = ["DP2"]')
    assert dpsql("check").codes == {"DP910"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what it tracks")
def test_gitignore(dpsql: Call, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (repository / "queries" / "a.sql").write_text(f"{NO_BOUNDS};\n")
    (repository / ".gitignore").write_text("a.sql\n")
    bad = ["queries/a.sql:1 DP201"]
    assert concise(dpsql) == bad  # no repository: nobody knows what is tracked
    subprocess.run(["git", "init", "-q", "."], check=True, timeout=120)
    assert concise(dpsql) == [] and concise(dpsql, "--no-gitignore") == bad
    assert concise(dpsql, "**/*.sql") == [] and concise(dpsql, "**/*.sql", "--no-gitignore") == bad
    subprocess.run(["git", "add", "--force", "queries/a.sql"], check=True, timeout=120)
    assert concise(dpsql) == bad


def test_limits_comments_statistics_and_zero(dpsql: Call, repository: Path) -> None:
    configure(repository, "max-epsilon = 1")
    (repository / "queries" / "a.sql").write_text(
        f"{DEAR};\n{DEAR}; -- dpsql: ignore[DP412] yearly report\n-- dpsql: ignore[DP412] for nothing\n{GOOD};\n{DEAR};"
    )
    assert concise(dpsql) == ["queries/a.sql:1 DP412", "queries/a.sql:3 DP902", "queries/a.sql:5 DP412"]
    done = dpsql("check", "--statistics")
    assert done.status == 1
    assert [line.split()[:2] for line in done.out.splitlines()] == [["2", "DP412"], ["1", "DP902"]]
    done = dpsql("check", "--statistics", "--output-format", "json", "--exit-zero")
    assert done.status == 0 and [(r["code"], r["count"]) for r in json.loads(done.out)] == [("DP412", 2), ("DP902", 1)]
    assert concise(dpsql, "--max-epsilon", "5") == ["queries/a.sql:2 DP902", "queries/a.sql:3 DP902"]
    done = dpsql("check", "--budget-report")
    assert "queries/a.sql:5" in done.out and "the first 2 fit" in done.out
    reason = [line.split(":", 2)[1:] for line in done.err.splitlines()[:-1]]
    assert done.err.splitlines()[-1].startswith("checked 5 statements")
    assert done.status == 1 and [line[0] for line in reason] == ["1", "3", "5"] and "DP412" in reason[0][1]
    done = dpsql("check", "--budget-report", "--output-format", "json")
    assert done.status == 1 and "DP412" in done.err and json.loads(done.out)["budgets"][0]["fitting"] == 2
    done = dpsql("check", "--budget-report", "--exit-zero", "--output-format", "json")
    assert done.status == 0 and not done.err


def test_a_cache_changes_no_output(dpsql: Call, repository: Path) -> None:
    (repository / "queries" / "a.sql").write_text(f"{NO_BOUNDS};\n{NOISY};\n-- dpsql: ignore[DP301] why\n{NO_KEY};")
    for format in ("full", "json", "sarif"):
        plain = dpsql("check", "--output-format", format, "--no-cache")
        assert not (repository / ".dpsql_cache").exists() or format != "full"
        runs = {dpsql("check", "--output-format", format) for _ in range(2)}
        assert runs == {plain} and plain.status == 1
    assert (repository / ".dpsql_cache" / ".gitignore").exists()
    assert dpsql("check", "--cache-dir", "elsewhere").status == 1 and (repository / "elsewhere").is_dir()
    text = (repository / "policy.yaml").read_text()
    (repository / "policy.yaml").write_text(text.replace("fee: {type: double}", "fee: {type: double, bounds: [0, 9]}"))
    assert dpsql("check", "--output-format", "concise").out.count("DP201") == 0  # another policy, other results
    (repository / "policy.yaml").write_text("version: 2\n")
    assert dpsql("check").codes == {"DP003"}


@pytest.mark.processes
def test_processes_and_the_engine(dpsql: Call, process: Call, repository: Path) -> None:
    """Several hundred files in processes of their own, as users start it: the output of one process, no engine."""
    for number in range(120):
        text = [GOOD, NO_BOUNDS, NOISY, f"{NO_KEY}; {GOOD}"][number % 4]
        (repository / "queries" / f"q{number:03}.sql").write_text(f"-- {number}\n{text};\n")
    arguments = ["check", str(repository), "--config", str(repository / "dpsql.toml"), "--output-format", "json"]
    alone = dpsql(*arguments, "--jobs", "1", "--no-cache")
    several = process(*arguments, "--jobs", "3")  # fills the cache
    cached = process(*arguments)
    assert alone.status == 1 and len(json.loads(alone.out)) == 90
    assert (several.status, several.out) == (cached.status, cached.out) == (alone.status, alone.out)
    assert loaded(repository) == set()


def loaded(repository: Path) -> set[str]:
    """The heavy packages that a run of the command has loaded."""
    (repository / "main.py").write_text(
        "import sys\nfrom dpsql.faces.cli.main import main\n"
        "status = main(['check', sys.argv[1], '--policy', sys.argv[1] + '/policy.yaml', '--jobs', '2'])\n"
        "assert status == 1, status\n"
        "print(*{n.partition('.')[0] for n in sys.modules} & {'duckdb', 'numpy', 'pandas'}, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, repository / "main.py", repository], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.processes
def test_a_reader_that_goes_away_is_no_finding(repository: Path) -> None:
    """1 would mean findings. What is printed is longer than a pipe holds, so that writing it fails."""
    long = NO_BOUNDS.replace("FROM", f"/* {'x' * 20_000} */ FROM")
    (repository / "queries" / "a.sql").write_text(f"{long};\n" * 10)
    command = [sys.executable, "-m", "dpsql", "check", "--output-format", "json", "--no-cache"]
    with subprocess.Popen(command, cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert b"Traceback" not in running.stderr.read()
        assert running.wait(120) == 2
