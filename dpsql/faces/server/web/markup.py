"""HTML as values: whatever is text is escaped, and nothing else can be put into a page.

*Claim.* No text of an analyst, a policy or a database becomes a tag or an attribute. *Why.* A page is made of `Element`
alone; names of elements and attributes are this program's own words, every text and value is escaped when it is
written. *When it would be false.* If a text were marked as safe: there is no way to. *Tested by*
tests/faces/server/web/test_markup.py.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from dpsql.diagnostics.layout import visible

Node: TypeAlias = "Element | str | int | float | Sequence[Node] | None"
"""What may stand in an element: others, texts, nothing (None), or several of these."""
Value: TypeAlias = str | int | float | bool | None
"""Of an attribute: True stands alone, False and None are left out."""

_VOID: Final = frozenset({"meta", "link", "input", "br", "hr", "path", "rect", "circle", "line", "wbr"})


@dataclass(frozen=True, slots=True)
class Element:
    """A tag with its attributes and what stands in it."""

    name: str
    attributes: tuple[tuple[str, Value], ...] = ()
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return "".join(_written(self))


class ElementMaker(Protocol):
    """Makes elements of one name. Attributes are named as in HTML; `for_`, `class_` and `aria_label` where Python has
    other words."""

    def __call__(self, *children: Node, **attributes: Value) -> Element:
        """An element."""
        ...


class _Elements:
    """`h.p("text", class_="note")` → `<p class="note">text</p>`."""

    def __getattr__(self, name: str) -> ElementMaker:
        return self.of(name.rstrip("_"))

    def of(self, tag: str) -> ElementMaker:
        """The maker of a name that is not written in the program, but known to it."""

        def make(*children: Node, **attributes: Value) -> Element:
            own = tuple((_attribute(key), value) for key, value in attributes.items())
            return Element(tag, own, children)

        return make


h: Final = _Elements()


def _attribute(key: str) -> str:
    bare = key.rstrip("_")
    return bare if bare in ("viewBox", "preserveAspectRatio") else bare.replace("_", "-")


def page(root: Element) -> bytes:
    """A whole document."""
    return b"<!DOCTYPE html>\n" + str(root).encode("utf-8", "replace") + b"\n"


def _written(node: Node) -> Iterator[str]:
    match node:
        case None:
            return
        case Element(name, attributes, children):
            yield f"<{name}"
            for key, value in attributes:
                if value is True:
                    yield f" {key}"
                elif value is not None and value is not False:
                    yield f' {key}="{_escaped(str(value))}"'
            yield ">"
            if name not in _VOID:
                if name in ("textarea", "pre"):
                    yield "\n"  # the parser drops one, so that a text's own first line end stays
                for child in children:
                    yield from _written(child)
                yield f"</{name}>"
            elif name in ("path", "rect", "circle", "line"):
                yield f"</{name}>"
        case list() | tuple():
            for child in node:
                yield from _written(child)
        case _:
            yield _escaped(str(node))


def _escaped(text: str) -> str:
    """Control characters that HTML does not allow, and those that turn the direction of text, are shown as U+FFFD."""
    if not text.isprintable():
        text = "".join(c if c in "\n\t" else visible(c) for c in text)
    return html.escape(text)
