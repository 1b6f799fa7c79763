"""The command line: whatever words it is given, a documented exit code, a coded message, no traceback, nothing spent
by a refusal.

An input is one word a line, run in a folder with a policy, its data, a ledger with one entry, and a few files.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from random import Random

from dpsql.faces.cli.commands import demo
from dpsql.faces.cli.main import main
from tests.deep.fuzz.target import Target, damaged, rearranged

DOCUMENTED = {0, 1, 2, 3, 4, 5, 130}
CODE = re.compile(r"\bDP\d{3}\b")
COUNT = "SELECT COUNT(*) AS n FROM patients"
GROUPED = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients GROUP BY region"
PAID = "SELECT COUNT(*) AS n FROM visits"
LEDGER = "clinic.ledger.sqlite"

MAY_BE_MADE = (LEDGER, "clinic.ledger.head", "other.sqlite", "state")
"""By a refusal: a ledger that is not there yet, and its head."""
COMMANDS = ("query clinic.yaml", 
    "close clinic.yaml", "explain clinic.yaml", "check --policy clinic.yaml", "budget clinic.yaml", "rule",
            "audit clinic.yaml", "policy check", "policy show", "policy schema", "policy init", "policy audit",
            "policy verify", "policy report", "policy diff clinic.yaml", "policy suggest clinic.yaml", "policy",
            "demo", "",
            "check . --policy clinic.yaml",
            "shell clinic.yaml", "clinic.yaml", "diff --against HEAD --policy clinic.yaml",
            "lsp --policy clinic.yaml")  # fmt: skip
WORDS = (
    "query", "explain", "check", "budget", "rule", "policy", "show", "audit", "verify", "report", "schema", "init",
    "suggest",
    "demo", "clinic.yaml", "clinic.duckdb", "q.sql", "binary", "empty", "folder", "nowhere", "p.yaml", COUNT, GROUPED,
    PAID, "-",
    "SELECT", "", "é", "DP201", "DP999", "--", "-1", "patients", "t", "\udce9", "a\x00b", "x" * 300, " ", "*", "*.sql",
    "--epsilon", "--rho", "--max-error", "--confidence", "--weight", "--delta", "--analyst", "--ledger", "--fresh",
    "--limits", "search", "declared", "SET limits = search; SHOW limits",
    "--allow-dearer", "--no-allow-dearer", "SET allow_dearer = on; SHOW allow_dearer",
    "--format", "--dialect", "--engine-sql", "--policy", "--output-format", "--allow-empty", "--history", "--plot",
    "--accept-head", "--runs", "--data", "--output", "-o", "--name", "--version", "-h", "--help", "-f", "--file",
    "--bogus", "-fq.sql", "--epsilon=0.1", "--epsilon=", "-hf", "--eps", "0.1", "0", "1e999", "nan", "inf", "1/0",
    "1/3",
    "n=5", "n=1e-9", "=5", "n=", "a=5", "n=2", "region=1", "0.95", "95", "1", "1e-9", "ana", "ben", "out.html",
    "out.png",
    "json", "csv", "jsonl", "markdown", "table", "text", "full", "concise", "bigquery", "klingon", "100", "-100", "1e3",
    "other.sqlite", LEDGER, "clinic.ledger.head", "SELECT SUM(age) FROM patients", "SELECT age FROM patients",
    "shell", "diff", "lsp", ".", "dpsql.toml", "new", "--against", "HEAD", "--dbt", "--fix", "--diff", "--unsafe-fixes",
    "--statistics", "--budget-report", "--exit-zero", "--strict", "--no-config", "--config", "--select", "--ignore",
    "--baseline", "--write-baseline", "--stdin-filename", "--templater", "jinja", "--template-var", "--jobs", "-c",
    "-v", "-P", "-o", "-x", "-A", "-t", "-q", "--csv", "--pset", "border=2", "\\d", "\\budget", "\\q", "\\o new",
    "\\i q.sql", "\\! ls", "\\timing", "\\cost", "SET epsilon = 0.1", "SHOW epsilon", "EXPLAIN SELECT 1",
)  # fmt: skip


PAIRS = tuple(
    (option, value)
    for option, values in {
        "--through": "2026-01-31 x",
        "--epsilon": "0.1 0.2 1/3 100 1e-9 0 nan", "--delta": "1e-9 0 1", "--max-error": "n=50 n=5 a=5 n=1e9",
        "--confidence": "0.9 0.999999 1", "--weight": "n=2 a=3", "--analyst": "ana ben",
        "--ledger": "q.sql other.sqlite", "--limits": "search declared all",
        "--format": "json csv jsonl markdown table text", "--dialect": "bigquery postgres tsql", "--plot": "out.html",
        "--output-format": "json concise full", "--rho": "0.1", "-f": "q.sql - nowhere", "--runs": "100 99",
        "-o": "new", "-P": "format=csv intervals=cols null=x bogus=1", "-v": "n=3 ON_ERROR_STOP=off",
        "-c": "\\d \\budget \\epsilon \\q \\! \\i ; é", "--select": "DP3 DP5,DP301", "--ignore": "DP5 DP201 DP",
        "--max-epsilon": "0.1 0", "--max-epsilon-per-file": "0.1 x", "--jobs": "1 0", "--templater": "jinja none",
        "--template-var": "a=1 =", "--write-baseline": f"new q.sql {LEDGER}", "--baseline": "empty q.sql",
        "--config": "p.yaml nowhere", "--dbt": "folder nowhere", "--against": "HEAD -x", "--stdin-filename": "a.sql é",
    }.items()
    for value in values.split()
)  # fmt: skip


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    """A folder to copy: the demo's, its database named by its whole path, a ledger with one entry, and some files."""
    made = tempfile.TemporaryDirectory()
    data, folder = Path(made.name) / "data", Path(made.name) / "folder"
    demo.prepare(data)
    folder.mkdir()
    text = (data / "clinic.yaml").read_text(encoding="utf-8")
    text = text.replace("database: clinic.duckdb", f"database: '{data / 'clinic.duckdb'}'")
    (folder / "clinic.yaml").write_text(text, encoding="utf-8")
    (folder / "q.sql").write_text(COUNT, encoding="utf-8")
    (folder / "p.yaml").write_text("version: 1\nname: x\ntables: {}\n", encoding="utf-8")
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    with _calling(folder, b""):
        assert main(["query", "clinic.yaml", PAID, "--epsilon", "0.1"]) == 0
    return made


