"""What stands around a query: files of a repository that somebody hostile wrote, and forms of answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import dpsql
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.check.examine.run_check import check_documents
from dpsql.faces.cli.main import main
from tests.support.checked_files import GOOD, NO_BOUNDS, POLICY, documents, policy, settings
from tests.support.checklist_clinic import DELTA, Clinic

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


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
def test_probe_a_committed_cache_hides_no_finding(git: Callable[..., None], tmp_path: Path) -> None:
    """A forged entry says that a query without bounds is fine; its hash is right, for anybody can compute it."""
    own = settings(tmp_path, jobs=1)
    wanted = documents(NO_BOUNDS)
    cached = replace(own, cache=tmp_path / "cache")
    fine = examine(GOOD, policy(), own.options.dialect)
    Cache(tmp_path / "cache", POLICY.read_bytes(), own.policy, own.options.dialect).keep({NO_BOUNDS: fine})
    assert not check_documents(wanted, cached).report.findings  # the forgery works where it is believed
    git("add", "--force", "cache")
    assert [f.diagnostic.code for f in check_documents(wanted, cached).report.findings] == ["DP201"]


@GIT
@pytest.mark.parametrize(
    "name", ["--upload-pack=touch owned", "-Oowned", "^HEAD", "HEAD..HEAD", "HEAD:p.yaml", "a\n-b"]
)
def test_probe_a_ref_is_a_commit_or_nothing(
    git: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    shutil.copy(POLICY, tmp_path / "p.yaml")
    git("add", ".")
    git("commit", "-q", "-m", "policy")
    assert main(["diff", f"--against={name}", "--policy", "p.yaml"]) == 2
    assert "is no commit of this repository" in capsys.readouterr().err
    assert not (tmp_path / "owned").exists()


def test_probe_what_a_library_has_no_place_for_is_refused_in_our_words(make: Callable[..., Clinic]) -> None:
    with make().connect() as con:
        late = con.execute("SELECT DATE '9999-12-31' + INTERVAL 1 DAY AS k, COUNT(*) AS n FROM patients", epsilon=1)
        night = con.execute("SELECT TIME '24:00:00' AS k, COUNT(*) AS n FROM patients", epsilon=1)
        for convert in (late.arrow, late.pl, night.arrow, night.pl):
            with pytest.raises(dpsql.Rejected, match="column k holds a") as caught:
                convert()
            assert caught.value.__context__ is None
        assert late.df().shape == night.df().shape == (1, 2)


def test_probe_no_name_is_a_formula_of_a_picture(make: Callable[..., Clinic]) -> None:
    from matplotlib import pyplot

    with make().connect() as con:
        sql = 'SELECT diag AS "$x^{$", COUNT(*) AS "a$b_{$" FROM patients GROUP BY diag'
        axes = con.execute(sql, epsilon=1, delta=DELTA).plot()
    axes.figure.canvas.draw()  # where matplotlib reads formulas
    pyplot.close(axes.figure)


def test_probe_a_cache_in_a_folder_of_something_else_takes_nothing_from_it(tmp_path: Path) -> None:
    """`cache-dir` is the repository's to set: what lies there already is neither removed nor hidden from git."""
    for number in range(40):
        (tmp_path / f"{number}.json").write_text("{}")
    own = replace(settings(tmp_path, jobs=1), cache=tmp_path)
    check_documents(documents(NO_BOUNDS), own)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {f"{number}.json" for number in range(40)} and len(names) == 41 and ".gitignore" not in names
