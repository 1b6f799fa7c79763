"""Jinja templates: rendered in a sandbox, findings at their places in the template."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.documents import rendering
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.document_sources import given_variables, plain
from dpsql.faces.check.documents.rendering import Renderer, RenderingFailure, RenderingLimits
from dpsql.faces.check.documents.templates import Templater, Templates
from dpsql.faces.check.examine.examine_text import TextOptions, check_document
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from tests.support.interrupts import stopped_at_each

POLICIES = Path(__file__).resolve().parents[2] / "fixtures" / "policies"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "pages.yaml")


@pytest.fixture(scope="module")
def templater() -> Templater:
    return Templater(Templates({"wards": ["surgery", "medicine"], "fee": "fee", "rows": "visits"}))


def places(document: Document, policy: Policy) -> list[tuple[str, str]]:
    found: list[Diagnostic] = [f.diagnostic for f in check_document(document, policy, TextOptions())]
    assert all(d.source is document.source and d.span is not None for d in found)
    text = document.source.text
    return [(d.code, text[d.span.start : d.span.end]) for d in found if d.span is not None]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("SELECT SUM(v.fee) FROM {{ rows }} AS v", [("DP201", "v.fee")]),
        ("SELECT SUM({{ fee }}) FROM visits", [("DP201", "{{ fee }}")]),
        ("{# a note #}\r\nSELECT COUNT(*),\r\n  SUM(fee) -- {{ fee }}\r\nFROM visits", [("DP201", "fee")]),
        ("SELECT {% for w in wards %}COUNT({{ w }}),{% endfor %} 1 FROM visits", [("DP103", "{{ w }}")] * 2),
        ("{% if false %}SELECT fee{% else %}SELECT COUNT(*) FROM orders{% endif %}", []),
        ("{% set t = 'visits' %}SELECT COUNT(*) AS n FROM {{ t }};\nSELECT ü FROM visits", [("DP103", "ü")]),
    ],
)
def test_findings_are_at_their_places(
    template: str, expected: list[tuple[str, str]], templater: Templater, policy: Policy
) -> None:
    found = places(templater.document(Source(template, "q.sql")), policy)
    assert found[: len(expected)] == expected[: len(found)] and bool(found) == bool(expected)


def test_a_file_without_tags_is_left_as_it_is(templater: Templater) -> None:
    source = Source("SELECT '}} not a tag'", "q.sql")
    assert templater.document(source) == Document(source)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("SELECT {{ unknown }}", "uses unknown, which is not given"),
        ("SELECT\n  {{ ref('x') }}", "uses ref, which is not given"),
        ("SELECT {% if %}", "cannot be rendered"),
        ("SELECT {{ 1 / 0 }}", "cannot be rendered"),
        ("{% include 'secret.sql' %}", "cannot be rendered"),
        ("{% for i in range(10000000) %}x{% endfor %}", "cannot be rendered"),
        ("{{ fee.__class__.__mro__ }}", "cannot be rendered"),
    ],
)
def test_what_cannot_be_rendered_is_refused(template: str, words: str, templater: Templater) -> None:
    with pytest.raises(Rejected) as refusal:
        templater.document(Source(template, "q.sql"))
    diagnostic = refusal.value.diagnostics[0]
    assert diagnostic.code == "DP903" and words in diagnostic.message and diagnostic.help
    assert diagnostic.source is not None and diagnostic.source.name == "q.sql"
    if "not given" in words and diagnostic.span is not None:
        assert template[diagnostic.span.start : diagnostic.span.end] in ("unknown", "ref")
    assert "sqlfluff" not in diagnostic.message and "http" not in diagnostic.message


@pytest.mark.parametrize(
    "template",
    [
        "{{ [].append.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ ().__class__.__bases__[0].__subclasses__() }}",
    ],
)
def test_templates_reach_nothing_of_python(template: str, templater: Templater) -> None:
    try:
        document = templater.document(Source(template, "q.sql"))
    except Rejected:
        return
    assert document.text.strip() == ""


def test_a_process_that_waits_for_ever_is_ended_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_SLACK", 0)
    renderer = Renderer({}, (), RenderingLimits(seconds=0.1))
    waiting = subprocess.Popen(
        [sys.executable, "-c", "input(); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with waiting:
        renderer._process = waiting
        assert renderer("SELECT 1", "q.sql") == RenderingFailure("time")


class Answering:
    """In place of a process: the same answer at once, to any request."""

    def __init__(self) -> None:
        self.stdin, self.stdout, self.killed = io.BytesIO(), self, False

    def readline(self) -> bytes:
        return b'{"text": "SELECT 1", "pieces": []}\n'

    def kill(self) -> None:
        self.killed = True


def test_ctrl_c_at_any_moment_leaves_no_clock_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread of Python's that is left makes the end of the program wait for a minute."""
    renderer, threads = Renderer({}, (), RenderingLimits()), threading.active_count()

    def render() -> None:
        if renderer._process is None:
            renderer._process = Answering()  # type: ignore[assignment]
        renderer("SELECT 1", "q.sql")

    for at in stopped_at_each(render, __file__):
        assert threading.active_count() <= threads, at


def test_no_module_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file called like one of Python's own modules would be run: code of whoever wrote the repository."""
    for name in ("json", "jinja2", "sqlfluff", "dpsql", "pickle", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert Templater(Templates()).document(Source("SELECT {{ 1 }}", "q.sql")).text == "SELECT 1"
    assert not (tmp_path / "ran").exists()


def test_the_projects_own_configuration_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could name a library: Python code of whoever wrote the repository."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "__init__.py").write_text("raise SystemExit('ran')")
    (tmp_path / ".sqlfluff").write_text(
        "[sqlfluff]\ntemplater = jinja\nlibrary_path = library\n[sqlfluff:templater:jinja:context]\nsecret = 1\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Rejected, match="uses secret"):
        Templater(Templates()).document(Source("SELECT {{ secret }}", "q.sql"))


def test_without_sqlfluff_the_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sqlfluff"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlfluff", None)
    with pytest.raises(Rejected) as refusal:
        Templater(Templates())
    assert refusal.value.diagnostics[0].help == ("pip install 'dpsql[templates]'",)


def test_variables() -> None:
    from decimal import Decimal

    configured = {"a": Decimal("2"), "b": [Decimal("0.5"), {"c": Decimal("1")}], "d": True}
    assert plain(configured) == {"a": 2, "b": [0.5, {"c": 1}], "d": True}
    assert given_variables(["a=x=y"]) == {"a": "x=y"}
    for wrong in ("a", "=x", "1a=2"):
        with pytest.raises(Rejected, match="NAME=VALUE"):
            given_variables([wrong])
