"""A clinic with its own ledger for every test, and the command line, called in this process or in another one."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpsql.faces.cli.commands import demo
from dpsql.faces.cli.main import main

CODE = re.compile(r"\bDP\d{3}\b")
DOCUMENTED = {0, 1, 2, 3, 4, 5, 130}


@dataclass(frozen=True)
class Done:
    """A finished call."""

    status: int
    out: str
    err: str

    @property
    def codes(self) -> set[str]:
        """The codes of the errors shown."""
        return set(re.findall(r"^error\[(DP\d{3})\]", self.err, re.MULTILINE))


Call = Callable[..., Done]


@dataclass(frozen=True)
class Clinic:
    """The demo's database behind a policy of one's own."""

    folder: Path

    @property
    def policy(self) -> str:
        return str(self.folder / "clinic.yaml")

    @property
    def ledger(self) -> Path:
        return self.folder / "clinic.ledger.sqlite"

    def change(self, old: str, new: str) -> None:
        path = Path(self.policy)
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="session")
def clinic_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a freshly made demo; not to be written to."""
    folder = tmp_path_factory.mktemp("clinic") / "made"
    demo.prepare(folder)
    return folder


@pytest.fixture
def clinic(clinic_data: Path, tmp_path: Path) -> Clinic:
    """A policy, ledger and head of this test's own, over the shared database."""
    folder = tmp_path / "clinic"
    folder.mkdir()
    text = (clinic_data / "clinic.yaml").read_text(encoding="utf-8")
    database = str(clinic_data / "clinic.duckdb")
    (folder / "clinic.yaml").write_text(text.replace("database: clinic.duckdb", f"database: '{database}'"), "utf-8")
    return Clinic(folder)


@pytest.fixture
def dpsql(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """`dpsql(*arguments, stdin=b"")` in this process, with this test's state directory."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(*arguments: str | Path, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        shown = capsys.readouterr()
        return checked(Done(status, shown.out, shown.err))

    return call


@pytest.fixture
def process(tmp_path: Path) -> Call:
    """`process(*arguments, stdin=b"", env={})`: `python -m dpsql` in a process of its own."""

    def call(*arguments: str | bytes | Path, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "dpsql", *arguments],
            input=stdin, capture_output=True, timeout=120, cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), **(env or {})},
        )  # fmt: skip
        return checked(Done(done.returncode, done.stdout.decode(), done.stderr.decode()))

    return call


def checked(done: Done) -> Done:
    """What holds for every call: a documented status, no traceback, and nothing unforeseen."""
    assert done.status in DOCUMENTED
    for text in (done.out, done.err):
        assert "Traceback" not in text and "[DP904]" not in text, text
    return done
