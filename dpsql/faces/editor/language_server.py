"""The language server: diagnostics while typing, hover, completion and quick fixes over the editor's protocol.

Reads texts, configuration and policy; opens no data and no ledger. Needs the extra `lsp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from dpsql import __version__
from dpsql.diagnostics.diagnostic import Diagnostic, Edit, Source, Span
from dpsql.diagnostics.errors import Error
from dpsql.faces.check.examine.check_settings import Asked
from dpsql.faces.editor import actions as offers
from dpsql.faces.editor.completion import Candidate, complete
from dpsql.faces.editor.file_settings import FileSettings, Look, Setting, look, readable
from dpsql.faces.editor.hover import hover
from dpsql.faces.editor.text_positions import Lines

DEBOUNCE = 0.2
"""Seconds of quiet after which a text that is being typed is checked."""
FIX_ALL = "source.fixAll.dpsql"

_SETTINGS = (".yaml", ".yml", ".toml")
_KINDS = {
    "column": types.CompletionItemKind.Field,
    "alias": types.CompletionItemKind.Variable,
    "relation": types.CompletionItemKind.Struct,
    "table": types.CompletionItemKind.Class,
    "function": types.CompletionItemKind.Function,
    "aggregate": types.CompletionItemKind.Function,
    "option": types.CompletionItemKind.Property,
    "type": types.CompletionItemKind.TypeParameter,
    "keyword": types.CompletionItemKind.Keyword,
}


class EditorServer(LanguageServer):
    """One editor's session. asked: what the command line says; the editor's initialisation options are weaker."""

    def __init__(self, version: str, asked: Asked) -> None:
        super().__init__("dpsql", version, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.asked = asked
        self.project = FileSettings(asked)
        self.looks: dict[str, tuple[int | None, Look]] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.elsewhere: dict[str, dict[str, list[types.Diagnostic]]] = {}
        self._lines = Lines("")

    # --- texts -----------------------------------------------------------------------------------------------------

    def lines(self, text: str) -> Lines:
        """A text in the encoding that was agreed on. The last one is kept: each of its findings asks for it."""
        agreed = self.workspace.position_codec.encoding
        encoding = agreed.value if isinstance(agreed, types.PositionEncodingKind) else agreed or "utf-16"
        if (self._lines.text, self._lines.encoding) != (text, encoding):
            self._lines = Lines(text, encoding)
        return self._lines

    def text_of(self, uri: str) -> str:
        """What stands in the editor."""
        document = self.document(uri)
        return "" if document is None else readable(document.source)

    def path_of(self, uri: str) -> Path:
        """Where a file lies; a new one without a place is taken to lie in the workspace's folder."""
        path = uris.to_fs_path(uri)
        if path is not None and uri.startswith("file:"):
            return Path(path)
        root = self.workspace.root_path
        return Path(root or ".").absolute() / "untitled.sql"

    def document(self, uri: str) -> TextDocument | None:
        """An open document. pygls calls it by its URI as the editor writes it, or (since 2.1) with %20 read as a blank.

        None: the editor has closed it meanwhile.
        """
        documents = self.workspace.text_documents
        found: TextDocument | None = documents.get(uri) or documents.get(unquote(uri))
        return found

    def is_sql(self, uri: str) -> bool:
        """Whether a document is SQL: everything but settings."""
        return not uri.lower().endswith(_SETTINGS)

    # --- diagnostics -----------------------------------------------------------------------------------------------

    def schedule(self, uri: str, delay: float) -> None:
        """Check a document after a while, unless it changes before."""
        waiting = self.waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()
        self.waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri, delay))

    def schedule_all(self) -> None:
        """Check every open document again: the policy or the configuration may have changed."""
        for document in [*self.workspace.text_documents.values()]:
            if self.is_sql(document.uri):
                self.schedule(document.uri, 0)

    async def _check(self, uri: str, delay: float) -> None:
        await asyncio.sleep(delay)
        document = self.document(uri)
        if document is None:
            return
        version = document.version
        found = await self._look(uri, document.source)
        if self._is_now(uri, version):
            self.looks[uri] = version, found
            self._publish(uri, version, found)

    async def _look(self, uri: str, text: str) -> Look:
        """In a thread: a template may take seconds, and the editor is to be answered meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, look, self.project, self.path_of(uri), text)

    def _is_now(self, uri: str, version: int | None) -> bool:
        now = self.document(uri)
        return now is not None and now.version == version

    async def look_of(self, document: TextDocument) -> Look:
        """What is known of an open text as it stands now; found out if it is not."""
        uri = document.uri
        version, text = document.version, document.source
        known = self.looks.get(uri)
        if known is not None and known[0] == version and known[1].text == readable(text):
            return known[1]
        found = await self._look(uri, text)
        if self._is_now(uri, version):
            self.looks[uri] = version, found
        return found

    def setting_of(self, uri: str) -> Setting | None:
        """What holds for an open document, without checking it; None for other languages and without a policy."""
        if not self.is_sql(uri) or self.document(uri) is None:
            return None
        try:
            return self.project.setting(self.path_of(uri).parent)
        except Error:
            return None

    def _publish(self, uri: str, version: int | None, found: Look) -> None:
        own = Source(found.text, str(self.path_of(uri)))
        diagnostics = [self.diagnostic(f.diagnostic, own) for f in found.findings]
        elsewhere: dict[str, list[types.Diagnostic]] = {}
        for d in found.trouble:
            here = d.source is not None and d.span is not None and d.source.text == own.text
            diagnostics.append(self.diagnostic(d, own) if here else self._trouble(d))
            if d.source is not None and d.source.text and Path(d.source.name).suffix in _SETTINGS:
                place = uris.from_fs_path(str(Path(d.source.name).absolute()))
                if place is not None:
                    elsewhere.setdefault(place, []).append(self.diagnostic(d, d.source))
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))
        self.publish_elsewhere(uri, elsewhere)

    def publish_elsewhere(self, uri: str, found: dict[str, list[types.Diagnostic]]) -> None:
        """What a document's check says of policies and configurations; what it said before is gone."""
        places = [*{**self.elsewhere.pop(uri, {}), **found}]
        self.elsewhere[uri] = found
        for place in places:
            diagnostics = next((said[place] for said in self.elsewhere.values() if place in said), [])
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(place, diagnostics))

    def diagnostic(self, d: Diagnostic, own: Source) -> types.Diagnostic:
        """A finding as the protocol has it; one that points into another text stands at the beginning of `own`."""
        about = d.source is not None and d.source.text == own.text
        span = d.span if about and d.span is not None else Span(0, 0)
        text = [d.message if not d.label else f"{d.message}: {d.label}"]
        if not about and d.source is not None:
            text.append(f"in {d.source.name}")
        return types.Diagnostic(
            range=self.range_of(self.lines(own.text), span),
            message="\n".join([*text, *(f"help: {advice}" for advice in d.help)]),
            severity=types.DiagnosticSeverity.Warning if d.severity == "warning" else types.DiagnosticSeverity.Error,
            code=d.code,
            source="dpsql",
        )

    def _trouble(self, d: Diagnostic) -> types.Diagnostic:
        """Why nothing can be said about a text, at its beginning."""
        name = "" if d.source is None else f"{d.source.name}: "
        return types.Diagnostic(
            range=types.Range(types.Position(0, 0), types.Position(0, 0)),
            message="\n".join([f"not checked: {name}{d.message}", *(f"help: {advice}" for advice in d.help)]),
            severity=types.DiagnosticSeverity.Error,
            code=d.code,
            source="dpsql",
        )

    def range_of(self, lines: Lines, span: Span) -> types.Range:
        """A span as the protocol has it."""
        start, end = lines.position(span.start), lines.position(span.end)
        return types.Range(types.Position(*start), types.Position(*end))

    def edit_of(self, lines: Lines, edit: Edit) -> types.TextEdit:
        """An edit as the protocol has it."""
        return types.TextEdit(self.range_of(lines, edit.span), edit.text)


