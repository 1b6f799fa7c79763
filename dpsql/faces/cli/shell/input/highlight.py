"""Colours: of SQL and meta-commands while they are typed, and of EXPLAIN's tree."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from pygments.lexer import RegexLexer, bygroups, inherit
from pygments.lexers.sql import PostgresLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, Punctuation, Text, Token

_NUMBER: Final = r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"


class ShellLexer(PostgresLexer):  # type: ignore[misc]
    """SQL with meta-commands and variables."""

    name = "dpsql shell"
    aliases: ClassVar[list[str]] = ["dpsql"]
    url = ""
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"^\s*\\\S+", Keyword.Pseudo),
            (r"\\gx?\s*$", Keyword.Pseudo),
            (r"(?<![:\w]):(?:\w+|'\w+'|\"\w+\")", Name.Variable),
            inherit,
        ]
    }


class ExplainLexer(RegexLexer):  # type: ignore[misc]
    """EXPLAIN's text: tree lines, operators, facts, numbers, prices."""

    name = "dpsql explain"
    aliases: ClassVar[list[str]] = ["dpsql-explain"]
    url = ""
    flags = re.MULTILINE
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"^(cost:)(.*)$", bygroups(Keyword, Generic.Strong)),
            (r"^note: .*$", Comment),
            (r"^(release \d+)( · )", bygroups(Keyword, Punctuation)),
            (r"^  component .*$", Comment),
            (r"[│├└─]+", Punctuation),
            (r"(?<=[─ ])(release|scan|join|filter|group by|bound contributions of|order by|limit|project)\b", Keyword),
            (r"^(release|scan|join|filter|group by|order by|limit|project|union|window)\b", Keyword),
            (r"\b(stability)( )(\S+?=\S+)", bygroups(Name.Attribute, Text, Number)),
            (r"\brule \S+", Comment),
            (r"\bpublic\b", Name.Builtin),
            (_NUMBER, Number),
            (r"[A-Za-z_]\w*", Text),
            (r".", Text),
            (r"\n", Text),
        ]
    }


_ANSI: Final = (
    (Keyword, "1;34"),
    (Generic.Strong, "1"),
    (Name.Attribute, "36"),
    (Name.Builtin, "32"),
    (Number, "33"),
    (Comment, "2"),
    (Punctuation, "2"),
)


def painted_explain(text: str) -> str:
    """EXPLAIN's text with ANSI colours; without them it is the same text."""
    parts = []
    for kind, value in ExplainLexer(ensurenl=False, stripnl=False).get_tokens(text):
        code = next((code for base, code in _ANSI if kind in base), None)
        parts.append(f"\x1b[{code}m{value}\x1b[0m" if code and value.strip() else value)
    return "".join(parts)


STYLE: Final = {
    Token.Keyword: "bold ansiblue",
    Token.Keyword.Pseudo: "bold ansimagenta",
    Token.Name.Variable: "ansimagenta",
    Token.Name.Builtin: "ansicyan",
    Token.Literal.String: "ansigreen",
    Token.Literal.Number: "ansiyellow",
    Token.Comment: "italic ansibrightblack",
}
"""The colours of the prompt: the terminal's own sixteen, so that they fit light and dark ones."""
