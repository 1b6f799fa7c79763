"""The language server as an editor meets it: a process of its own, spoken to on its standard input and output."""

from __future__ import annotations

import json
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

POLICY = Path(__file__).parents[3] / "fixtures" / "policies" / "clinic.yaml"
LIMIT = 120

pytestmark = pytest.mark.processes

GUARDED = """
import atexit, sys

def unopened():
    for name in ("duckdb", "numpy", "pandas", "pyarrow"):
        if name in sys.modules:
            sys.stderr.write(f"imported {name}\\n")

atexit.register(unopened)

def opened(event, args):
    if event == "open" and str(args[0]).endswith((".duckdb", ".parquet", ".sqlite")):
        sys.stderr.write(f"opened {args[0]}\\n")

sys.addaudithook(opened)
from dpsql.faces.cli.main import main
sys.argv = ["dpsql", "lsp"]
main()
"""
"""The command, telling on its standard error of engines imported and of data opened."""


class Editor:
    """Writes messages, reads them in a thread, and waits for those that are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", GUARDED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
        )
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self.kept: list[dict[str, Any]] = []
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while line := stream.readline():
            length = 0
            while line.strip():
                name, _, value = line.decode().partition(":")
                length = int(value) if name.lower() == "content-length" else length
                line = stream.readline()
            self.messages.put(json.loads(stream.read(length)))

    def send(self, method: str, params: object, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = json.dumps(message if number is None else {**message, "id": number}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def wait(self, wanted: Any) -> dict[str, Any]:
        """The first message that is wanted; others are kept for later."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.messages.get(timeout=LIMIT)
            if wanted(message):
                return message
            self.kept.append(message)

    def ask(self, method: str, params: object) -> Any:
        self.number += 1
        number = self.number
        self.send(method, params, number)
        answer = self.wait(lambda m: m.get("id") == number and "method" not in m)
        assert "error" not in answer, answer
        return answer["result"]

    def diagnostics(self, uri: str, version: int | None = None) -> list[dict[str, Any]]:
        """The next diagnostics of a document (of this version)."""

        def wanted(m: dict[str, Any]) -> bool:
            params = m.get("params") or {}
            about = m.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri
            return about and (version is None or params.get("version") == version)

        found: list[dict[str, Any]] = self.wait(wanted)["params"]["diagnostics"]
        return found

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": self.uri(name), "languageId": "sql", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(self.uri(name), 1)

    def change(self, name: str, text: str, version: int) -> None:
        document = {"uri": self.uri(name), "version": version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def at(self, name: str, line: int, character: int) -> dict[str, Any]:
        return {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    folder = tmp_path_factory.mktemp("repository")
    shutil.copy(POLICY, folder / "clinic.yaml")
    (folder / "dpsql.toml").write_text('policy = "clinic.yaml"\nignore = ["DP504"]\n')
    found = Editor(folder)
    result = found.ask(
        "initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}, "workspaceFolders": None}
    )
    assert result["serverInfo"]["name"] == "dpsql"
    assert result["capabilities"]["positionEncoding"] == "utf-16"
    assert {"hoverProvider", "completionProvider", "codeActionProvider"} <= result["capabilities"].keys()
    found.send("initialized", {})
    yield found
    assert found.ask("shutdown", None) is None
    found.send("exit", None)
    _, error = found.process.communicate(timeout=LIMIT)
    assert found.process.returncode == 0
    assert b"imported" not in error and b"opened" not in error and b"Traceback" not in error, error.decode()


def span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def test_diagnostics_follow_the_text(editor: Editor) -> None:
    """Places count UTF-16 units: 😀 is two of them; a tab is one."""
    found = editor.open("a.sql", "SELECT COUNT(*) FROM visits;\r\n\t/* 名😀 */ SELECT SUM(costt), foo(1) FROM visits")
    assert [(d["code"], d["severity"], d["source"]) for d in found] == [("DP103", 1, "dpsql"), ("DP105", 1, "dpsql")]
    assert found[0]["range"] == span((1, 22), (1, 27))
    assert found[0]["message"].startswith("column costt does not exist\nhelp: did you mean cost?")
    assert found[1]["range"] == span((1, 30), (1, 36))
    for version in range(2, 6):  # only the last of several quick changes has to be told
        editor.change("a.sql", f"SELECT COUNT(*) FROM visits WHERE x{version} > 1", version)
    (last,) = editor.diagnostics(editor.uri("a.sql"), 5)
    assert "x5" in last["message"]
    editor.change("a.sql", "SELECT COUNT(*) FROM visits", 6)
    assert editor.diagnostics(editor.uri("a.sql"), 6) == []
    editor.send("textDocument/didClose", {"textDocument": {"uri": editor.uri("a.sql")}})
    assert editor.diagnostics(editor.uri("a.sql")) == []


@pytest.mark.parametrize("name", ["ü b+(1).sql", "%41%20.sql", "c%3A/x.sql"])
def test_names_that_are_escaped_in_a_uri(editor: Editor, name: str) -> None:
    """An editor on Windows escapes the colon of every drive: its URIs are all of this kind."""
    folder = editor.folder.as_uri()
    uri = f"{folder}/{name}" if "/" in name else editor.uri(name)
    about = {"textDocument": {"uri": uri}}
    document = {
        "uri": uri,
        "languageId": "sql",
        "version": 1,
        "text": "SELECT mean(cost) AS m FROM visits FETCH FIRST 1 ROW ONLY",
    }
    editor.send("textDocument/didOpen", {"textDocument": document})
    assert [d["code"] for d in editor.diagnostics(uri, 1)] == ["DP105"]
    editor.send("workspace/didChangeWatchedFiles", {"changes": []})  # everything is looked at again
    assert [d["code"] for d in editor.diagnostics(uri, 1)] == ["DP105"]
    place = {**about, "position": {"line": 0, "character": 13}}
    assert "visits.cost" in editor.ask("textDocument/hover", place)["contents"]["value"]
    assert editor.ask("textDocument/completion", {**about, "position": {"line": 0, "character": 14}})
    marked = {**about, "range": span((0, 7), (0, 8)), "context": {"diagnostics": []}}
    (action,) = editor.ask("textDocument/codeAction", marked)
    assert list(action["edit"]["changes"]) == [uri]
    editor.send("textDocument/didClose", about)
    assert editor.diagnostics(uri) == []
    for method in ("hover", "completion"):  # asked before the editor knew
        assert not editor.ask(f"textDocument/{method}", place)
    assert not editor.ask("textDocument/codeAction", marked)


def test_hover(editor: Editor) -> None:
    text = (
        "-- 😀\nSELECT region, SUM(cost) AS s /* 😀 */, 'é' AS e\n"
        "FROM visits v JOIN patients p USING (patient_id) GROUP BY 1, 3"
    )
    editor.open("hover.sql", text)
    aggregate = editor.ask("textDocument/hover", editor.at("hover.sql", 1, 16))
    assert aggregate["range"] == span((1, 15), (1, 18))
    assert "sensitivity 100000 (l1), laplace noise" in aggregate["contents"]["value"]
    assert "± " in aggregate["contents"]["value"] and aggregate["contents"]["kind"] == "markdown"
    column = editor.ask("textDocument/hover", editor.at("hover.sql", 1, 20))
    assert column["contents"]["value"] == "column **visits.cost** — double, bounds [0, 5000]"
    table = editor.ask("textDocument/hover", editor.at("hover.sql", 2, 6))["contents"]["value"]
    assert "unit patient" in table and "at most 20 rows per unit" in table and "stability patient=1" in table
    join = editor.ask("textDocument/hover", editor.at("hover.sql", 2, 15))["contents"]["value"]
    assert "stability patient=1 id" in join and "join on the privacy unit" in join
    assert editor.ask("textDocument/hover", editor.at("hover.sql", 0, 4)) is None
    assert editor.ask("textDocument/hover", editor.at("hover.sql", 99, 99)) is None


def test_completion(editor: Editor) -> None:
    editor.open("complete.sql", "SELECT '😀', v.co FROM visits v")
    items = editor.ask("textDocument/completion", editor.at("complete.sql", 0, 17))
    assert [i["label"] for i in items] == ["cost", "code"]
    assert items[0]["textEdit"] == {"range": span((0, 15), (0, 17)), "newText": "cost"}
    assert items[0]["detail"] == "double, bounds [0, 5000]"
    editor.change("complete.sql", "SELECT COUNT(*) FROM ", 2)
    tables = editor.ask("textDocument/completion", editor.at("complete.sql", 0, 21))
    assert {"visits", "patients", "icd10"} <= {i["label"] for i in tables}
    editor.change("complete.sql", "SELECT COUNT(*) FROM visits WHERE code = 'a", 3)
    assert editor.ask("textDocument/completion", editor.at("complete.sql", 0, 43)) == []


def test_quick_fixes(editor: Editor) -> None:
    text = "SELECT '😀' AS x, SUM(costt) AS m FROM visits GROUP BY 1;\nSELECT mean(cost) AS m FROM visits"
    uri = editor.uri("fix.sql")
    editor.open("fix.sql", text)

    def actions(where: dict[str, Any], **context: object) -> list[dict[str, Any]]:
        params = {"textDocument": {"uri": uri}, "range": where, "context": {"diagnostics": [], **context}}
        found: list[dict[str, Any]] = editor.ask("textDocument/codeAction", params)
        return found

    (mean,) = [a for a in actions(span((1, 8), (1, 8))) if a["kind"] == "quickfix"]
    assert mean["isPreferred"] and mean["diagnostics"][0]["code"] == "DP105"
    assert mean["edit"]["changes"] == {uri: [{"range": span((1, 7), (1, 11)), "newText": "avg"}]}
    guesses = {a["title"]: a for a in actions(span((0, 0), (0, 40)))}
    guess = guesses["DP103: did you mean cost?"]
    assert guess["isPreferred"] is False
    assert guess["edit"]["changes"] == {uri: [{"range": span((0, 22), (0, 27)), "newText": "cost"}]}
    (everything,) = actions(span((0, 0), (0, 0)), only=["source.fixAll"])
    assert everything["kind"] == "source.fixAll.dpsql"
    (edit,) = everything["edit"]["changes"][uri]
    assert edit["newText"].endswith("SELECT avg(cost) AS m FROM visits") and "costt" in edit["newText"]
    assert not any("Ignore" in title for title in guesses)  # nothing protects an answer that cannot be bounded


def test_what_may_be_ignored_is_ignored_with_a_reason(editor: Editor) -> None:
    uri = editor.uri("ignore.sql")
    found = editor.open("ignore.sql", "SELECT 1;\n\n  SELECT cost, COUNT(*) FROM visits GROUP BY cost")
    params = {"textDocument": {"uri": uri}, "range": found[0]["range"], "context": {"diagnostics": []}}
    actions = editor.ask("textDocument/codeAction", params)
    ignoring = next(a for a in actions if a["title"].startswith("Ignore"))
    (edit,) = ignoring["edit"]["changes"][uri]
    assert edit["range"] == span((2, 2), (2, 2))
    assert edit["newText"] == f"-- dpsql: ignore[{found[0]['code']}] say here why it is right\n  "
    codes = {d["code"] for d in found}
    text = f"SELECT 1;\n\n  {edit['newText']}SELECT cost, COUNT(*) FROM visits GROUP BY cost"
    editor.change("ignore.sql", text, 2)
    assert {d["code"] for d in editor.diagnostics(uri, 2)} == codes - {found[0]["code"]}


def test_a_changed_policy_is_read_again_and_its_mistakes_are_shown(editor: Editor) -> None:
    policy = editor.folder / "clinic.yaml"
    uri, text = policy.as_uri(), policy.read_text()
    assert editor.open("policy.sql", "SELECT SUM(cost) FROM visits") == []
    try:
        policy.write_text(text.replace("bounds: [0, 5000]", "bounds: [5000, 0]"))
        editor.send("textDocument/didSave", {"textDocument": {"uri": uri}})
        (here,) = editor.diagnostics(editor.uri("policy.sql"), 1)
        assert here["message"].startswith("not checked: ")
        (there,) = editor.diagnostics(uri)
        line = text.split("\n").index(next(x for x in text.split("\n") if "bounds: [0, 5000]" in x))
        assert there["code"] == "DP003" and there["range"]["start"]["line"] == line
        policy.write_text(text.replace("bounds: [0, 5000], ", ""))
        changed = {"changes": [{"uri": uri, "type": 2}]}
        editor.send("workspace/didChangeWatchedFiles", changed)
        assert [d["code"] for d in editor.diagnostics(editor.uri("policy.sql"), 1)] == ["DP201"]
        while editor.diagnostics(uri):
            pass  # other open texts may still say what was wrong
    finally:
        policy.write_text(text)
        editor.send("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    assert editor.diagnostics(editor.uri("policy.sql"), 1) == []


def test_the_watch_over_engines_and_data_notices_both(tmp_path: Path) -> None:
    """The process that the tests above talk to says nothing on its standard error; this is what it would say."""
    (tmp_path / "x.parquet").write_text("")
    code = GUARDED.partition("from dpsql.faces.cli")[0] + "import duckdb\nopen('x.parquet').close()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, timeout=LIMIT, check=True)
    assert b"imported duckdb" in done.stderr and b"opened x.parquet" in done.stderr
