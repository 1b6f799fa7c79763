"""Privacy policies that warehouses hold as DDL: Snowflake's, and the privacy policies of BigQuery's views.

Statements about other things are passed over; CREATE TABLE tells names and types of columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from dpsql.frontend.text.lexer import Token, tokens
from dpsql.policy.imported.set_up import Amounts, Imported, ImportedTable, NotUnderstood, known_type

_CONSTRAINTS = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CONSTRAINT", "CHECK", "CLUSTER"})
_NEXT = frozenset({"NOT", "NULL", "DEFAULT", "PRIVACY", "WITH", "COMMENT", "PRIMARY", "UNIQUE", "OPTIONS", "COLLATE"})


def of_snowflake(text: str) -> Imported:
    """CREATE PRIVACY POLICY, ADD PRIVACY POLICY … ENTITY KEY, PRIVACY DOMAIN. Raises NotUnderstood."""
    found = Imported("Snowflake", "imported")
    bodies: dict[str, list[Token]] = {}
    for parts in _statements(text, "snowflake"):
        words = [part.upper for part in parts]
        kind = next((word for word in words[1:6] if word in ("TABLE", "VIEW", "POLICY")), "")
        if words[0] == "CREATE" and kind == "POLICY" and "PRIVACY" in words:
            at = words.index("POLICY") + 1 + 3 * (words[words.index("POLICY") + 1 :][:1] == ["IF"])
            name, at = _name(parts, at)
            bodies[name] = parts[at:]
        elif words[0] in ("CREATE", "ALTER") and kind in ("TABLE", "VIEW"):
            at = words.index(kind) + 1
            while at < len(words) and words[at] in ("IF", "NOT", "EXISTS"):
                at += 1
            name, at = _name(parts, at)
            if words[0] == "CREATE" and kind == "TABLE":
                _columns(found, name, parts[at:])
            _protected(found, name, parts[at:])
            _domains(found, name, parts[at:])
    found.tables = {name: table for name, table in found.tables.items() if table.unit or table.columns}
    used = {table.of for table in found.tables.values() if table.of}
    if not used:
        raise NotUnderstood("no table has a privacy policy: ADD PRIVACY POLICY … is missing")
    found.name = min(used)
    for name in sorted(used & set(bodies)):
        _body(found, bodies[name])
    for table in found.tables.values():
        if table.unit is None:
            table.open.append("no privacy policy protects it in this file")
    if not found.open:
        found.open.append("the file has no body of the policy: how much may ever be learned?")
    found.changes += [
        "A budget was given anew in each window; here it is spent for good.",
        "The privacy loss of Snowflake is no (ε, δ) that it documents: choose the amounts anew.",
        "max_budget_per_aggregate was of one aggregate; here the most is of one query.",
        "Entities had one row each, by the analyst's query; here a limit of rows is enforced, or searched.",
        "Privacy domains: ranges are `bounds`, which clip; lists are `domain`: other values are in no group.",
    ]
    return found


def of_bigquery(text: str) -> Imported:
    """Views with OPTIONS (privacy_policy = '{"differential_privacy_policy": …}'). Raises NotUnderstood."""
    found = Imported("BigQuery", "imported")
    for parts in _statements(text, "bigquery"):
        words = [part.upper for part in parts]
        kind = next((word for word in words[1:6] if word in ("TABLE", "VIEW")), "")
        if words[0] not in ("CREATE", "ALTER") or not kind:
            continue
        at = words.index(kind) + 1
        while at < len(words) and words[at] in ("IF", "NOT", "EXISTS"):
            at += 1
        name, at = _name(parts, at)
        if kind == "TABLE" and words[0] == "CREATE":
            _columns(found, name, parts[at:])
            continue
        said = next((parts[i + 2] for i, part in enumerate(parts[:-2]) if part.name.lower() == "privacy_policy"), None)
        if said is not None:
            _view(found, name, said.name.strip("'\""), parts)
    found.tables = {name: table for name, table in found.tables.items() if table.unit}
    if not found.tables:
        raise NotUnderstood("no view has a privacy_policy with a differential_privacy_policy")
    found.name = min(found.tables)
    found.changes += [
        "A view's budget was its own, and a new view had a new one; here all is counted together.",
        "A query that failed gave its budget back; here it is spent.",
        "Sums without bounds were bounded by a part of the query's budget; `search: auto` does that here.",
        "A unit's groups were chosen by chance; here in an order of its own, and its rows count for less.",
    ]
    return found


def _statements(text: str, dialect: str) -> Iterator[list[Token]]:
    parts: list[Token] = []
    for token in tokens(text, dialect):
        if token.text == ";" and parts:
            yield parts
            parts = []
        elif token.kind != "comment" and token.text != ";":
            parts.append(token)
    if parts:
        yield parts


def _name(parts: Sequence[Token], at: int) -> tuple[str, int]:
    """The last part of a name, and what follows it."""
    if at >= len(parts) or not parts[at].is_name:
        raise NotUnderstood("a name is missing behind TABLE, VIEW or POLICY")
    name = parts[at].name
    while at + 2 < len(parts) and parts[at + 1].text in (".", "-"):
        name, at = parts[at + 2].name, at + 2
    return name.rpartition(".")[2], at + 1


def _bracket(parts: Sequence[Token]) -> list[Token]:
    """What stands in the first brackets."""
    depth, found = 0, []
    for part in parts:
        depth -= part.text == ")"
        if depth > 0:
            found.append(part)
        elif found:
            break
        depth += part.text == "("
    return found


def _items(parts: Sequence[Token]) -> Iterator[list[Token]]:
    depth, item = 0, list[Token]()
    for part in parts:
        depth += (part.text in ("(", "<")) - (part.text in (")", ">"))
        if part.text == "," and depth == 0:
            yield item
            item = []
        else:
            item.append(part)
    if item:
        yield item


def _columns(found: Imported, name: str, parts: Sequence[Token]) -> None:
    table = found.table(name)
    for item in _items(_bracket(parts)):
        if len(item) < 2 or item[0].upper in _CONSTRAINTS:
            continue
        type_ = ""
        for part in item[1:]:
            if part.upper in _NEXT:
                break
            type_ += part.text
        column = table.column(item[0].name)
        column.type = known_type(type_)
        column.nullable = "NOT" not in [part.upper for part in item]
        _domain(table, column.name, item)


def _protected(found: Imported, name: str, parts: Sequence[Token]) -> None:
    words = [part.upper for part in parts]
    for at in range(len(words) - 1):
        if words[at : at + 2] != ["PRIVACY", "POLICY"] or words[at - 1] == "DROP":
            continue
        table = found.table(name)
        policy, after = _name(parts, at + 2)
        table.of = policy
        if words[after : after + 2] == ["ENTITY", "KEY"]:
            table.unit = ("column", _bracket(parts[after:])[0].name)
        else:
            table.unit, table.of = ("rows", "1"), policy
            table.open.append("without an entity key a row alone is protected: does nobody have several?")


def _domains(found: Imported, name: str, parts: Sequence[Token]) -> None:
    """`ALTER [COLUMN] c SET PRIVACY DOMAIN …`, one or several in brackets."""
    words = [part.upper for part in parts]
    for at in range(1, len(words) - 2):
        if words[at : at + 3] == ["SET", "PRIVACY", "DOMAIN"]:
            _domain(found.table(name), parts[at - 1].name, parts[at:])


def _domain(table: ImportedTable, name: str, parts: Sequence[Token]) -> None:
    words = [part.upper for part in parts]
    if "DOMAIN" not in words:
        return
    behind = parts[words.index("DOMAIN") + 1 :]
    column = table.column(name)
    match behind[0].upper if behind else "":
        case "BETWEEN":
            lower, upper = (_text(item) for item in _items(_bracket(behind)))
            column.bounds = (lower, upper)
        case "IN":
            column.domain = tuple(
                item[0].name if item[0].kind == "string" else _text(item) for item in _items(_bracket(behind))
            )
        case "REFERENCES":
            other, _ = _name(behind, 1)
            column.domain_of = (other, _bracket(behind)[0].name)


def _text(item: Sequence[Token]) -> str:
    """A number with its sign, or a date."""
    dates = [part.name for part in item if part.kind == "string"]
    return dates[0] if dates else "".join(part.text for part in item)


def _body(found: Imported, parts: Sequence[Token]) -> None:
    """PRIVACY_BUDGET(budget_name => …, …) behind each condition, and NO_PRIVACY_POLICY()."""
    condition: list[Token] = []
    for at, part in enumerate(parts):
        if part.upper in ("WHEN", "ELSE"):
            condition = [part]
        elif part.upper == "NO_PRIVACY_POLICY":
            who = _who(condition) or "somebody"
            found.changes.append(f"{who} was answered without noise; here nobody is: give the data itself.")
        elif part.upper == "PRIVACY_BUDGET" and parts[at + 1 : at + 2] and parts[at + 1].text == "(":
            said = {i[0].name.lower(): i[-1] for i in _items(_bracket(parts[at:])) if len(i) >= 3}
            budget, limit = said.get("budget_name"), said.get("budget_limit")
            window = said["budget_window"].name if "budget_window" in said else "Weekly"
            most = said["max_budget_per_aggregate"].text if "max_budget_per_aggregate" in said else "0.5"
            amount = "233" if limit is None else limit.text
            asked = condition[:1] and condition[0].upper == "WHEN"
            name = (_who(condition) or (budget.name if budget else "")) if asked else "*"
            found.analysts[name] = ({"epsilon": amount, "delta": "1e-7"}, {"epsilon": most})
            found.open.append(
                f"{amount} in each window ({window.lower()}) for {name}; here it is spent for good. How much?"
            )
        else:
            condition.append(part)
    largest = max((float(amounts["epsilon"]) for amounts, _ in found.analysts.values()), default=0)
    if largest:
        found.budget = {"epsilon": f"{largest:g}", "delta": "1e-6"}


def _who(condition: Sequence[Token]) -> str:
    """The user or role that a condition compares with."""
    return next((part.name for part in condition if part.kind == "string"), "")


def _view(found: Imported, name: str, text: str, parts: Sequence[Token]) -> None:
    try:
        said = json.loads(text)
    except ValueError as error:
        raise NotUnderstood(f"the privacy_policy of {name} is no JSON: {error}") from None
    policy = said.get("differential_privacy_policy") if isinstance(said, dict) else None
    if not isinstance(policy, dict):
        found.changes.append(f"{name} has a policy of another kind, which dpsql does not have.")
        return
    words = [part.upper for part in parts]
    froms = [i for i, word in enumerate(words) if word == "FROM"]
    base = _name(parts, froms[0] + 1)[0] if len(froms) == 1 and "JOIN" not in words else ""
    read = next((t for n, t in found.tables.items() if n.casefold() == base.casefold()), None)
    table = found.table(name)
    if read is not None:
        table.columns = {column.name: column for column in read.columns.values()}
    else:
        table.whole = False
    if base:
        table.open.append(f"{name} was a view of {base}: is it a view, or a table, where dpsql reads it?")
    id_ = str(policy.get("privacy_unit_column") or "")
    if not id_:
        raise NotUnderstood(f"the policy of {name} has no privacy_unit_column")
    table.unit, table.of = ("column", id_), id_
    if groups := policy.get("max_groups_contributed"):
        table.limits["max_groups_per_unit"] = int(groups)
    total = _amounts(policy, "epsilon_budget", "delta_budget")
    most = _amounts(policy, "max_epsilon_per_query", "")
    each = _amounts(policy, "max_epsilon_per_query", "delta_per_query")
    found.budget = _larger(found.budget, total)
    found.query = found.query or each
    if most and "*" not in found.analysts and "epsilon" in total:
        found.analysts["*"] = (total, most)
    told = f"{name} had {total}" if total else f"{name} had no budget"
    found.open.append(f"{told.replace(chr(39), '')} of its own; how much may ever be learned of all views together?")


def _amounts(policy: dict[str, object], epsilon: str, delta: str) -> Amounts:
    named = {"epsilon": policy.get(epsilon), "delta": policy.get(delta)}
    return {key: f"{value:g}" for key, value in named.items() if isinstance(value, int | float)}


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {key: max(one.get(key, "0"), other.get(key, "0"), key=float) for key in {**one, **other}}
