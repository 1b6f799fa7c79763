"""Names in a policy: finding tables and columns whatever their case, with a hint for what is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpsql.core.ir.types import SqlType, parse_type
from dpsql.core.policy.positions import Loc
from dpsql.policy.file.file_format import ColumnFile, PolicyFile, TableFile
from dpsql.policy.file.scalars import usable_name
from dpsql.policy.issues import Issues, did_you_mean, listed

_IDENTIFIER = r'\s*("(?:[^"]|"")+"|[^(),"]+?)\s*'
_REFERENCE = re.compile(rf"{_IDENTIFIER}\(({_IDENTIFIER}(?:,{_IDENTIFIER})*)\)\s*")


@dataclass(slots=True)
class PolicyScope:
    """The tables of a file by name, and where mistakes are noted."""

    file: PolicyFile
    issues: Issues
    names: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, file: PolicyFile, issues: Issues) -> PolicyScope:
        """Index the names; note tables and columns that differ only in case."""
        scope = cls(file, issues)
        scope.names = scope._index(("tables",), file.tables)
        for name, table in file.tables.items():
            scope.columns[name] = scope._index(("tables", name, "columns"), table.columns)
        return scope

    def _index(self, loc: Loc, names: Mapping[str, object]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in names:
            other = found.setdefault(name.casefold(), name)
            if other != name:
                self.issues.add(
                    (*loc, name), f"is the same name as `{other}`: SQL names do not differ by case", key=True
                )
            if not usable_name(name):
                self.issues.add((*loc, name), "is no name", key=True)
        return found

    def open_columns(self, table: str) -> bool:
        """True if the table leaves its columns to the data (a public table that lists none)."""
        spec = self.file.tables[table]
        return spec.public and not spec.columns

    def table(self, loc: Loc, name: str) -> str | None:
        """The declared spelling of a table, or a noted mistake."""
        found = self.names.get(name.strip().casefold())
        if found is None:
            self.issues.add(
                loc, f"names table `{name}`, which the policy does not list{did_you_mean(name, self.file.tables)}"
            )
        return found

    def column_names(self, loc: Loc, table: str, names: Sequence[str]) -> tuple[str, ...] | None:
        """The declared spellings of columns of a table, or a noted mistake."""
        if self.open_columns(table):
            return tuple(names)
        index = self.columns[table]
        missing = [n for n in names if n.casefold() not in index]
        for name in missing:
            known = list(index.values())
            hint = did_you_mean(name, known) or (f"; it lists {listed(known)}" if known else "; it lists no columns")
            self.issues.add(loc, f"names column `{name}`, which table `{table}` does not list{hint}")
        return None if missing else tuple(index[n.casefold()] for n in names)

    def reference(self, loc: Loc, text: str) -> tuple[str, tuple[str, ...]] | None:
        """`visits(visit_id)` → ("visits", ("visit_id",)), or a noted mistake."""
        found = _REFERENCE.fullmatch(text) if len(text) <= 1000 else None
        if found is None:
            self.issues.add(loc, f"must be table(column), e.g. patients(patient_id), got {text[:60]!r}")
            return None
        table = self.table(loc, _bare(found.group(1)))
        if table is None:
            return None
        columns = self.column_names(loc, table, [_bare(c) for c in re.findall(_IDENTIFIER + "(?:,|$)", found.group(2))])
        return None if columns is None else (table, columns)

    def column_file(self, table: str, column: str) -> ColumnFile | None:
        """A declared column of a table."""
        return self.file.tables[table].columns.get(column)

    def type(self, table: str, column: str) -> SqlType | None:
        """The declared type of a column, if it is declared and known."""
        spec, unit = self.column_file(table, column), self.file.tables[table].unit
        said = None if spec is None else spec.type
        if unit is not None and unit.as_ is not None and (unit.column or "").casefold() == column.casefold():
            said = unit.as_
        return None if said is None else parse_type(said)

    def same_types(self, loc: Loc, table: str, columns: Sequence[str], other: str, referenced: Sequence[str]) -> None:
        """Note columns that refer to a key of another number of columns or another type."""
        if len(columns) != len(referenced):
            self.issues.add(loc, f"has {len(columns)} column(s) but refers to {len(referenced)} of `{other}`")
            return
        for mine, theirs in zip(columns, referenced, strict=True):
            a, b = self.type(table, mine), self.type(other, theirs)
            if a is not None and b is not None and a != b:
                self.issues.add(
                    loc, f"refers from `{mine}` ({a}) to `{other}.{theirs}` ({b}): the types must be the same"
                )

    def promised_key(self, table: str, columns: Sequence[str]) -> bool:
        """True if some key within `columns` is promised (not enforced) to be unique in the table."""
        spec: TableFile = self.file.tables[table]
        wanted = {c.casefold() for c in columns}
        keys = [*([] if spec.primary_key is None else [spec.primary_key]), *spec.unique]
        return any(k.enforce == "assume" and {c.casefold() for c in k.columns} <= wanted for k in keys)


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1].replace('""', '"') if text.startswith('"') else text
