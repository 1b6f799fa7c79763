"""Values inside of the data's columns, as queries write them: a field `address.city`, a text in JSON
`profile ->> 'city'`, a time as clocks of a zone show it `seen AT TIME ZONE 'UTC'`.

Where the policy makes a column of just that by `from:`, it is this column. Else the refusal says how to declare one.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from operator import attrgetter

from sqlglot import exp

from dpsql.core.ir.short_text import identifier
from dpsql.core.ir.step_count import take
from dpsql.core.policy.derived import Derived, DerivedError, parse_derived
from dpsql.diagnostics.diagnostic import ForCustodian, Mark, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.bind.scope import VisibleColumn
from dpsql.frontend.text.spans import span_of

JSON = (exp.JSONExtract, exp.JSONExtractScalar)
_STEP = re.compile(r"[\s)]*(?:->>?|,)\s*'((?:[^']|'')*)'")
"""What follows a JSON value: its path, as written. sqlglot's own reading takes the key 'a.b' for a path."""
_READ = frozenset({"this", "expression", "expressions", "zone", "table", "db", "catalog"})
_SIMPLE = re.compile(r"[A-Za-z_]\w*")

Place = tuple[str, ...]
"""The table that is written in front of a column, with its schema; () if none is."""


_made = attrgetter("made")


