"""Every code block of README and docs is executed, or says why it is not.

All blocks of a document run in their order in one temporary folder that holds a copy of examples/. The word after the
fence says what happens: `python` runs · `sh` runs line by line and exits 0 · `sql` is planned against the document's
own policy, else the example's, or refused with the code named behind it (`sql DP201`) · `yaml` is a policy that loads,
or with `fragment` is YAML · `json` parses · `text` is shown as it is, but `text output` has lines that the last `sh`
or `python` printed, in that order (… stands for what changes, or for lines). `skip: reason` leaves a block out.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import dpsql
from docs import api, picture
from dpsql.diagnostics.codes import CODES
from dpsql.policy.load import load_policy

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", ROOT / "grammar" / "README.md", *(ROOT / "docs").rglob("*.md")]
)
POLICY = Path("examples/flights/flights.yaml")
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
LANGUAGES = {"python", "sh", "sql", "yaml", "json", "text"}


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, what is said behind it, its text and its line."""

    language: str
    remark: str
    text: str
    line: int

    @property
    def skipped(self) -> bool:
        return self.remark.startswith("skip:")


def blocks(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        language, _, remark = match[1].strip().partition(" ")
        found.append(Block(language, remark.strip(), match[2], text[: match.start()].count("\n") + 1))
    return found


def read(name: str) -> list[Block]:
    return blocks((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder with its data, built once."""
    folder = tmp_path_factory.mktemp("flights")
    script = ROOT / "examples" / "flights" / "build.py"
    subprocess.run([sys.executable, script, folder], check=True, capture_output=True, timeout=300)
    return folder


@pytest.fixture
def place(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with examples/ and its data; the user's state directory is in it, too."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("data", "*.sqlite*"))
    shutil.copytree(data, tmp_path / "examples" / "flights" / "data")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")  # of jupysql's parts: no test reaches the network
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def execute(block: Block, names: dict[str, Any]) -> None:
    """Run one block in the current folder; raises or asserts if it does not do what it says."""
    match block.language:
        case "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(block.text, f"<line {block.line}>", "exec"), names)
            names["__printed__"] = printed.getvalue()
        case "sh":
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], capture_output=True, timeout=300)
            assert done.returncode == 0, done.stderr.decode()
            names["__printed__"] = (done.stdout + done.stderr).decode()
        case "text" if block.remark == "output":
            assert missing(block.text, names["__printed__"]) is None, names["__printed__"]
        case "sql":
            policy = Path("policy.yaml") if Path("policy.yaml").exists() else POLICY
            found = [d.code for d in dpsql.check(block.text, policy) if d.severity == "error"]
            assert found == ([block.remark] if block.remark else []), found
        case "yaml" if block.remark == "fragment":
            assert YAML(typ="safe").load(block.text)
        case "yaml":
            Path("policy.yaml").write_text(block.text, encoding="utf-8")
            assert load_policy("policy.yaml").tables
        case "json":
            assert json.loads(block.text)
        case _:
            raise AssertionError(f"nobody knows how to run {block.language!r}")


def missing(shown: str, printed: str) -> str | None:
    """The first line of `shown` that does not follow in `printed`; None if all do."""
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        meant = re.compile(".*".join(map(re.escape, line.strip().split("…"))))
        if not any(meant.fullmatch(candidate.strip()) for candidate in rest):
            return line
    return None


@pytest.mark.parametrize(
    ("shown", "found"),
    [("a\nb", None), ("a\n…\nd 4", "d 4"), ("b\na", "a"), ("a\n…\nd …", None), ("  d 3.1 x", None), ("e", "e")],
)
def test_output_that_is_shown_is_compared(shown: str, found: str | None) -> None:
    assert missing(shown, "a\nb\nc\n d 3.1 x\n") == found


def test_every_document_is_found() -> None:
    assert {"README.md", "docs/tutorial.md", "docs/reference/sql.md", "docs/threat-model.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_has_a_language_and_may_be_run(name: str) -> None:
    for block in read(name):
        assert block.language in LANGUAGES, f"{name}:{block.line}"
        assert not block.skipped or len(block.remark) > len("skip: ") + 8, f"{name}:{block.line}: why?"
        if block.language == "sql" and block.remark and not block.skipped:
            assert block.remark in CODES, f"{name}:{block.line}"
        assert block.language != "text" or block.remark in ("", "output"), f"{name}:{block.line}"


def running(name: str) -> list[Block]:
    return [b for b in read(name) if not b.skipped and (b.language != "text" or b.remark == "output")]


def executed() -> list[str]:
    """The documents with something to run."""
    return [name for name in DOCUMENTS if running(name)]


@pytest.mark.parametrize("name", executed())
def test_the_blocks_run(name: str, place: Path) -> None:
    names: dict[str, Any] = {"__name__": "__document__"}
    for block in running(name):
        try:
            execute(block, names)
        except BaseException as error:
            error.add_note(f"{name}:{block.line}")
            raise


BROKEN = [
    Block("python", "", "import dpsql\ndpsql.nothing", 1),
    Block("sh", "", "dpsql rule DP000", 1),
    Block("sql", "", "SELECT AVG(flight) FROM flights", 1),
    Block("sql", "DP202", "SELECT AVG(flight) FROM flights", 1),
    Block("yaml", "", "version: 1\nname: x\ntables: {t: {}}", 1),
    Block("json", "", "{", 1),
    Block("text", "output", "never printed", 1),
]


@pytest.mark.parametrize("block", BROKEN, ids=lambda block: f"{block.language} {block.remark}")
def test_a_block_that_does_not_do_what_it_says_fails(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("data", "*.sqlite*"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises((Exception, AssertionError)):
        execute(block, {"__printed__": "something else"})


def test_the_explain_that_is_shown_is_what_the_data_gives(place: Path) -> None:
    """What is shown is made from the policy alone; with the data at hand, EXPLAIN must read the same."""
    with dpsql.connect(POLICY) as con:
        assert f"```text\n{con.sql(picture.QUERY).explain(epsilon=1)}\n```" == picture.explain_block()


def test_the_readme_says_what_it_must() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for said in (
        "before 1.0",
        "trusted core",
        "make demo",
        "make test",
        "Apache-2.0",
        "docs/images/answer.svg",
        "docs/images/served.svg",
        "threat-model",
    ):
        assert said in text
    assert "`dpsql/core`" in text
    for folder in ("ir", "values", "analysis", "noise", "printing", "release", "ledger"):
        assert f"`{folder}`" in text and (ROOT / "dpsql" / "core" / folder).is_dir()


TERMS = (
    "privacy unit", "neighbouring databases", "add/remove neighbours", "replace-one neighbours", "stability",
    "sensitivity", "contribution bounding", "clipping", "grid, granularity", "release", "component", "measurement",
    "mechanism", "group-by keys", "partition selection, thresholding", "parallel composition", "interval", "half-width",
    "stored answer", "privacy loss", "ε (epsilon)", "δ (delta)", "ρ (rho)", "accountant", "ledger", "budget, cap",
    "public table", "promise", "policy", "custodian", "analyst",
)  # fmt: skip


def test_the_glossary_has_the_terms_of_the_field_one_line_each() -> None:
    rows = re.findall(
        r"^\| (.+?) \| (.+?) \| ?(.*)\|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.MULTILINE
    )
    terms = [term for term, _, _ in rows if term not in ("term", "---")]
    assert sorted(set(terms)) == sorted(terms) and set(TERMS) <= set(terms)
    people = {"custodian", "analyst", "differential privacy"}
    assert [term for term, _, code in rows if term in terms and bool("](../dpsql/" in code) == (term in people)] == []


def test_every_field_of_explain_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "explain.md").read_text(encoding="utf-8")
    whole = json.loads(dumped())
    fields = {*whole, *whole["releases"][0], *whole["releases"][0]["components"][0], *whole["nodes"][0]}
    assert [f for f in sorted(fields) if not re.search(rf"`\.*{f}(\[\])?`", text)] == []


def dumped() -> str:
    from dpsql.planner.explain.stable_json import dumps

    return dumps(picture.plan())


def test_every_public_name_is_documented() -> None:
    text = api.reference()
    assert [name for name in dpsql.__all__ if name not in text and name not in ("__version__", "Policy")] == []
    for name, methods in api.SHOWN.items():
        public = {
            m
            for m in vars(getattr(dpsql, name))
            if not m.startswith("_") and callable(found := getattr(getattr(dpsql, name), m)) and type(found) is not type
        }
        unrun = {"df", "pl", "arrow", "fetchall"}  # which say how a query is run
        steps = {"plan", "planned_with", "previewed", "explained", "answered"}  # of a batch's run, for the other faces
        own = {
            "Diagnostic": {"at", "from_reason"},
            "Policy": {"model_validate"},
            "Query": unrun,
            "SummaryQuery": {"begun"},
            "CounterQuery": {"design"},
        }
        hidden = {**own, "Batch": steps, "BatchAnswer": {"bounds"}}.get(name, set())
        assert public - hidden - set(methods) == set() or not methods, f"{name}: {public - hidden - set(methods)}"


def test_links_of_all_documents_lead_somewhere() -> None:
    wrong = []
    for name in DOCUMENTS:
        path = ROOT / name
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                wrong.append(f"{name}: {target}")
    assert wrong == []
