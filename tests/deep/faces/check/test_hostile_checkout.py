"""A checkout that somebody hostile wrote: nothing of it runs where it is checked, no file of it is passed over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from dpsql.faces.check.documents.discovery import WantedFiles, discover
from dpsql.faces.check.documents.ignore_patterns import Patterns
from dpsql.faces.check.examine.cache import Cache
from dpsql.faces.check.examine.examination import examine
from dpsql.faces.cli.main import main
from tests.support.checked_files import GOOD, NO_BOUNDS, POLICY, policy

ROOT = Path(__file__).resolve().parents[4]
SHADOWS = ("sqlglot", "typer", "multiprocessing", "pickle", "json", "pip", "concurrent", "signal")
"""Modules that dpsql, its processes and pip import, in a branch's spelling."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a query that must be refused, and modules that would let it pass if anything imported them."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    shutil.copy(POLICY, folder / "policy.yaml")
    (folder / "bad.sql").write_text(NO_BOUNDS, encoding="utf-8")
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'owned')!r}, 'a').write({name!r} + '\\n')\nimport os\nos._exit(0)\n",
            encoding="utf-8",
        )
    return folder


def owned(checkout: Path) -> str:
    """The modules of the checkout that ran."""
    said = checkout.parent / "owned"
    return said.read_text(encoding="utf-8") if said.exists() else ""