def made_column(node: exp.Expr, text: str, levels: Sequence[Sequence[VisibleColumn]]) -> VisibleColumn | None:
    """The column that the policy makes of what is written; None if it makes none, or a table's column is written.

    levels: what a query sees, then the query around it: the first that has such a column decides.
    Raises Rejected DP104: several tables make one.
    """
    if not any(any(map(_made, entries)) for entries in levels):
        return None
    if isinstance(node, exp.Column) and any(_is_table(node, entries) for entries in levels):
        return None
    readings = [(place, made.key) for place, made in _readings(node, text)]
    for entries in levels if readings else ():
        take(1 + len(entries) // 16)
        hits = [e for e in entries if e.made and any(e.made == key and _in(e, place) for place, key in readings)]
        if len({e.column.uid for e in hits}) > 1:
            choices = " or ".join(sorted(f"{e.relation}.{e.name}" for e in hits))
            raise reject(
                "DP104", "several tables of this query have that value", span=_whole(node, text),
                help=[f"write {choices}"],
            )  # fmt: skip
        if hits:
            return hits[0]
    return None


def unmade(node: exp.Expr, text: str) -> Rejected | None:
    """Build the refusal of JSON, a clock of a zone or a field of which no column is made; None of anything else."""
    found = [made for _, made in _readings(node, text)]
    if isinstance(node, JSON):
        return reject(
            "DP105", "this path in JSON is not read", span=_whole(node, text),
            help=[ForCustodian(f"declare its values as columns, in the policy:  {line(made)}") for made in found[-1:]]
            or ["write its steps as literals:  x ->> 'city'  or  x ->> '$.homes[0].city'"],
            mark=Mark.DECLARABLE if found else None,
        )  # fmt: skip
    if isinstance(node, exp.AtTimeZone):
        what, example = "a query reads no clock of a zone", Derived("seen", zone="Europe/Berlin")
    elif found:
        what, example = "a query reads no fields of a STRUCT", found[-1]
    else:
        return None
    made = [example, *found][-1]  # of p.x ->> 'y' the reading in which p is a table
    return reject(
        "DP105", what, span=_whole(node, text),
        help=[ForCustodian(f"declare its values as columns, in the policy:  {line(made)}")], mark=Mark.DECLARABLE,
    )  # fmt: skip


def line(made: Derived) -> str:
    """The line of a policy that makes a column."""
    inner = [made.fields[-1]] if made.fields else []
    inner += re.findall(r"[A-Za-z_]\w*", made.path)[-1:] if made.path else []
    inner += [made.zone.rpartition("/")[2].lower()] if made.zone else []
    name = "_".join(re.findall(r"\w+", " ".join([made.column, *(inner or ["value"])])))  # no column has it, as a rule
    written = str(made)
    quoted = f'"{written}"' if '"' not in written else "'" + written.replace("'", "''") + "'"
    return f"{name}: {{from: {quoted}, type: {'timestamp' if made.zone else 'varchar'}}}"


def declared_field(node: exp.Column, entries: Sequence[VisibleColumn]) -> tuple[str, ...]:
    """What to tell where nothing is called like the table of a column: it may be a column, and this its field.

    Not where a table has a column of that name: then it is the table that is misspelled.
    """
    names = {e.name.lower() for e in entries}
    if node.args.get("db") or not names or node.name.lower() in names or _is_table(node, entries):
        return ()
    made = Derived(node.table, (node.name,))
    declare = f"if {identifier(node.table)} is a column, custodian: declare its field:  {line(made)}"
    known = _fields_of(node.table, entries)
    if not known:
        return (declare,)
    close = get_close_matches(node.name.lower(), [name.lower() for name in known], n=1)
    meant = [name for name in known if name.lower() in close] or known
    written = " or ".join(f"{identifier(node.table)}.{identifier(name)}" for name in meant[:12])
    return (f"did you mean {written}?" if close else f"its declared fields are {written}", declare)


def _fields_of(column: str, entries: Sequence[VisibleColumn]) -> list[str]:
    """Names of the fields of a STRUCT of which the policy makes columns, as they are there in the end."""
    found: dict[str, None] = {}
    for entry in entries:
        if not entry.made:
            continue
        names, path, zone = literal_eval(entry.made)
        if len(names) == 2 and names[0] == column.lower() and not path and not zone:
            found[names[1]] = None
    return list(found)


def _is_table(node: exp.Column, entries: Sequence[VisibleColumn]) -> bool:
    table = node.table.lower()
    return any(e.relation.lower() == table for e in entries)


def _in(entry: VisibleColumn, place: Place) -> bool:
    *schema, relation = place or ("",)
    return not relation or (
        entry.relation.lower() == relation.lower() and (not schema or ".".join(schema).lower() in entry.schemas())
    )


def _readings(node: exp.Expr, text: str) -> Iterator[tuple[Place, Derived]]:
    """What is written, as tables and what `from:` would say; `a.b.c` is the field c of b in table a, and b.c of a."""
    zone = ""
    if isinstance(node, exp.AtTimeZone):
        if not isinstance(node.args.get("zone"), exp.Literal) or not _plain(node):
            return
        zone, node = node.args["zone"].name, node.this.unnest()
    depth, node = _json(node)
    steps = [_path(found[1].replace("''", "'")) for found in _steps(node, text, depth)]
    if len(steps) < depth or None in steps:
        return
    path = "".join(filter(None, steps))
    names, inner = _names(node)
    for cut in range(len(names)):
        column, *fields = *names[cut:], *inner
        if fields or path or zone:
            with suppress(DerivedError):
                yield names[:cut], parse_derived(str(Derived(column, tuple(fields), f"${path}" if path else "", zone)))


def _json(node: exp.Expr) -> tuple[int, exp.Expr]:
    """How many paths lead into JSON, and what holds it."""
    depth = 0
    while isinstance(node, JSON) and _plain(node):
        depth, node = depth + 1, node.this.unnest()
    return depth, node


def _steps(node: exp.Expr, text: str, depth: int) -> Iterator[re.Match[str]]:
    at = span_of(node, text).end if depth else 0
    for _ in range(depth):
        found = _STEP.match(text, at)
        if found is None:
            return
        yield found
        at = found.end()


def _whole(node: exp.Expr, text: str) -> Span:
    """Where it stands, its paths included: sqlglot does not know where they are."""
    span, (depth, inner) = span_of(node, text), _json(node)
    return Span(span.start, max([span.end, *(found.end() for found in _steps(inner, text, depth))]))


def _path(written: str) -> str | None:
    """The steps of a JSON path as `from:` has them: `.city`; None for what it cannot have."""
    if written.startswith("$"):
        return written[1:] or None
    if not written or written.startswith("/"):
        return None
    return f".{written}" if _SIMPLE.fullmatch(written) else f'."{written}"'


def _names(node: exp.Expr) -> tuple[Place, list[str]]:
    """The names of `p.address.city`, and the fields of `address['city']`, `(p.address).city`; none of anything else."""
    read: dict[type[exp.Expr], Callable[[exp.Expr], str | None]] = {
        exp.Dot: lambda n: n.expression.name if isinstance(n.expression, exp.Identifier) else None,
        exp.Bracket: lambda n: _text(n.expressions[0]) if len(n.expressions) == 1 else None,
        exp.StructExtract: lambda n: _text(n.expression),
    }
    fields: list[str] = []
    while type(node) in read and _plain(node):
        field = read[type(node)](node)
        if field is None:
            return (), []
        fields, node = [field, *fields], node.this.unnest()
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star) or not _plain(node):
        return (), []
    return (*(node.args[part].name for part in ("catalog", "db", "table") if node.args.get(part)), node.name), fields


def _plain(node: exp.Expr) -> bool:
    """Nothing is written that is not read here."""
    return {name for name, value in node.args.items() if value} <= _READ


def _text(node: exp.Expr) -> str | None:
    return node.name if isinstance(node, exp.Literal) and node.is_string else None