def make_server(asked: Asked | None = None) -> EditorServer:
    """A server with all its features, which is started with `start_io()`."""
    server = EditorServer(__version__, asked or Asked())
    server.feature(types.INITIALIZE)(_initialize)
    server.feature(types.INITIALIZED)(_initialized)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(_opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_changed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(_saved)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_closed)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_watched)
    server.feature(types.TEXT_DOCUMENT_HOVER)(_hover)
    server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=["."]))(_complete)
    kinds: Sequence[str] = [types.CodeActionKind.QuickFix, FIX_ALL]
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))(_actions)
    return server


def _initialize(ls: EditorServer, params: types.InitializeParams) -> None:
    given: Any = params.initialization_options
    options = given if isinstance(given, dict) else {}
    policy, dialect = options.get("policy"), options.get("dialect")
    root = Path(ls.workspace.root_path or ".")
    if isinstance(policy, str) and policy and ls.asked.get("policy") is None:
        policy = str((root / policy).absolute())
    else:
        policy = ls.asked.get("policy")
    dialect = ls.asked.get("dialect") or (dialect if isinstance(dialect, str) and dialect else None)
    ls.project = FileSettings(Asked(policy=policy, dialect=dialect))


def _initialized(ls: EditorServer, params: types.InitializedParams) -> None:
    """Ask to be told of changes of policies and configurations, where the editor can tell."""
    workspace = ls.client_capabilities.workspace
    watching = None if workspace is None else workspace.did_change_watched_files
    if watching is None or not watching.dynamic_registration:
        return
    watchers = [
        types.FileSystemWatcher(pattern) for pattern in ("**/*.{yaml,yml}", "**/dpsql.toml", "**/pyproject.toml")
    ]
    ls.client_register_capability(
        types.RegistrationParams(
            [
                types.Registration(
                    "dpsql-files",
                    types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
                    types.DidChangeWatchedFilesRegistrationOptions(watchers),
                )
            ]
        )
    )


