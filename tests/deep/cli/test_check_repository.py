"""`dpsql check` over a repository: configuration, ignores, baselines, reports, standard input, cache and processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dpsql.checking.examine.cache import _hash as hashed
from tests.support.command_line import Call

GOOD = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
NO_KEY = "SELECT fee, COUNT(*) AS n FROM visits GROUP BY fee"
NO_BOUNDS = "SELECT SUM(fee) AS f FROM visits"
NOISY = "SELECT COUNT(DISTINCT ward) AS wards FROM visits"
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


def configure(repository: Path, text: str) -> None:
    (repository / "dpsql.toml").write_text(f'policy = "policy.yaml"\n{text}\n')


def concise(dpsql: Call, *arguments: str, stdin: bytes = b"") -> list[str]:
    """`path:line code` of the findings."""
    done = dpsql("check", "--output-format", "concise", *arguments, stdin=stdin)
    lines = [line.split(": ", 1) for line in done.out.splitlines()]
    assert done.status == (1 if lines else 0), done
    return [f"{place.rpartition(':')[0]} {said.split()[0]}" for place, said in lines]


def test_values_of_parameters(dpsql: Call, repository: Path) -> None:
    (repository / "queries" / "p.sql").write_text("SELECT COUNT(*) AS n FROM patients WHERE age > $lo AND region = $r")
    assert concise(dpsql) == ["queries/p.sql:1 DP013"] * 2
    assert "[parameters] in dpsql.toml" in dpsql("check").out
    assert concise(dpsql, "--parameter", "lo=30", "--parameter", "r=north") == []
    configure(repository, 'parameters = {lo = 30, r = "north"}')
    assert concise(dpsql) == []
    assert concise(dpsql, "--parameter", "lo='x'") != []  # stronger, and not what the cache holds for other values
    assert concise(dpsql) == []
    done = dpsql("check", "--parameter", "lo")
    assert done.status == 2 and done.codes == {"DP903"}


def test_no_policy_is_a_usage_error(dpsql: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = dpsql("check")
    assert done.status == 2 and done.codes == {"DP903"} and "--policy FILE" in done.err


def test_the_configuration_is_found_from_below(dpsql: Call, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dpsql("check").err == "checked 1 statement in 1 file: no findings\n"
    monkeypatch.chdir(repository / "queries")
    assert dpsql("check").status == 0
    configure(repository, "unknown = 1")
    done = dpsql("check")
    assert done.status == 2 and done.codes == {"DP910"} and "../dpsql.toml:2:1" in done.err.replace("\\", "/")
    assert dpsql("check", "--no-config", "--policy", "../policy.yaml").status == 0
    (repository / "dpsql.toml").write_bytes(b"\xff")
    assert dpsql("check").codes == {"DP910"}


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


def test_warnings_fail_only_if_that_is_asked_for(dpsql: Call, repository: Path) -> None:
    (repository / "queries" / "a.sql").write_text(f"{NOISY};\n")
    done = dpsql("check")
    assert done.status == 0 and done.out.startswith("warning[DP50")
    assert dpsql("check", "--strict").status == 1
    assert dpsql("check", "--strict", "--exit-zero").status == 0
    assert dpsql("check", "--strict", "--ignore", "DP5").status == 0
    configure(repository, "strict = true")
    assert dpsql("check").status == 1


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


def test_baseline(dpsql: Call, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = repository / "queries" / "a.sql"
    file.write_text(f"{NO_BOUNDS};\n{NO_KEY};\n")
    done = dpsql("check", "--write-baseline", "known.json")
    assert (done.status, done.out) == (0, "") and done.err.startswith("wrote 2 findings to known.json\n")
    assert concise(dpsql, "--baseline", "known.json") == []
    configure(repository, 'baseline = "known.json"')
    assert dpsql("check").err == "checked 3 statements in 2 files: no findings, 2 in the baseline\n"
    file.write_text(f"-- moved\n\n  {NO_BOUNDS} ;\nSELECT * FROM visits;\n")
    done = dpsql("check", "--output-format", "concise")
    assert done.status == 1 and done.out.startswith("queries/a.sql:4:15: DP110 ") and done.out.count("\n") == 1
    assert "does not occur any more" in done.err and "queries/a.sql: DP301" in done.err
    for hidden in (["--select", "DP4"], ["--ignore", "DP3"]):  # it may occur all the same
        assert dpsql("check", *hidden).err == "checked 3 statements in 2 files: 1 finding, 1 in the baseline\n"
    monkeypatch.chdir(repository / "queries")
    assert dpsql("check", "good.sql").err == "checked 1 statement in 1 file: no findings\n"
    (repository / "binary.sql").write_bytes(b"\x00")
    before = (repository / "known.json").read_bytes()
    assert dpsql("check", "..", "--write-baseline", "../known.json").status == 2
    assert (repository / "known.json").read_bytes() == before  # what could not be checked is not known


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


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_cache_that_came_with_the_repository_is_not_believed(
    dpsql: Call, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can commit a file could otherwise commit what is to be found in others: nothing."""
    bad = repository / "queries" / "bad.sql"
    bad.write_text(f"{NO_BOUNDS};\n")
    found = ["queries/bad.sql:1 DP201"]
    assert concise(dpsql) == found
    cache = next((repository / ".dpsql_cache").glob("*.json"))
    records = json.loads(cache.read_text().partition("\n")[2])
    for statements, _ in records.values():
        for statement in statements:
            statement[2] = []
    body = json.dumps(records, separators=(",", ":"))
    cache.write_text(f"{hashed(body.encode())}\n{body}")
    assert concise(dpsql) == []  # one's own cache is believed
    for arguments in (["init", "-q"], ["add", "-f", "."]):
        subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=120)
    assert concise(dpsql) == found
    monkeypatch.setenv("PATH", str(repository))  # no git to ask
    assert concise(dpsql) == found


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
        "import sys\nfrom dpsql.cli.main import main\n"
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
