"""The words of a meta-command: quotes, variables, and where the next command begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dpsql.diagnostics.errors import reject
from dpsql.frontend.text.unfinished import Quoting, quoted

_ESCAPES: Final = {"n": "\n", "t": "\t", "\\": "\\", "'": "'"}


def words(text: str, value: Callable[[str], str | None]) -> tuple[list[str], str]:
    """The words of a command's arguments, and the rest, from the backslash on with which another command begins.

    'text' may hold spaces, '' and \\n, \\t, \\'; "text" keeps its quotes, as psql does for names; `:name`, `:'name'`
    and `:"name"` are variables, if `value` knows them. Raises Rejected: DP903 for a quote without its end, DP906 for
    backquotes.
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        if text[at] == "\\":
            return found, text[at:]
        word, at = _word(text, at, value)
        found.append(word)
    return found, ""


def _word(text: str, at: int, value: Callable[[str], str | None]) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(text) and not text[at].isspace():
        match text[at]:
            case "'":
                part, at = _literal(text, at)
            case '"':
                end = _end(text, at + 1, '"') + 1
                part, at = text[at:end], end
            case "`":
                raise reject(
                    "DP906", "`…` would run a program, and the shell runs none",
                    help=["leave the backquotes out"],
                    notes=["what is typed at the prompt reaches the data through the privacy analysis only"],
                )  # fmt: skip
            case ":":
                part, at = _variable(text, at, value)
            case character:
                part, at = character, at + 1
        parts.append(part)
    return "".join(parts), at


def _literal(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    at += 1
    while at < len(text):
        if text.startswith("''", at):
            parts.append("'")
            at += 2
        elif text[at] == "'":
            return "".join(parts), at + 1
        elif text[at] == "\\" and text[at + 1 : at + 2] in _ESCAPES and at + 1 < len(text):
            parts.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            parts.append(text[at])
            at += 1
    raise _open("'")


def _end(text: str, at: int, quote: str) -> int:
    end = text.find(quote, at)
    if end < 0:
        raise _open(quote)
    return end


def _open(quote: str) -> Exception:
    return reject("DP903", f"a {quote} has no end", help=[f"close it with another  {quote}"])


def _variable(text: str, at: int, value: Callable[[str], str | None]) -> tuple[str, int]:
    start, quoting = at + 1, ""
    if text[start : start + 1] in ("'", '"'):
        quoting = text[start]
        start += 1
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    after = end + 1 if quoting and text[end : end + 1] == quoting else end
    known = value(text[start:end]) if end > start and (not quoting or after > end) else None
    if known is None:
        return ":", at + 1
    quotes: dict[str, Quoting] = {"": "", "'": "'", '"': '"'}
    return quoted(known, quotes[quoting]), after


def unquoted(word: str) -> str:
    """A name without its double quotes."""
    return word[1:-1].replace('""', '"') if len(word) > 1 and word[0] == word[-1] == '"' else word