@contextlib.contextmanager
def _calling(folder: Path, stdin: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Streams, working folder and environment of one call; its standard output and error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    here, environment = Path.cwd(), dict(os.environ)
    streams = sys.stdin, sys.stdout, sys.stderr
    os.chdir(folder)
    os.environ |= {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "state"), "COLUMNS": "100"}
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout, sys.stderr = out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)


def one(data: bytes) -> str:
    """Call the program: `command status`."""
    words = [word.decode("utf-8", "surrogateescape") for word in data.split(b"\n")[:20]]
    if not harmless(words):
        return "left out"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        shutil.copytree(Path(_made().name) / "folder", folder)
        files, entries = sorted(folder.rglob("*")), charged(folder)
        with _calling(folder, COUNT.encode()) as (out, err):
            status = main(words)
        shown, said = (_text(stream) for stream in (out, err))
        assert status in DOCUMENTED, status
        assert "Traceback" not in shown + said and "DP904" not in said, said
        assert not any(c in said for c in "\x1b\x07\x08\u202e"), "an input writes to the terminal"
        assert len(said) < 20_000
        after = charged(folder)
        assert after[: len(entries)] == entries, "an entry is lost"
        if words[:1] in (["shell"], ["clinic.yaml"], ["p.yaml"]):  # what comes before a refusal was done
            assert not status or CODE.search(said) or "Usage:" in said, said
            assert len(after) - len(entries) <= 1 + len(words), "more than what was asked was charged"
        elif status:
            finding = words[:1] in (["check"], ["diff"], ["audit"]) or words[:2] == ["policy", "verify"]
            told = CODE.search(said) or (finding and CODE.search(shown)) or "Usage:" in said
            assert told, said
            assert after == entries, "a refusal was charged"
            assert finding or shown == "", shown
            made = {p.relative_to(folder).parts[0] for p in folder.rglob("*") if p not in files}
            assert {n for n in made if not n.startswith(MAY_BE_MADE)} == set(), "a refusal makes files"
        else:
            searches = 20 * (words[:2] == ["policy", "suggest"])
            assert len(after) - len(entries) <= ("query" in words) + searches, "something else than a query was charged"
    return f"{words[0] if words[0] in WORDS else '…'} {status}"


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8")


def harmless(words: Sequence[str]) -> bool:
    """Whether a call stays in its folder and ends soon, as an audit of hundreds of runs does, and of thousands not."""
    if any(word.startswith(("/", "~")) or "=/" in word or ".." in word or "/" in word[:3] for word in words):
        return False
    if "audit" not in words or "policy" in words:
        return True
    return any(word.startswith("--runs") for word in words) and not re.search(r"\d[\d_]{3}", " ".join(words))


def charged(folder: Path) -> list[tuple[object, ...]]:
    """The ledger's entries, read past dpsql."""
    with closing(sqlite3.connect(folder / LEDGER)) as connection:
        return list(connection.execute("SELECT * FROM entries ORDER BY sequence"))


def mutate(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """One or two options added; or one to three words changed, now and then bytes, or a new command."""
    if rng.random() < 0.5:
        return b"\n".join([data, *(word.encode() for _ in range(rng.choice((1, 2))) for word in rng.choice(PAIRS))])
    if rng.random() < 0.2:
        data = rng.choice(COMMANDS).replace(" ", "\n").encode()
    for _ in range(rng.choice((1, 2, 3))):
        data = rearranged(data, rng, others, lambda r: r.choice(WORDS).encode("utf-8", "surrogateescape"))
    return damaged(data, rng, others, [b"--", b"=", b"\n", b"-", b"\x00", b"\xff"]) if rng.random() < 0.1 else data


TARGET = Target("flags", one, mutate)
