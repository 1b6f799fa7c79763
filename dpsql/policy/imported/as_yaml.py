"""An imported set-up as the YAML of a policy, with DECIDE where a person has to say something."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.diagnostics.layout import one_line
from dpsql.policy.imported.set_up import Amounts, Imported, ImportedColumn, ImportedTable
from dpsql.policy.tools.yaml_words import listing, scalar

_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_NUMBER = re.compile(r"[-+]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")
_NUMERIC = re.compile(r"bigint|integer|smallint|tinyint|double|decimal")


def written(found: Imported) -> str:
    """Valid, and nobody is answered under it while a decision is open."""
    for table in found.tables.values():
        if table.unit is not None and table.unit[0] == "column":
            table.column(table.unit[1])
    return "\n".join(map(_alone, _lines(found))) + "\n"


def _alone(line: str) -> str:
    """One line, whatever a name or a remark in it holds."""
    text = line.lstrip(" ")
    return " " * (len(line) - len(text)) + one_line(text)


def _lines(found: Imported) -> Iterator[str]:
    yield f"# Imported from a set-up of {found.system}. What means something else here (dpsql's guide `come-over`):"
    yield from (f"#   - {change}" for change in found.changes)
    yield "version: 1"
    yield f"name: {scalar(_NOT_IN_NAME.sub('_', found.name).lstrip('.-')[:100] or 'imported')}"
    yield "draft: true   # nobody is answered while this stands here: take it out when all is decided"
    yield "search: auto   # a part of a query's ε finds limits and bounds that nobody declares"
    if found.database:
        yield f"database: {scalar(found.database)}"
    elif any(not table.source for table in found.tables.values()):
        yield "# database: a DuckDB file, postgresql://… or sc://…   # DECIDE: where are the tables?"
    if found.accountant:
        yield f"privacy: {{accountant: {found.accountant}}}"
    units = dict.fromkeys(t.of for t in found.tables.values() if t.of)
    if units:
        yield f"units: {{{', '.join(f'{scalar(unit)}: {{}}' for unit in units)}}}"
    yield "tables:"
    for table in found.tables.values():
        yield from _table(table)
    yield f"defaults: {_flow(found.query or {'epsilon': '0.1', 'delta': '1e-8'})}"
    yield "budgets:"
    budget = found.budget or {"epsilon": "1", "delta": "1e-7"}
    yield f"  total: {_flow(budget)}   # DECIDE: {found.open[0]}"
    yield from (f"  # DECIDE: {each}" for each in found.open[1:])
    if found.analysts:
        yield "  analysts:"
        for name, (amounts, most) in found.analysts.items():
            each = f", per_query: {_flow({f'max_{key}': amount for key, amount in most.items()})}" if most else ""
            yield f"    {scalar(name)}: {{{_flow(amounts)[1:-1]}{each}}}"


def _table(table: ImportedTable) -> Iterator[str]:
    yield f"  {scalar(table.name)}:"
    if table.source:
        yield f"    source: {scalar(table.source)}"
    if table.unit is None:
        yield "    public: true   # DECIDE: may everybody see every row?"
    else:
        kind, value = table.unit
        of = f"of: {scalar(table.of)}, " if table.of else ""
        swapped = ", neighbours: replace_one" if table.replaced else ""
        yield f"    unit: {{{of}{kind}: {value if kind == 'rows' else scalar(value)}{swapped}}}"
    yield from (f"    #   DECIDE: {each}" for each in table.open)
    yield from (f"    {key}: {number}" for key, number in table.limits.items())
    yield "    columns:" if table.columns else "    columns: {}   # DECIDE: which columns may be asked of?"
    yield from (f"      {scalar(column.name)}: {_column(column)}" for column in table.columns.values())


def _column(column: ImportedColumn) -> str:
    parts = [f"type: {scalar(column.type)}"] if column.type else []
    if column.bounds is not None:
        parts.append(f"bounds: [{', '.join(map(_value, column.bounds))}]")
    if column.domain_of is not None:
        table, name = column.domain_of
        parts.append(f"domain: {{table: {scalar(table)}, column: {scalar(name)}}}")
    elif column.domain:
        plain = column.type and _NUMERIC.match(column.type)
        parts.append(
            f"domain: {'[' + ', '.join(map(_value, column.domain)) + ']' if plain else listing(column.domain)}"
        )
    if not column.nullable:
        parts.append("nullable: false")
    return f"{{{', '.join(parts)}}}" + (f"   # DECIDE: {column.open}" if column.open else "")


def _flow(amounts: Amounts) -> str:
    return f"{{{', '.join(f'{key}: {_value(amount)}' for key, amount in amounts.items())}}}"


def _value(text: str) -> str:
    """A number as it stands; anything else as a text, which is refused where a number belongs."""
    return text if _NUMBER.fullmatch(text) else scalar(text)
