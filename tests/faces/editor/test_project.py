"""What holds for a file in an editor, and what is offered at its findings."""

from __future__ import annotations

import asyncio
import builtins
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsql.diagnostics.diagnostic import Span
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.examine.check_settings import Asked
from dpsql.faces.cli.commands import lsp
from dpsql.faces.editor.actions import actions, fix_all
from dpsql.faces.editor.file_settings import FileSettings, Look, look

POLICY = Path(__file__).parents[2] / "fixtures" / "policies" / "clinic.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(POLICY, tmp_path / "clinic.yaml")
    (tmp_path / "dpsql.toml").write_text('policy = "clinic.yaml"\ndialect = "postgres"\nignore = ["DP301"]\n')
    (tmp_path / "sub").mkdir()
    return tmp_path


def codes(found: Look) -> list[str]:
    return [f.diagnostic.code for f in found.findings]


def test_the_nearest_configuration_holds(folder: Path) -> None:
    text = "SELECT cost, COUNT(*) FROM visits GROUP BY cost"
    file = folder / "sub" / "q.sql"
    assert codes(look(FileSettings(), file, text)) == []
    (folder / "sub" / "dpsql.toml").write_text('policy = "../clinic.yaml"\n')
    assert codes(look(FileSettings(), file, text)) == ["DP301"]
    found = look(FileSettings(Asked(dialect="duckdb")), folder / "q.sql", "SELECT SUM(cost)::DOUBLE AS s FROM visits")
    assert found.setting is not None and found.setting.options.dialect == "duckdb"


def test_without_a_policy_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "dpsql.toml").write_text("")
    found = look(FileSettings(), tmp_path / "q.sql", "SELECT 1")
    assert found.setting is None and [d.code for d in found.trouble] == ["DP903"]
    found = look(FileSettings(Asked(policy=str(tmp_path / "none.yaml"))), tmp_path / "q.sql", "SELECT 1")
    assert [d.code for d in found.trouble] == ["DP001"]


def test_a_policy_is_read_once_for_each_state_of_its_file(folder: Path) -> None:
    project, file = FileSettings(), folder / "q.sql"
    first, second = project.setting(folder), project.setting(folder)
    assert first.policy is second.policy
    policy = folder / "clinic.yaml"
    policy.write_text(policy.read_text().replace("bounds: [0, 5000], ", ""))
    os.utime(policy, ns=(1, 1))
    assert codes(look(project, file, "SELECT SUM(cost) FROM visits")) == ["DP201"]


def test_a_byte_order_mark_moves_nothing(folder: Path) -> None:
    found = look(FileSettings(), folder / "q.sql", "\ufeffSELECT costt FROM visits")
    assert found.findings[0].diagnostic.span == Span(8, 13)


def test_templates_are_rendered(folder: Path) -> None:
    (folder / "dpsql.toml").write_text('policy = "clinic.yaml"\ntemplater = "jinja"\n[templates]\nwhat = "cost"\n')
    project, file = FileSettings(), folder / "q.sql"
    found = look(project, file, "SELECT SUM({{ what }}) AS s FROM visits")
    assert found.findings == () and found.trouble == () and found.rendered
    text = "{# 😀 #}SELECT {{ what }}, COUNT(*) FROM visits GROUP BY {{ what }}"
    found = look(project, file, text)
    assert codes(found) == ["DP301"] and not actions(found, Span(0, len(text)))
    assert found.findings[0].diagnostic.span is not None
    assert text[found.findings[0].diagnostic.span.start :].startswith("{{ what }}")
    found = look(project, file, "SELECT {{ nothing }} FROM visits")
    assert found.setting is not None and [d.code for d in found.trouble] == ["DP903"]


def test_what_is_offered_at_a_place(folder: Path) -> None:
    (folder / "dpsql.toml").write_text('policy = "clinic.yaml"\n')
    text = (
        "SELECT mean(cost) AS m FROM visits;\n"
        "  SELECT cost, COUNT(*) FROM visits GROUP BY cost; SELECT costt FROM visits"
    )
    found = look(FileSettings(), folder / "q.sql", text)
    assert codes(found) == ["DP105", "DP301", "DP103"]

    def titles(place: str) -> list[tuple[str, bool]]:
        at = text.index(place)
        return [(a.title, a.preferred) for a in actions(found, Span(at, at))]

    assert titles("mean") == [("DP105: write avg", True)]
    assert titles("costt") == [("DP103: did you mean cost?", False)]
    assert titles("cost;") == [("Ignore DP301 for this statement", False)]
    assert titles("FROM") == []
    everything = fix_all(found, "q.sql")
    assert everything is not None and everything.edits[0].text == text.replace("mean", "avg")
    assert fix_all(look(FileSettings(), folder / "q.sql", "SELECT COUNT(*) FROM visits"), "q.sql") is None
    # Behind another statement there is no line of its own for a comment.
    beside = look(FileSettings(), folder / "q.sql", "SELECT 1; SELECT cost, COUNT(*) FROM visits GROUP BY cost")
    assert actions(beside, Span(0, 99)) == []


def test_where_several_names_are_near_each_is_offered(folder: Path) -> None:
    text = "-- 名\nSELECT 1;\nSELECT COUNT(*), SUM(coste) FROM visits WHERE cost > 1"
    (folder / "dpsql.toml").write_text('policy = "clinic.yaml"\n')
    found = look(FileSettings(), folder / "q.sql", text)
    at = text.index("coste")
    offered = actions(found, Span(at, at))
    assert [(a.title, a.edits[0].span, a.edits[0].text, a.preferred) for a in offered] == [
        ("DP103: did you mean cost?", Span(at, at + 5), "cost", False),
        ("DP103: did you mean code?", Span(at, at + 5), "code", False),
    ]


def test_the_server_is_refused_with_the_repair_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Any] = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("lsprotocol", "pygls"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "dpsql.faces.editor.language_server", raising=False)
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Rejected) as refused:
        lsp.run(None, None)
    assert refused.value.diagnostics[0].help == ("install them:  pip install 'dpsql[lsp]'",)


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(Rejected, match="unknown SQL dialect"):
        lsp.run(None, "klingon")


def test_an_error_of_dpsql_itself_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or what was found in an older text would stay shown."""

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("dpsql.faces.editor.file_settings.check_document", broken)
    found = look(FileSettings(), folder / "q.sql", "SELECT 1")
    assert [(d.code, "itself failed" in d.message) for d in found.trouble] == [("DP904", True)]
    assert found.findings == () and found.text == "SELECT 1" and found.setting is not None
    assert actions(found, Span(0, 8)) == [] and fix_all(found, "q.sql") is None


def test_code_actions_do_not_hold_up_the_editor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template may take seconds to render: the loop that answers the editor goes on meanwhile."""
    types = pytest.importorskip("lsprotocol.types")
    workspace = pytest.importorskip("pygls.workspace")
    from dpsql.faces.editor import language_server as module

    server = module.make_server()
    uri = (folder / "q.sql").as_uri()
    server.protocol._workspace = workspace.Workspace(None)
    server.workspace.put_text_document(types.TextDocumentItem(uri, "sql", 1, "SELECT SUM(fee) FROM visits"))
    going_on = threading.Event()

    def slow(*given: object) -> Look:
        assert going_on.wait(60), "the loop waits for the check"
        return look(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "look", slow)

    async def run() -> Look:
        document = server.document(uri)
        assert document is not None
        asked = asyncio.create_task(server.look_of(document))
        await asyncio.sleep(0)
        going_on.set()
        return await asked

    found = asyncio.run(run())
    assert server.looks[uri] == (1, found) and found.text.startswith("SELECT")
