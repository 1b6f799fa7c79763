"""SQL text → syntax tree, and nothing more: exactly one query, or a coded refusal.

sqlglot's tree stays inside `dpsql/frontend/`: `bind` turns it into our own plan, and no SQL is ever printed from it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from dpsql.diagnostics.diagnostic import Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.argument_counts import refuse_surplus_arguments, wrong_pair
from dpsql.frontend.describing import Describing, describing
from dpsql.frontend.dialects import DIALECTS, adapt
from dpsql.frontend.google.privacy_clause import Clause, attach, lift
from dpsql.frontend.pivots import MOST_COLUMNS, TOO_MANY, columns_of_pivots, without_pivots
from dpsql.frontend.syntax_errors import misspelt, syntax_error, whole_line
from dpsql.frontend.text.spans import code_of, remember
from dpsql.frontend.text.tokens import tokens_of

# sqlglot warns when it falls back to an opaque Command; we refuse those by name instead.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

UNREADABLE = (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError)
"""What sqlglot raises for texts that are no SQL, some of it not meant to be raised."""
MAX_LENGTH = 100_000
"""Longest accepted statement, in characters."""
MOST_NODES = 10_000
"""Most syntax nodes that are made while a text is read, besides one for each character; most need half of these."""
MAX_DEPTH = 200
"""Deepest accepted nesting of the syntax tree: far beyond what people write, far below Python's recursion limit."""


_SHOWN = ["what the policy says of tables and columns:  SHOW TABLES,  DESCRIBE table,  SUMMARIZE table"]
_INSTEAD = {
    "EXPLAIN": ["leave EXPLAIN out:  dpsql explain POLICY SQL,  in Python Query.explain()"],
    "SHOW": _SHOWN,
    "DESCRIBE": _SHOWN,
    "DESC": _SHOWN,
    "SUMMARIZE": _SHOWN,
}
"""Statements that people try, and where they find what they look for."""
_ONE = "write one SELECT (or WITH … SELECT)"


@dataclass(frozen=True, slots=True)
class Parsed:
    """One query as a syntax tree, with the text it came from, and the privacy clause that was lifted out of it.

    describing: what is asked of the policy, for nothing. The tree is then the query that is described, or an empty one.
    """

    tree: exp.Query
    source: Source
    dialect: str
    clause: Clause | None = None
    describing: Describing | None = None


def require_dialect(dialect: str) -> None:
    """Raise Rejected DP903 unless this is a dialect that can be read."""
    if dialect.lower() not in DIALECTS:
        raise reject("DP903", f"unknown SQL dialect {dialect!r}", help=[f"use {', '.join(DIALECTS)}"])


def require_length(source: Source) -> None:
    """Raise Rejected DP010 for a text that is too long to be read."""
    if len(source.text) > MAX_LENGTH:
        raise reject(
            "DP010", f"the statement is longer than {MAX_LENGTH:,} characters", span=whole_line(source), source=source,
            help=["pass long lists as a table"],
        )  # fmt: skip