async def _opened(ls: EditorServer, params: types.DidOpenTextDocumentParams) -> None:
    if ls.is_sql(params.text_document.uri):
        ls.schedule(params.text_document.uri, 0)


async def _changed(ls: EditorServer, params: types.DidChangeTextDocumentParams) -> None:
    if ls.is_sql(params.text_document.uri):
        ls.schedule(params.text_document.uri, DEBOUNCE)


async def _saved(ls: EditorServer, params: types.DidSaveTextDocumentParams) -> None:
    if ls.is_sql(params.text_document.uri):
        ls.schedule(params.text_document.uri, 0)
    else:
        ls.schedule_all()


async def _closed(ls: EditorServer, params: types.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    waiting = ls.waiting.pop(uri, None)
    if waiting is not None:
        waiting.cancel()
    ls.looks.pop(uri, None)
    if ls.is_sql(uri):
        ls.publish_elsewhere(uri, {})
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


async def _watched(ls: EditorServer, params: types.DidChangeWatchedFilesParams) -> None:
    ls.schedule_all()


def _hover(ls: EditorServer, params: types.HoverParams) -> types.Hover | None:
    uri = params.text_document.uri
    setting = ls.setting_of(uri)
    if setting is None:
        return None
    text = ls.text_of(uri)
    lines = ls.lines(text)
    offset = lines.offset(params.position.line, params.position.character)
    found = hover(text, offset, setting.policy, setting.options.dialect, setting.options.parameters)
    if found is None:
        return None
    content = types.MarkupContent(types.MarkupKind.Markdown, found.text)
    return types.Hover(content, ls.range_of(lines, found.span))


def _complete(ls: EditorServer, params: types.CompletionParams) -> list[types.CompletionItem]:
    uri = params.text_document.uri
    setting = ls.setting_of(uri)
    if setting is None:
        return []
    text = ls.text_of(uri)
    lines = ls.lines(text)
    offset = lines.offset(params.position.line, params.position.character)
    found = complete(text, offset, setting.policy, setting.options.dialect)
    return [_item(ls, lines, c, offset, number) for number, c in enumerate(found)]


def _item(server: EditorServer, lines: Lines, candidate: Candidate, offset: int, number: int) -> types.CompletionItem:
    span = Span(candidate.start, offset)
    quoted = lines.text[span.start : span.start + 1] in ('"', "`", "[")
    return types.CompletionItem(
        label=candidate.label,
        kind=_KINDS[candidate.kind],
        detail=candidate.detail or None,
        documentation=candidate.doc or None,
        sort_text=f"{number:05}",
        filter_text=candidate.text if quoted else candidate.label.rpartition(".")[2],
        text_edit=types.TextEdit(server.range_of(lines, span), candidate.text),
    )


async def _actions(ls: EditorServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    document = ls.document(uri)
    if document is None or not ls.is_sql(uri):
        return []
    found = await ls.look_of(document)
    lines = ls.lines(found.text)
    start, end = params.range.start, params.range.end
    span = Span(lines.offset(start.line, start.character), lines.offset(end.line, end.character))
    only = params.context.only
    listed: list[types.CodeAction] = []
    own = Source(found.text)
    if _wanted(types.CodeActionKind.QuickFix.value, only):
        for action in offers.actions(found, span):
            about = None if action.finding is None else [ls.diagnostic(action.finding.diagnostic, own)]
            edits = [ls.edit_of(lines, edit) for edit in action.edits]
            listed.append(
                types.CodeAction(
                    title=action.title,
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=about,
                    is_preferred=action.preferred,
                    edit=types.WorkspaceEdit(changes={uri: edits}),
                )
            )
    if only and _wanted(FIX_ALL, only):
        everything = offers.fix_all(found, str(ls.path_of(uri)))
        if everything is not None:
            edits = [ls.edit_of(lines, edit) for edit in everything.edits]
            listed.append(
                types.CodeAction(title=everything.title, kind=FIX_ALL, edit=types.WorkspaceEdit(changes={uri: edits}))
            )
    return listed


def _wanted(kind: str, only: Sequence[types.CodeActionKind | str] | None) -> bool:
    """Whether a kind of action is asked for: `source.fixAll` asks for `source.fixAll.dpsql`, too."""
    asked = [o.value if isinstance(o, types.CodeActionKind) else o for o in only or ()]
    return not asked or any(kind == a or kind.startswith(f"{a}.") for a in asked)
