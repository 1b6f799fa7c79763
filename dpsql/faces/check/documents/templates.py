"""Files with Jinja, rendered by sqlfluff's templater: documents whose findings point into the template.

Optional (`pip install 'dpsql[templates]'`) and loaded only when it is asked for. Templates run in Jinja's sandbox:
they see the given variables and, only if a folder of macros is named, those macros; no file of the project is loaded
on its own, no Python library ever. A name that is not given is a refusal, not an empty text, and so is a template that
takes too much time or memory (rendering.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.faces.check.documents.document import Document
from dpsql.faces.check.documents.mapping import Mapping as Back
from dpsql.faces.check.documents.mapping import TextChange, TextPiece, edited
from dpsql.faces.check.documents.rendering import (
    BROKEN,
    ENDED,
    LENGTH,
    MEMORY,
    MISSING,
    TIME,
    Problem,
    Rendered,
    Renderer,
    RenderingLimits,
)

_TAG = re.compile(r"\{[{%#]")
_LINE_END = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class Templates:
    """What templates may use. variables: name → text, number, boolean, list or mapping. macros: folders or files.

    limits: what rendering one file may take.
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    macros: tuple[str, ...] = ()
    limits: RenderingLimits = field(default_factory=RenderingLimits)


class Templater:
    """Renders files. Raises Rejected DP903 when made without sqlfluff."""

    def __init__(self, templates: Templates) -> None:
        if find_spec("sqlfluff") is None:
            raise _missing()
        self._limits = templates.limits
        self._render = Renderer(templates.variables, templates.macros, templates.limits)

    def document(self, source: Source) -> Document:
        """The rendered file. Raises Rejected DP903, pointing into the file: an unknown name, a broken tag; or that it
        takes too much time or memory."""
        if not _TAG.search(source.text):
            return Document(source)
        text, plain = edited(source.text, [TextChange(Span(*m.span()), "\n") for m in _LINE_END.finditer(source.text)])
        try:
            found = self._render(text, source.name)
        except OSError as error:
            reason = (error.strerror or "it cannot be started").lower()
            raise reject(
                "DP903", f"templates are rendered by a process of their own: {reason}", source=source
            ) from None
        if isinstance(found, Rendered):
            pieces = (TextPiece(start, end, Span(a, b), same) for start, end, a, b, same in found.pieces if end > start)
            return Document(source, found.text, Back(tuple(pieces)).after(plain), None)
        if found.why == MISSING:
            raise _missing()
        broken = [_broken(source, text, plain, problem) for problem in found.problems]
        if broken:
            raise Rejected([d for refusal in broken for d in refusal.diagnostics])
        said, *advice = self._refusals()[found.why]
        raise reject("DP903", said, source=source, help=advice)

    def _refusals(self) -> dict[str, tuple[str, str]]:
        most = self._limits
        return {
            BROKEN: ("the template cannot be rendered", _HELP),
            LENGTH: (f"the rendered template is longer than {most.characters:,} characters", _SHORTER),
            TIME: (f"rendering the template takes longer than {most.seconds:g} seconds", _SHORTER),
            MEMORY: (f"rendering the template takes more memory than {most.bytes // 1_000_000:,} MB", _SHORTER),
            ENDED: ("the process that rendered the template ended without a result", _SHORTER),
        }


def _missing() -> Rejected:
    return reject(
        "DP903", "rendering Jinja templates needs sqlfluff, which is not installed",
        help=["pip install 'dpsql[templates]'"],
    )  # fmt: skip


_SHORTER: Final = "look for a loop in a loop, or a text that is made long; or leave the file out:  exclude"
_HELP: Final = "templates see the variables given with  --template-var NAME=VALUE  or in  [tool.dpsql.templates]"


def _broken(source: Source, text: str, plain: Back, problem: Problem) -> Rejected:
    """sqlfluff's complaint in our words, at its line and column if it tells them."""
    said, line, column = problem.said, problem.line, problem.column
    unknown = re.search(r"Undefined jinja template variable: '([^']*)'", said)
    lines = text.split("\n")
    span = None
    if 1 <= line <= len(lines):
        start = sum(len(each) + 1 for each in lines[: line - 1]) + max(0, column - 1)
        span = plain(Span(start, start + len(unknown[1]) if unknown else max(start + 1, start + len(lines[line - 1]))))
    if unknown:
        dbt = unknown[1] in ("ref", "source", "var", "config", "this")
        advice = "for a dbt project:  dbt compile,  then  dpsql check --dbt DIR" if dbt else _HELP
        return reject(
            "DP903", f"the template uses {unknown[1]}, which is not given", source=source, span=span, help=[advice]
        )
    for frame in (r"^Failed to parse Jinja syntax\..*?Error: ", r"^Unrecoverable failure in Jinja templating: "):
        said = re.sub(frame, "", said, flags=re.DOTALL)
    first = re.sub(r"\. Have you correctly configured .*", "", said, flags=re.DOTALL).split("\n")[0].rstrip(".")
    return reject("DP903", f"the template cannot be rendered: {first[:200]}", source=source, span=span, help=[_HELP])