def parse(source: Source, dialect: str = "duckdb") -> Parsed:
    """Parse exactly one SELECT (or WITH … SELECT), or one of DESCRIBE, SHOW TABLES and SUMMARIZE.

    Raises Rejected: DP010 syntax error, DP011 not exactly one statement, DP012 not a query; DP014, DP115 and DP406 for
    a privacy clause that cannot be accepted; DP119 for what another dialect may mean otherwise than DuckDB.
    """
    require_dialect(dialect)
    dialect = dialect.lower()
    require_length(source)
    if "\0" in source.text:
        at = source.text.index("\0")
        raise reject(
            "DP010", "the text contains a NUL character", span=Span(at, at + 1), source=source, help=["remove it"]
        )
    try:
        reader = _reader(dialect)
        # The line's end: after a parameter such as $1, sqlglot does not find the end of a '' that ends the text.
        tokens = tokens_of(source.text + "\n", reader)
        _refuse_tags(tokens, source)
        asked = describing(tokens, source)
        if asked is not None and asked.about != "query":
            return Parsed(exp.Select(), source, dialect, describing=asked)
        lifted = lift(tokens if asked is None else tokens[1:], source)
        refuse_surplus_arguments(lifted.tokens, source)
        numbered = _numbered(lifted.tokens) if "?" in source.text else lifted.tokens
        if "pivot" in source.text.lower() and columns_of_pivots(numbered) > MOST_COLUMNS:
            raise reject(
                "DP101", f"{TOO_MANY} is outside the accepted SQL", span=whole_line(source), source=source,
                help=["use one aggregate for each value:  COUNT(*) FILTER (WHERE x = 'a')"],
            )  # fmt: skip
        parsed = trees_of(_inner_joins(_two_words(numbered)), source.text, reader)
        # What stands after a last semicolon may be a comment: sqlglot keeps it as a statement of its own.
        trees = [t for t in parsed if t is not None and not isinstance(t, exp.Semicolon)]
    except ParseError as error:
        raise wrong_pair(tokens, source) or syntax_error(error, source, tokens) from None
    except RecursionError:
        raise _too_deep(source) from None
    except UNREADABLE as error:
        # The tokenizer and, on odd input, the parser itself: whatever it is, the text is not a query we understand.
        raise _unreadable(error, source) from None
    if len(trees) != 1:
        found = "no statement" if not trees else f"{len(trees)} statements"
        raise reject(
            "DP011", f"expected exactly one statement, found {found}", span=whole_line(source), source=source,
            help=["run one SELECT at a time"],
        )  # fmt: skip
    tree = without_pivots(trees[0], source)
    if "interval" in source.text.lower():
        tree = _with_lengths(tree)
    _forget_places_of_defaults(tree, source.text)
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Table):
        what = _first_word(source)
        raise misspelt(source) or reject(
            "DP012", f"only queries can be answered, not {what}", span=whole_line(source), source=source,
            help=_INSTEAD.get(what, [_ONE]),
        )  # fmt: skip
    if "%s" in source.text and any(not node.args.get("this") for node in tree.find_all(exp.Placeholder)):
        raise _without_name(source)
    attach(tree, lifted.calls)
    tree = adapt(tree, dialect, source)
    _first_as_lists(tree)
    if remember(tree) > MAX_DEPTH:
        raise _too_deep(source)
    return Parsed(tree, source, dialect, lifted.clause, asked)


@cache
def _reader(dialect: str) -> sqlglot.Dialect:
    found = sqlglot.Dialect.get_or_raise(dialect)
    found.INDEX_OFFSET = 0  # else it counts [1] of some calls from 0, and of others as it is written
    return found


_WRITTEN = "TO_CHAR\0"
"""PostgreSQL's TO_CHAR among its tokens: sqlglot would turn its format into the letters of another one.

A name that no text can hold. (The compiled parser cannot be given another table of functions.)
"""


def _formats_as_written(tokens: list[Token]) -> list[Token]:
    found = list(tokens)
    for i, (t, after) in enumerate(pairwise(tokens)):
        if after.token_type is TokenType.L_PAREN and t.text.upper() == "TO_CHAR" and t.token_type in _NAMES:
            found[i] = Token(_VAR, _WRITTEN, t.line, t.col, t.start, t.end, t.comments)
    return found


def _named(tree: exp.Expr) -> exp.Expr:
    """The tree with ToChar again for what `_formats_as_written` kept from the parser."""
    for node in list(tree.find_all(exp.Anonymous, exp.Identifier)):
        if node.name == _WRITTEN and isinstance(node, exp.Identifier):  # the name of a table, with its columns
            node.set("this", "to_char")
        elif node.name == _WRITTEN:
            made = exp.ToChar.from_arg_list(node.expressions)
            made.meta.update(node.meta)
            made.comments = node.comments
            tree = made if node is tree else tree
            node.replace(made)
    return tree


