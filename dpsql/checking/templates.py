"""Files with Jinja, rendered by sqlfluff's templater: documents whose findings point into the template.

Optional (`pip install 'dpsql[templates]'`) and loaded only when it is asked for. Templates run in Jinja's sandbox:
they see the given variables and, only if a folder of macros is named, those macros; no file of the project is loaded
on its own, no Python library ever. A name that is not given is a refusal, not an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dpsql.checking.document import Document
from dpsql.checking.mapping import Change, Piece, edited
from dpsql.checking.mapping import Mapping as Back
from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject

_MOST_CHARACTERS: Final = 1_000_000
_TAG = re.compile(r"\{[{%#]")
_LINE_END = re.compile(r"\r\n?")


@dataclass(frozen=True, slots=True)
class Templates:
    """What templates may use. variables: name → text, number, boolean, list or mapping. macros: folders or files."""

    variables: Mapping[str, Any] = field(default_factory=dict)
    macros: tuple[str, ...] = ()


class Templater:
    """Renders files. Raises Rejected DP903 when made without sqlfluff."""

    def __init__(self, templates: Templates) -> None:
        try:
            from sqlfluff.core import FluffConfig
            from sqlfluff.core.errors import SQLFluffSkipFile, SQLTemplaterError
            from sqlfluff.core.templaters import JinjaTemplater
        except ImportError:
            raise reject(
                "DP903", "rendering Jinja templates needs sqlfluff, which is not installed",
                help=["pip install 'dpsql[templates]'"],
            ) from None  # fmt: skip
        section: dict[str, Any] = {"apply_dbt_builtins": False}
        if templates.macros:
            section["load_macros_from_path"] = ",".join(templates.macros)
        # Nothing of the project's own configuration: it could name libraries, which are Python code.
        self._config = FluffConfig(
            configs={"core": {"dialect": "ansi"}, "templater": {"jinja": section}}, ignore_local_config=True
        )
        self._templater = JinjaTemplater(override_context=dict(templates.variables))
        self._failures = (SQLTemplaterError, SQLFluffSkipFile)

    def document(self, source: Source) -> Document:
        """The rendered file. Raises Rejected DP903, pointing into the file: an unknown name, a broken tag."""
        if not _TAG.search(source.text):
            return Document(source)
        text, plain = edited(source.text, [Change(Span(*m.span()), "\n") for m in _LINE_END.finditer(source.text)])
        try:
            found, problems = self._templater.process(in_str=text, fname=source.name, config=self._config)
        except self._failures as error:
            raise _broken(source, text, plain, error) from None
        except Exception:  # whatever a template's own expressions raise
            raise reject("DP903", "the template cannot be rendered", source=source, help=[_HELP]) from None
        if problems:
            names = [_broken(source, text, plain, problem) for problem in problems]
            raise Rejected([d for refusal in names for d in refusal.diagnostics])
        if len(found.templated_str) > _MOST_CHARACTERS:
            raise reject(
                "DP903", f"the rendered template is longer than {_MOST_CHARACTERS:,} characters", source=source
            )
        way = _back(found.sliced_file).after(plain)
        return Document(source, found.templated_str, way, None)


_HELP: Final = "templates see the variables given with  --template-var NAME=VALUE  or in  [tool.dpsql.templates]"


def _back(slices: Sequence[Any]) -> Back:
    """From sqlfluff's slices: literal ones are the same characters, all others are at their tag."""
    pieces = []
    for part in slices:
        start, end = part.templated_slice.start, part.templated_slice.stop
        origin = Span(part.source_slice.start, part.source_slice.stop)
        if end > start:
            pieces.append(
                Piece(start, end, origin, part.slice_type == "literal" and origin.end - origin.start == end - start)
            )
    return Back(tuple(pieces))


def _broken(source: Source, text: str, plain: Back, error: Any) -> Rejected:
    """sqlfluff's complaint in our words, at its line and column if it tells them."""
    said = str(getattr(error, "desc", lambda: "")() or error).strip()
    unknown = re.search(r"Undefined jinja template variable: '([^']*)'", said)
    lines = text.split("\n")
    line, column = int(getattr(error, "line_no", 0) or 0), int(getattr(error, "line_pos", 0) or 0)
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
