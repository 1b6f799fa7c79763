"""Markdown of dpsql's own pages as elements: what is not known here is shown as its text."""

from __future__ import annotations

import re
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from dpsql.faces.server.web.markup import Node, h

_TAGS: Final = {
    "paragraph": "p", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li", "strong": "strong", "em": "em",
    "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td",
}  # fmt: skip
_CODE_PAGE: Final = re.compile(r"(DP\d{3})-[a-z0-9-]+\.md")


def from_markdown(text: str) -> Node:
    """What a page says. A heading of the second level is one here, too."""
    return [_node(child) for child in SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(text)).children]


def _node(node: SyntaxTreeNode) -> Node:
    children = [_node(child) for child in node.children]
    match node.type:
        case "text":
            return node.content
        case "code_inline":
            return h.code(node.content)
        case "fence" | "code_block":
            return h.pre(node.content, tabindex="0", role="group", aria_label="example")
        case "softbreak" | "hardbreak":
            return " "
        case "heading":
            return h.of(node.tag)(*children)
        case "link":
            other = _CODE_PAGE.fullmatch(str(node.attrs.get("href", "")))
            return h.a(*children, href=f"/codes/{other[1]}") if other else children
        case kind if kind in _TAGS:
            return h.of(_TAGS[kind])(*children)
    return children or node.content if node.type != "inline" else children
