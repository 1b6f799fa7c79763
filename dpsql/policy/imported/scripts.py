"""Set-ups that are Python: OpenDP's context and Tumult's session, as their documentation writes them.

The script is read and never run. A value counts where it is a literal, or a name that one is assigned to.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fractions import Fraction
from pathlib import PurePath
from typing import Any

from dpsql.policy.imported.set_up import Amounts, Imported, ImportedTable, NotUnderstood

_READS = frozenset({"csv", "parquet", "ndjson", "json", "read_csv", "read_parquet", "read_ndjson", "read_json"})
_MEASURES = frozenset({"sum", "mean", "average", "variance", "stdev", "quantile", "median", "histogram"})


class _Script:
    """The calls of a script and what its names stand for."""

    def __init__(self, text: str) -> None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise NotUnderstood(f"the file is no Python: {error}") from None
        self.calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self.values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self.values.setdefault(node.targets[0].id, node.value)

    def meant(self, node: ast.expr | None) -> ast.expr | None:
        """What a name stands for."""
        for _ in range(10):
            if not isinstance(node, ast.Name):
                return node
            node = self.values.get(node.id)
        return None

    def literal(self, node: ast.expr | None) -> Any:
        """The value; None where it is none that can be read."""
        node = self.meant(node)
        try:
            return None if node is None else ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    def named(self, name: str) -> Iterator[ast.Call]:
        """The calls of this function or method, in the order in which they stand."""
        found = [call for call in self.calls if _name(call) == name]
        yield from sorted(found, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))

    def call(self, node: ast.expr | None) -> ast.Call | None:
        node = self.meant(node)
        return node if isinstance(node, ast.Call) else None

    def argument(self, call: ast.Call, place: int | None, name: str) -> ast.expr | None:
        """An argument that is given by name, or at its place."""
        given = {word.arg: word.value for word in call.keywords}
        return given.get(name, call.args[place] if place is not None and place < len(call.args) else None)

    def number(self, call: ast.Call, place: int | None, name: str) -> str:
        """The number as it is written; empty if there is none."""
        value = self.literal(self.argument(call, place, name))
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""

    def file(self, node: ast.expr | None) -> str:
        """The file that a frame was read from; empty if that cannot be seen."""
        call = self.call(node)
        while call is not None:
            path = self.literal(call.args[0] if call.args else None)
            if isinstance(path, str) and "://" not in path and _name(call).removeprefix("scan_") in _READS:
                return path
            call = self.call(call.func.value) if isinstance(call.func, ast.Attribute) else None
        return ""


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _chain(call: ast.Call) -> Iterator[ast.Call]:
    """A call and those on whose results it is made: of `a(1).b(2)` b, then a."""
    node: ast.expr = call
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call):
            yield node
            node = node.func
        else:
            node = node.value


def _listed(table: ImportedTable, keys: Any) -> None:
    """A dictionary of columns to their public keys."""
    for column, values in keys.items() if isinstance(keys, dict) else ():
        if isinstance(values, list | tuple) and all(isinstance(v, str | int) for v in values if v is not None):
            table.column(str(column)).domain = tuple(str(v) for v in values if v is not None)
            table.column(str(column)).type = "bigint" if values and isinstance(values[0], int) else "varchar"


def of_opendp(text: str) -> Imported:
    """`dp.Context.compositor(data, privacy_unit=dp.unit_of(…), privacy_loss=dp.loss_of(…))`. Raises NotUnderstood."""
    script = _Script(text)
    contexts = [call for call in script.named("compositor") if script.argument(call, 1, "privacy_unit") is not None]
    if len(contexts) != 1:
        raise NotUnderstood(f"the file has {len(contexts)} calls of Context.compositor with a privacy_unit, not one")
    (context,) = contexts
    data = script.argument(context, 0, "data")
    file = script.file(data)
    stem = PurePath(file).stem if file else data.id if isinstance(data, ast.Name) else "data"
    found = Imported("OpenDP", stem)
    table = found.table(stem)
    table.file, table.whole = file, False
    table.open.append("a context has no types and no list of columns: take out those that nobody is to ask about")
    _unit_of(found, table, script, script.call(script.argument(context, 1, "privacy_unit")))
    loss = script.call(script.argument(context, 2, "privacy_loss"))
    if loss is None or _name(loss) != "loss_of":
        raise NotUnderstood("privacy_loss is no call of loss_of")
    _budget(found, {key: script.number(loss, place, key) for place, key in enumerate(("epsilon", "delta", "rho"))})
    if parts := script.number(context, 3, "split_evenly_over"):
        found.query = {key: f"{float(Fraction(amount) / int(parts)):.6g}" for key, amount in found.budget.items()}
    for call in script.calls:
        if _name(call) in ("sum", "mean") and (bounds := script.literal(script.argument(call, 0, "bounds"))):
            root = next((c for c in _chain(call) if _name(c) == "col"), None)
            column = script.literal(root.args[0]) if root is not None and root.args else None
            if isinstance(column, str) and isinstance(bounds, tuple) and len(bounds) == 2:
                table.column(column).bounds = (str(bounds[0]), str(bounds[1]))
    for call in script.named("with_keys"):
        frame = script.call(call.args[0] if call.args else None)
        _listed(table, script.literal(frame.args[0]) if frame is not None and frame.args else None)
    for call in script.named("truncate_per_group"):
        limit = script.number(call, 0, "k")
        key = "max_rows_per_unit" if script.argument(call, 1, "by") is None else "max_rows_per_group"
        if limit:
            table.limits[key] = int(limit)
    for margin in script.named("Margin"):
        by = script.literal(script.argument(margin, 0, "by"))
        if script.literal(script.argument(margin, None, "invariant")) in ("keys", "lengths"):
            for column in by or ():
                table.column(
                    str(column)
                ).open = "its keys were not protected: list them as `domain`, or they are private"
    found.changes += [
        "The context's budget ended with the process; here the ledger keeps what is spent.",
        "Margins (max_length, max_groups, invariant) say nothing here: sums of integers need none.",
        "Rows above a truncation were cut; here all of an id's rows count, each for less.",
    ]
    return found


def _unit_of(found: Imported, table: ImportedTable, script: _Script, unit: ast.Call | None) -> None:
    if unit is None or _name(unit) != "unit_of":
        raise NotUnderstood("privacy_unit is no call of unit_of")
    identifier = script.argument(unit, None, "identifier")
    column = script.call(identifier)
    id_ = script.literal(column.args[0] if column is not None and column.args else identifier)
    if identifier is not None:
        if not isinstance(id_, str):
            raise NotUnderstood("the identifier of unit_of is no column's name")
        table.unit, table.of = ("column", id_), id_
        return
    rows, changed = script.number(unit, None, "contributions"), script.number(unit, None, "changes")
    if not (rows or changed):
        raise NotUnderstood("unit_of has neither contributions, changes nor an identifier that can be read")
    table.unit, table.replaced = ("rows", rows or changed), not rows
    table.open.append(
        f"does nobody have more than {rows or changed} rows? If there is an id, protect it: {{column: id}}"
    )


def _budget(found: Imported, amounts: Amounts) -> None:
    found.budget = {key: amount for key, amount in amounts.items() if amount}
    if not found.budget:
        raise NotUnderstood("the budget is no number that can be read")
    found.accountant = "zcdp" if "rho" in found.budget else "approx_dp" if "delta" in found.budget else "pure_dp"
    found.query = {key: f"{float(Fraction(amount) / 10):.6g}" for key, amount in found.budget.items()}
    found.open.append("it was of one process; is it all that may ever be learned?")


_BUDGETS = {"PureDPBudget": ("epsilon",), "ApproxDPBudget": ("epsilon", "delta"), "RhoZCDPBudget": ("rho",)}
_LIMITS = {
    "MaxRowsPerID": (0, "max", "max_rows_per_unit"),
    "MaxGroupsPerID": (1, "max", "max_groups_per_unit"),
    "MaxRowsPerGroupPerID": (1, "max", "max_rows_per_group"),
}


def of_tumult(text: str) -> Imported:
    """`Session.from_dataframe(…)`, or what `Session.Builder()` is told before `build()`. Raises NotUnderstood."""
    script = _Script(text)
    found = Imported("Tumult Analytics", "imported")
    budget = None
    for call in script.named("from_dataframe"):
        budget = script.argument(call, 0, "privacy_budget")
        _private(found, script, call, 1)
    for call in script.named("with_private_dataframe"):
        _private(found, script, call, 0)
    for call in script.named("with_public_dataframe"):
        name = script.literal(script.argument(call, 0, "source_id"))
        table = found.table(str(name))
        table.file, table.whole = script.file(script.argument(call, 1, "dataframe")), False
    for call in script.named("with_privacy_budget"):
        budget = script.argument(call, 0, "privacy_budget")
    private = [table for table in found.tables.values() if table.unit is not None]
    if not private:
        raise NotUnderstood("the file makes no Session with a private dataframe that can be read")
    found.name = private[0].name
    amount = script.call(budget)
    if amount is None or _name(amount) not in _BUDGETS:
        raise NotUnderstood("the session's budget is no PureDPBudget, ApproxDPBudget or RhoZCDPBudget that can be read")
    keys = _BUDGETS[_name(amount)]
    _budget(found, {key: script.number(amount, place, key) for place, key in enumerate(keys)})
    for call in script.calls:
        chain = [*_chain(call)]
        root = next((c for c in chain if _name(c) == "QueryBuilder"), None)
        name = script.literal(root.args[0]) if root is not None and root.args else None
        if isinstance(name, str) and call is not root and name in found.tables:
            _query(found.tables[name], script, call)
    found.changes += [
        "A session's budget ended with the process; here the ledger keeps what is spent.",
        "Limits cut rows of a query; here they are the table's, and all rows count, each for less.",
        "Functions of Python on rows (map, flat_map) have no equal: write SQL, or a column with `from:`.",
    ]
    return found


def _private(found: Imported, script: _Script, call: ast.Call, first: int) -> None:
    name = script.literal(script.argument(call, first, "source_id"))
    change = script.call(script.argument(call, first + 2, "protected_change"))
    if not isinstance(name, str) or change is None:
        raise NotUnderstood("a private dataframe has no source_id or protected_change that can be read")
    table = found.table(name)
    table.file, table.whole = script.file(script.argument(call, first + 1, "dataframe")), False
    table.open.append("a session has no list of columns: take out those that nobody is to ask about")
    match _name(change):
        case "AddOneRow":
            table.unit = ("rows", "1")
            table.open.append("does nobody have more than one row? If there is an id, protect it: {column: id}")
        case "AddMaxRows" if rows := script.number(change, 0, "max_rows"):
            table.unit = ("rows", rows)
            table.open.append(f"does nobody have more than {rows} rows? If there is an id, protect it: {{column: id}}")
        case "AddMaxRowsInMaxGroups":
            groups, each = script.number(change, 1, "max_groups"), script.number(change, 2, "max_rows_per_group")
            if not (groups and each):
                raise NotUnderstood("AddMaxRowsInMaxGroups has no numbers that can be read")
            table.unit = ("rows", str(int(groups) * int(each)))
            table.open.append(f"{groups} groups with {each} rows each are protected as {int(groups) * int(each)} rows")
        case "AddRowsWithID":
            id_ = script.literal(script.argument(change, 0, "id_column"))
            if not isinstance(id_, str):
                raise NotUnderstood(f"the id_column of {name} is no name that can be read")
            space = script.literal(script.argument(change, 1, "id_space"))
            table.unit, table.of = ("column", id_), space if isinstance(space, str) else id_
        case other:
            raise NotUnderstood(f"the protected change {other} is not known")


def _query(table: ImportedTable, script: _Script, call: ast.Call) -> None:
    """What a query says of its table: bounds, keys and limits."""
    first = script.call(call.args[0] if call.args else None)
    match _name(call):
        case name if name in _MEASURES:
            column = script.literal(script.argument(call, 0, "column"))
            place = 2 if name == "quantile" else 1
            low, high = script.number(call, place, "low"), script.number(call, place + 1, "high")
            if isinstance(column, str) and low and high:
                table.column(column).bounds = (low, high)
        case "groupby" if first is not None and _name(first) == "from_dict":
            _listed(table, script.literal(first.args[0] if first.args else None))
        case "enforce" if first is not None and _name(first) in _LIMITS:
            place, key, limit = _LIMITS[_name(first)]
            if number := script.number(first, place, key):
                table.limits[limit] = int(number)
