"""What may be asked, how to connect, and what a code means: pages of policy and address alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Table
from dpsql.faces.server.web.markup import Element, Node, h
from dpsql.faces.server.web.pages.page_frame import PageFrame, card, document, table
from dpsql.faces.server.web.svg_plots import amount
from dpsql.policy.tools.show import declared_of, promises, show_policy, whose_rows

REPORT: Final = "/policy/report"
"""Where the report on the policy is, for custodians."""


@dataclass(frozen=True, slots=True)
class WireAddress:
    """Where analysts connect over PostgreSQL's protocol. port: 0 where they cannot."""

    host: str
    port: int
    secure: bool


def tables(frame: PageFrame, policy: Policy) -> bytes:
    """Tables and columns, whose rows they hold, and what is declared of them."""
    toc = h.ul([h.li(h.a(name, href=f"#{_anchor(number)}")) for number, name in enumerate(policy.tables)], class_="toc")
    return document(
        frame,
        "What may be asked",
        h.p("Counts, sums, averages, quantiles and their like of these tables; never a row as it is. What is not "
            "listed does not exist here.", class_="lead"),
        h.nav(toc, aria_label="Tables"),
        [_table(number, found) for number, found in enumerate(policy.tables.values())],
        _defaults(policy),
    )  # fmt: skip


def _anchor(number: int) -> str:
    return f"table-{number}"


def _table(number: int, found: Table) -> Element:
    rows: list[list[Node]] = []
    for column in found.columns.values():
        type_ = "from the data" if column.sql_type is None else column.sql_type.name.lower()
        rows.append(
            [h.code(column.name), type_, "may be NULL" if column.is_nullable else "never NULL",
             ", ".join(declared_of(column)) or h.span("–", aria_label="nothing")]
        )  # fmt: skip
    said = promises(found)
    return h.section(
        h.h2(h.code(found.name), id=_anchor(number)),
        h.p(h.span("public", class_="tag good") if found.public else h.span("private", class_="tag"), " ",
            whose_rows(found) if not found.public else "everybody knows what it says"),
        h.ul([h.li(text) for text in said], class_="notes") if said else None,
        table(("Column", "Type", "NULL", "Declared"), rows, caption=f"Columns of {found.name}", class_="stack")
        if rows else h.p("Only COUNT(*) can be asked." if not found.public else "Its columns are those of the data."),
        class_="card",
    )  # fmt: skip


def _defaults(policy: Policy) -> Element:
    own = policy.defaults
    lines = [
        f"A query that says nothing spends ε {amount(float(own.epsilon))}." if own.epsilon is not None
        else "A query has to say how much ε it spends.",
        f"For private group keys it may use δ {amount(float(own.delta))}." if own.delta is not None
        else "Private group keys need a δ.",
        f"An answer leaves the server at {_moments(policy)} after its query began; what is slower ends, paid.",
    ]  # fmt: skip
    return card("Limits", h.ul([h.li(line) for line in lines]))


def _moments(policy: Policy) -> str:
    *some, last = (f"{float(m):g} s" for m in policy.serving.answers_at)
    return f"{', '.join(some)} or {last}" if some else last


def connect(frame: PageFrame, place: WireAddress, api: str) -> bytes:
    """Connection strings for the tools people have. api: where the API is."""
    name, database, mode = frame.name, frame.database, "require" if place.secure else "disable"
    at = f"[{place.host}]" if ":" in place.host else place.host
    parts = (
        ("psql", f'psql "host={place.host} port={place.port} dbname={database} user={name} sslmode={mode}"'),
        ("Python (psycopg)", "import psycopg\n\n"
         f'con = psycopg.connect(host="{place.host}", port={place.port}, dbname="{database}", user="{name}",\n'
         f'                      password=..., sslmode="{mode}", autocommit=True)\n'
         "con.add_notice_handler(lambda notice: print(notice.message_primary))\n"
         'con.execute("SET epsilon = 0.1")'),
        ("JDBC", f"jdbc:postgresql://{at}:{place.port}/{database}?user={name}&sslmode={mode}"),
        ("ODBC", f"Driver=PostgreSQL Unicode;Server={place.host};Port={place.port};Database={database};"
         f"Uid={name};Pwd=…;SSLmode={mode}"),
        ("R (RPostgres)", "library(DBI)\n"
         f'con <- dbConnect(RPostgres::Postgres(), host = "{place.host}", port = {place.port},\n'
         f'                 dbname = "{database}", user = "{name}", password = "…", sslmode = "{mode}")\n'
         'dbExecute(con, "SET epsilon = 0.1")'),
        ("DBeaver", "Connection: PostgreSQL\n"
         f"Host: {place.host}\nPort: {place.port}\nDatabase: {database}\nUsername: {name}\n"
         f"Driver properties: options = -c dpsql.epsilon=0.1, sslmode = {mode}"),
        ("Metabase", "Database type: PostgreSQL\n"
         f"Host: {place.host}\nPort: {place.port}\nDatabase name: {database}\nUsername: {name}\n"
         f"Use a secure connection (SSL): {'yes' if place.secure else 'no'}\n"
         "Additional JDBC options: options=-c%20dpsql.epsilon%3D0.1"),
    )  # fmt: skip
    curl = (
        f"curl -u {name} '{api}/api/v1/query?database={quote(database)}' -H 'Content-Type: application/json' \\\n"
        """  -d '{"sql": "SELECT COUNT(*) AS n FROM …", "settings": {"epsilon": "0.1"}}'"""
    )
    return document(
        frame,
        "Connect",
        h.p("The server speaks PostgreSQL's protocol: the tools you have work. One click into a box selects all of it.",
            class_="lead"),
        [card(title, _copied(title, text)) for title, text in parts] if place.port else None,
        card("JSON API", _copied("the API", curl),
             h.p("Its description: ", h.a("/api/v1/openapi.json", href="/api/v1/openapi.json"), class_="note")),
        card("Agents", _copied("agents", f"{api}/mcp"),
             h.p("The Model Context Protocol, with the name and password of a login as HTTP Basic. Let an agent have a "
                 "login of its own, with ceilings.", class_="note")),
        h.p("Your password is the one you signed in with.", class_="note"),
    )  # fmt: skip


def _copied(title: str, text: str) -> Element:
    return h.pre(text, class_="copied", tabindex="0", role="group", aria_label=f"to copy, for {title}")


def code(frame: PageFrame, name: str, text: str) -> bytes:
    """The page of a diagnostic's code. text: in Markdown; its title stands in its first line."""
    title, _, rest = text.partition("\n")
    return document(frame, title.removeprefix("# ") or name, h.section(from_markdown(rest), class_="card prose"))


def policy_in_words(frame: PageFrame, policy: Policy) -> bytes:
    """What the policy says, with every default, for its custodian."""
    text = show_policy(policy)
    return document(
        frame,
        "Policy",
        h.p(
            "In force, with every default. ", h.code(policy.hash[:12]), " is the beginning of its hash.", class_="lead"
        ),
        h.p(
            h.a("The privacy report", href=REPORT),
            " says what it means in odds, what was spent and which promises "
            "it rests on: one page, to read, print and sign.",
        ),
        h.pre(text, class_="words", tabindex="0", role="group", aria_label="the policy in words"),
    )


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
