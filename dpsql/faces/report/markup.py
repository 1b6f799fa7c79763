"""HTML of parts: whatever a policy or a ledger says is text, and stays text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from dpsql.diagnostics.layout import visible


def text(said: object) -> str:
    """Any text as HTML that shows it: no markup, and no character that would turn the line or hide in it."""
    return html.escape("".join(c if c == "\n" else visible(c) for c in str(said)))


def paragraph(*said: str, kind: str = "") -> str:
    """A paragraph of HTML that is finished."""
    return f"<p{_class(kind)}>{' '.join(said)}</p>"


def bullets(items: Iterable[str], kind: str = "") -> str:
    """A list of HTML that is finished."""
    return f"<ul{_class(kind)}>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "", above: Sequence[tuple[str, int]] = ()
) -> str:
    """A table of HTML that is finished; on a narrow screen each row is a card, whose lines name their column.

    above: names that stand over several columns each, from the left.
    """
    spans = "".join(_head(name, columns) for name, columns in above)
    over = [name for name, columns in above for _ in range(columns)] or [""] * len(header)
    names = "".join(_head(name) for name in header)
    head = (f"<tr class=over>{spans}</tr>" if above else "") + f"<tr>{names}</tr>"
    called = [f"{outer}: {name}" if outer else name for outer, name in zip(over, header, strict=True)]
    body = "".join(
        "<tr>" + "".join(f'<td data-of="{name}">{cell}</td>' for name, cell in zip(called, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table{_class(kind)}><thead>{head}</thead><tbody>{body}</tbody></table>"


def _head(name: str, columns: int = 1) -> str:
    """A cell over so many columns; one without a name heads none."""
    return f"<th scope=col colspan={columns}>{name}</th>" if name else f"<td colspan={columns}></td>"


def section(anchor: str, title: str, *parts: str, kind: str = "") -> str:
    """A section with its heading, which is finished HTML."""
    return f'<section id="{anchor}"{_class(kind)}><h2>{title}</h2>{"".join(parts)}</section>'


def document(title: str, style: str, body: str) -> str:
    """A page that loads nothing and runs nothing."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{text(title)}</title><style>{style}</style></head><body>\n{body}\n</body></html>\n"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