def action(step: str, checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A step of action.yml, as GitHub's runner calls it in a checkout."""
    steps = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    (script,) = [each["run"] for each in steps if each["id"] == step]
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(checkout.parent),
        "RUNNER_TEMP": str(checkout.parent),
        **environment,
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout, env={"PYTHON": sys.executable, **given}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_probe_the_action_runs_no_module_of_the_branch(checkout: Path) -> None:
    """`python -m` looks for modules in the current folder first: a `sqlglot.py` ended the check with 0."""
    output = {"GITHUB_OUTPUT": str(checkout.parent / "output")}
    inputs = {"POLICY": "policy.yaml", "PATHS": "bad.sql", "ARGS": "--no-cache", "SARIF": "dpsql.sarif"}
    for form in ("github", "sarif"):
        done = action("check", checkout, FORMAT=form, **inputs, **output)
        assert (owned(checkout), done.returncode) == ("", 1) and "DP201" in done.stdout, done.stderr


def test_probe_the_action_installs_with_no_module_of_the_branch(checkout: Path) -> None:
    """Whatever comes of the installation: here there is nothing to install."""
    action("install", checkout, SOURCE=str(checkout.parent / "nothing"), VERSION="", PIP_NO_INDEX="1")
    assert owned(checkout) == ""


@pytest.mark.processes
def test_probe_no_other_process_of_the_check_runs_a_module_of_the_branch(checkout: Path) -> None:
    """Processes that start from nothing, as on macOS and Windows, looked for `multiprocessing` in the checkout."""
    script = checkout.parent / "run.py"  # as the command `dpsql`: its own folder is on the path, the current one is not
    script.write_text(
        "from dpsql.faces.check.examine.parallel import examine_all\n"
        "from dpsql.policy.load import load_policy\n"
        "if __name__ == '__main__':\n"
        f"    texts = [{NO_BOUNDS!r}, *({GOOD!r} + f' -- {{n}}' for n in range(40))]\n"
        "    found = examine_all(texts, load_policy('policy.yaml'), 'duckdb', 2, 'spawn')\n"
        "    print(len(found), all(found))\n",
        encoding="utf-8",
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=checkout, env=environment, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert (owned(checkout), done.stdout) == ("", "41 True\n"), done.stderr


# --- what git is asked -----------------------------------------------------------------------------------------------

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
POSIX = pytest.mark.skipif(os.name == "nt", reason="links need rights there, and programs are shell scripts")


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs git in a repository, the current folder, with a policy and a query in one commit."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    own = {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_COMMITTER_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
    }  # fmt: skip
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(POLICY, "policy.yaml")
    Path("q.sql").write_text(GOOD, encoding="utf-8")

    def run(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=120, text=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main", ".")
    run("add", ".")
    run("commit", "-q", "-m", "old")
    return run


def compared(*arguments: str) -> int:
    return main(["diff", "--against", "HEAD", "--policy", "policy.yaml", "--fail-on-worse", *arguments])


def lose(name: str) -> None:
    """An object that git does not have any more."""
    Path(".git", "objects", name[:2], name[2:]).unlink()


@GIT
@pytest.mark.parametrize("lost", ["q.sql", "policy.yaml"])
def test_probe_an_older_file_that_git_does_not_have_is_not_taken_for_none(
    git: Callable[..., str], capsys: pytest.CaptureFixture[str], lost: str
) -> None:
    """It was "added; none worse", whatever had become of it; and for the policy, today's counted."""
    lose(git("rev-parse", f"HEAD:{lost}"))
    Path("q.sql").write_text(GOOD.replace("COUNT(*)", "SUM(age)"), encoding="utf-8")
    assert compared() == 2
    out, err = capsys.readouterr()
    assert out == "" and f"git does not have '{lost}' as it was in 'HEAD'" in err


@GIT
@POSIX
def test_probe_an_older_link_out_of_the_repository_is_not_taken_for_none(
    git: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere.sql").write_text(GOOD, encoding="utf-8")
    Path("linked.sql").symlink_to("../elsewhere.sql")
    git("add", ".")
    git("commit", "-q", "-m", "a link")
    Path("linked.sql").unlink()
    Path("linked.sql").write_text(GOOD, encoding="utf-8")
    assert compared() == 2
    assert "'linked.sql' is a link in 'HEAD'" in capsys.readouterr().err


PROMISED = {
    "a transport that is a command": {"url": "ext::sh {run}"},
    "a program for the other side": {"url": "{here}/.git", "uploadpack": "{run}; git-upload-pack"},
    "a helper of another version control system": {"url": "x", "vcs": "evil"},
    "a command in place of ssh": {"url": "ssh://nowhere.invalid/x"},
}
"""Where a repository's configuration says that objects which are not there come from."""


@GIT
@POSIX
@pytest.mark.parametrize("remote", PROMISED.values(), ids=list(PROMISED))
def test_probe_git_starts_nothing_that_a_repository_names(
    git: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: dict[str, str]
) -> None:
    """To fetch what is missing, to watch files, to show, to compare or to write an index: none of it is done."""
    run = tmp_path / "run"
    run.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path}/owned\n", encoding="utf-8")
    run.chmod(0o755)
    (tmp_path / "git-remote-evil").symlink_to(run)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    hooks = Path(".git", "hooks")
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "post-checkout"):
        hooks.mkdir(exist_ok=True)
        (hooks / hook).symlink_to(run)
    settings = {
        "core.fsmonitor": str(run), "core.pager": str(run), "core.sshCommand": str(run), "core.askPass": str(run),
        "core.gitProxy": str(run), "core.alternateRefsCommand": str(run), "diff.external": str(run),
        "diff.sql.textconv": str(run), "filter.x.smudge": str(run), "filter.x.process": str(run),
        "credential.helper": str(run), "gpg.program": str(run), "protocol.ext.allow": "always",
        "uploadpack.packObjectsHook": str(run),
        "protocol.evil.allow": "always", "extensions.partialClone": "evil", "remote.evil.promisor": "true",
        "core.repositoryFormatVersion": "1",
    } | {f"remote.evil.{name}": value.format(run=run, here=os.getcwd()) for name, value in remote.items()}  # fmt: skip
    lost = git("rev-parse", "HEAD:q.sql")
    for name, value in settings.items():
        git("config", name, value)
    Path(".git", "info").mkdir(exist_ok=True)
    Path(".git", "info", "attributes").write_text("*.sql diff=sql filter=x\n", encoding="utf-8")
    assert compared() == 0
    Path(".gitignore").write_text("q.sql\n", encoding="utf-8")
    assert main(["check", ".", "--policy", "policy.yaml"]) == 0
    lose(lost)
    assert compared() == 2
    assert not (tmp_path / "owned").exists(), (tmp_path / "owned").read_text(encoding="utf-8")


@GIT
def test_probe_a_folder_of_a_branch_that_looks_like_a_repository_is_none(
    git: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bare repository can be committed, its configuration with it: git finds it in the folder that it is run in.

    This one says of itself that nothing in it is tracked, so that the forged results in it are not the branch's, and
    that the query was as bad already.
    """
    Path("q.sql").write_text(NO_BOUNDS, encoding="utf-8")
    shutil.copytree(".git", "cache", ignore=shutil.ignore_patterns("index", "hooks"))
    config = f'[core]\nrepositoryformatversion = 0\nbare = false\nworktree = "{Path.cwd().as_posix()}"\n'
    Path("cache", "config").write_text(config, encoding="utf-8")
    fine = examine(GOOD, policy(), "duckdb")
    Cache(Path("cache"), Path("policy.yaml").read_bytes(), "policy.yaml", "duckdb").keep({NO_BOUNDS: fine})
    git("add", "--force", "cache")
    git("commit", "-q", "-m", "a cache")
    assert main(["check", "q.sql", "--policy", "policy.yaml", "--cache-dir", "cache"]) == 1
    assert "DP201" in capsys.readouterr().out
    os.chdir("cache")
    assert main(["diff", "--against", "HEAD", "--policy", "../policy.yaml", ".."]) == 2


@GIT
def test_probe_a_replaced_commit_is_not_what_its_hash_says(
    git: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """refs/replace puts another commit in its place, here one in which the query was as bad already."""
    first = git("rev-parse", "HEAD")
    Path("q.sql").write_text(NO_BOUNDS, encoding="utf-8")
    git("commit", "-q", "-a", "-m", "worse")
    git("replace", first, git("rev-parse", "HEAD"))
    assert main(["diff", "--against", first, "--policy", "policy.yaml", "--fail-on-worse"]) == 1
    assert "refused" in capsys.readouterr().out


# --- what is looked at -----------------------------------------------------------------------------------------------


@GIT
@pytest.mark.parametrize("ignored", ["evil.sql", "*.sql", "deep/", "/deep", "**", "*\n!keep.sql"])
def test_probe_what_git_has_is_checked_whatever_a_gitignore_names(git: Callable[..., str], ignored: str) -> None:
    """`git add --force` keeps a file in every clone that a .gitignore names: the check passed it over."""
    Path("deep/er").mkdir(parents=True)
    for name in ("evil.sql", "deep/er/evil.sql"):
        Path(name).write_text(NO_BOUNDS, encoding="utf-8")
    git("add", "--force", ".")
    Path(".gitignore").write_text(f"{ignored}\n", encoding="utf-8")
    Path("deep/er/new.sql").write_text("no SQL", encoding="utf-8")  # git does not have it, and nobody checks it
    Path("new-evil.sql").write_text("no SQL", encoding="utf-8")
    expected = {"q.sql", "evil.sql", "deep/er/evil.sql"}
    found = set(discover(["."], WantedFiles(".")).names)
    assert expected <= found
    if ignored in ("*.sql", "**", "*\n!keep.sql"):
        assert found == expected
    named = ["q.sql", "evil.sql", "deep/er/evil.sql"]  # as pre-commit does it
    assert list(discover(named, WantedFiles(".", force_exclude=True)).names) == named
    assert set(discover(["**/*.sql"], WantedFiles(".")).names) >= expected
    assert main(["check", ".", "--policy", "policy.yaml", "--no-cache"]) == 1


@GIT
def test_probe_where_git_does_not_answer_a_gitignore_hides_nothing(
    git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("rm", "-q", "--cached", "q.sql")
    Path(".gitignore").write_text("q.sql\n", encoding="utf-8")
    assert discover(["."], WantedFiles(".")).names == ()
    with monkeypatch.context() as without:
        without.setenv("PATH", "")
        assert discover(["."], WantedFiles(".")).names == ("q.sql",)
    shutil.rmtree(".git")  # an unpacked archive: what it was made of had been committed
    assert discover(["."], WantedFiles(".")).names == ("q.sql",)


HARD = {
    "stars": ("*a" * 14 + "*b", "a" * 4000),
    "stars in folders": ("/".join(["**/*a*a*a*a*b"] * 14), "aaaaaaaaaaaaaaaa/" * 200 + "a"),
    "many stars": ("*a" * 2000 + "*b", "a" * 4000),
    "folders": ("**/a/" * 500 + "b", "a/" * 2000 + "a"),
    "question marks": ("*?" * 1000 + "b", "a" * 4000),
    "sets": ("*[ab]" * 500 + "c", "ab" * 2000),
}


@pytest.mark.parametrize(("pattern", "path"), HARD.values(), ids=list(HARD))
def test_probe_no_pattern_of_a_branch_is_matched_without_end(pattern: str, path: str) -> None:
    """Fourteen stars hung `dpsql check`: what failed behind the last was tried again at every place of the others."""
    for each in (Patterns([pattern]), Patterns([f"!{pattern}"])):
        assert not each.match(path)