def _first_as_lists(tree: exp.Expr) -> None:
    """x = (SELECT k … LIMIT 1) in a WHERE keeps the rows that x IN (SELECT k … LIMIT 1) keeps."""
    for node in list(tree.find_all(exp.EQ)):
        above = node.parent
        while isinstance(above, (exp.And, exp.Paren)):
            above = above.parent
        query = node.expression
        inner = query.this if isinstance(query, exp.Subquery) else None
        ordered = isinstance(inner, exp.Select) and inner.args.get("order") is not None
        limit = inner.args.get("limit") if inner is not None and ordered else None
        if isinstance(above, exp.Where) and isinstance(limit, exp.Limit) and limit.expression.name == "1":
            found = exp.In(this=node.this.copy(), query=query.copy())
            found.meta.update(node.meta)
            node.replace(found)


def trees_of(tokens: list[Token], text: str, reader: sqlglot.Dialect) -> list[exp.Expr | None]:
    """The syntax trees of the statements, as sqlglot reads them. Raises one of UNREADABLE.

    Some brackets it reads in two ways (`INT(`, `ARRAY[`), and those within them twice as often: nodes are counted.
    """
    if "pivot" in text.lower() and columns_of_pivots(tokens) > MOST_COLUMNS:
        raise RecursionError
    most = MOST_NODES + len(text)
    parser = reader.parser(max_nodes=most)
    kept = isinstance(reader, sqlglot.dialects.Postgres)
    try:
        trees = parser.parse(_formats_as_written(tokens) if kept else tokens, text)
        return [_named(tree) if kept and tree is not None else tree for tree in trees]
    finally:  # also where it went on, and took what it could not read for something else
        if parser._node_count > most:
            raise RecursionError


def _with_lengths(tree: exp.Expr) -> exp.Expr:
    """The tree with `INTERVAL '7 days'` in place of `'7 days'::interval`."""
    for node in list(tree.find_all(exp.Cast)):
        if node.to.is_type(exp.DataType.Type.INTERVAL) and isinstance(node.this, exp.Literal) and node.this.is_string:
            number, *unit = node.this.name.split(maxsplit=1) or [""]
            node.this.set("this", number)
            node.replace(exp.Interval(this=node.this, unit=exp.Var(this=unit[0].upper()) if unit else None))
    return tree


def _forget_places_of_defaults(tree: exp.Expr, text: str) -> None:
    """`NUMERIC` is read as DECIMAL(18, 3), whose numbers have places in that text, and not in the query."""
    if "numeric" in text.lower() or "dec" in text.lower():
        for digits in tree.find_all(exp.DataTypeParam):
            meta = digits.this.meta
            if text[meta.get("start", 0) : meta.get("end", -1) + 1] != digits.name:
                meta.clear()


_NEVER_CLOSED = re.compile(r"Missing (\S+) from \d+:(\d+)")
"""How sqlglot's tokenizer says it: the mark that is missing, and the offset of what it would close."""


def _unreadable(error: BaseException, source: Source) -> Rejected:
    """Points at the quote or comment that is never closed, if that is what is wrong and the tokenizer tells.

    The compiled one (`dpsql[fast]`) does not.
    """
    text, mark, start = source.text, "/*", -1
    unclosed = _NEVER_CLOSED.search(str(error.__cause__ or error))
    if unclosed is not None:
        mark = "[" if unclosed[1] == "]" else unclosed[1]
        at = int(unclosed[2])
        start = at if mark in text[at : at + 3] else -1  # E'…: the offset is that of the E
    elif isinstance(error.__cause__, IndexError):  # it runs out of text in a comment
        start = text.find(mark, text.rfind("*/") + 1)
    if start < 0:
        return reject(
            "DP010", "the text cannot be read as SQL", span=whole_line(source), source=source, help=["check the quotes"]
        )
    end = text.find("\n", start)
    advice = (
        f"close it; or look for a {mark} too many before it" if unclosed is not None else "end the comment with  */"
    )
    return reject(
        "DP010", f"syntax error: the {mark} that stands here is never closed", source=source,
        span=Span(start, len(text.rstrip()) if end < 0 else end), help=[advice],
    )  # fmt: skip


