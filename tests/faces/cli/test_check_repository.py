"""`dpsql check` over a repository: configuration, ignores, baselines, reports, standard input, cache and processes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dpsql.faces.check.examine.cache import _hash as hashed
from tests.support.command_line import Call

GOOD = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
NO_KEY = "SELECT fee, COUNT(*) AS n FROM visits GROUP BY fee"
NO_BOUNDS = "SELECT SUM(fee) AS f FROM visits"
NOISY = "SELECT COUNT(DISTINCT ward) AS wards FROM visits"


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


def test_warnings_fail_only_if_that_is_asked_for(dpsql: Call, repository: Path) -> None:
    (repository / "queries" / "a.sql").write_text(f"{NOISY};\n")
    done = dpsql("check")
    assert done.status == 0 and done.out.startswith("warning[DP50")
    assert dpsql("check", "--strict").status == 1
    assert dpsql("check", "--strict", "--exit-zero").status == 0
    assert dpsql("check", "--strict", "--ignore", "DP5").status == 0
    configure(repository, "strict = true")
    assert dpsql("check").status == 1


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