def _refuse_tags(tokens: list[Token], source: Source) -> None:
    """A template is not SQL yet, even where a parser takes `{{ x }}` for a struct. Raises Rejected DP010."""
    if "{" not in source.text:
        return
    for token in tokens:
        tag = source.text[token.start : token.start + 2]
        if tag in ("{{", "{%"):  # no string and no quoted name begins with a brace
            raise reject(
                "DP010", f"syntax error: {tag} opens a tag of a template, and this is read as SQL",
                span=Span(token.start, token.start + 2), source=source,
                help=["render it first:  --templater jinja;  models of dbt:  dpsql check --dbt DIR"],
            )  # fmt: skip


def _too_deep(source: Source) -> Rejected:
    return reject(
        "DP010", "the statement is nested too deeply", span=whole_line(source), source=source,
        help=["name inner queries in WITH; write long OR chains as IN (…)"],
    )  # fmt: skip


def _numbered(tokens: list[Token]) -> list[Token]:
    """Each `?` as `$1`, `$2`, … in the order of the text: clauses are bound in another order than they are written."""
    found: list[Token] = []
    count = 0
    for token in tokens:
        if token.token_type is not TokenType.PLACEHOLDER or token.text != "?":
            found.append(token)
            continue
        count += 1
        place = token.line, token.col, token.start, token.end
        found.append(Token(TokenType.PARAMETER, "$", *place, token.comments))
        found.append(Token(TokenType.NUMBER, str(count), *place))
    return found


_VAR, _JOIN = TokenType.VAR, TokenType.JOIN
_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_BY = {"GROUP": TokenType.GROUP_BY, "ORDER": TokenType.ORDER_BY}


def _two_words(tokens: list[Token]) -> list[Token]:
    """GROUP BY and ORDER BY as one token also where a comment stands between the words."""
    if "BY" not in {token.text.upper() for token in tokens if token.token_type is _VAR}:
        return tokens
    found: list[Token] = []
    for token in tokens:
        if token.token_type is _VAR and token.text.upper() == "BY" and found:
            last = found[-1]
            kind = _BY.get(last.text.upper()) if last.token_type is _VAR else None
            if kind is not None:
                words = f"{last.text} {token.text}"
                found[-1] = Token(kind, words, last.line, last.col, last.start, token.end, token.comments)
                continue
        found.append(token)
    return found


_JOIN_WORDS = sqlglot.Parser.JOIN_KINDS | sqlglot.Parser.JOIN_SIDES | sqlglot.Parser.JOIN_METHODS
_NO_JOIN_AFTER = frozenset({*_JOIN_WORDS, TokenType.DOT, TokenType.ALIAS})


def _inner_joins(tokens: list[Token]) -> list[Token]:
    """JOIN as INNER JOIN: in the tree, a JOIN without any other word and without ON would look like a comma."""
    found: list[Token] = []
    for token in tokens:
        if token.token_type is _JOIN and found and found[-1].token_type not in _NO_JOIN_AFTER:
            found.append(Token(TokenType.INNER, "INNER", token.line, token.col, token.start, token.end, []))
        found.append(token)
    return found


def _first_word(source: Source) -> str:
    word = re.compile(r"[A-Za-z_]+").search(source.text, whole_line(source).start)
    return word.group(0).upper() if word else "this"


def _without_name(source: Source) -> Rejected:
    """`%s` where sqlglot knows it as a placeholder, as in PostgreSQL; each `?` has a number."""
    at = max(code_of(source.text).find("%s"), 0)
    return reject(
        "DP010", "syntax error: %s is no placeholder here", span=Span(at, at + 2), source=source, help=["write  ?"]
    )
