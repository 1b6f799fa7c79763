"""Meta-commands that show what there is: tables, functions, the policy, the budget. They spend nothing."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Final

from dpsql.answers.results.cell_texts import cell
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Bound, Column, Table, TableDomain, ValuesDomain
from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.diagnostics.layout import inert, printable
from dpsql.diagnostics.pages_loader import load_page
from dpsql.faces.cli import exits
from dpsql.faces.cli.commands.budgets import budget as budgets
from dpsql.faces.cli.commands.rule import for_terminal
from dpsql.faces.cli.shell.commands import clauses, details
from dpsql.faces.cli.shell.commands.accounts import spent
from dpsql.faces.cli.shell.input.meta_words import unquoted
from dpsql.faces.cli.shell.output.wrapping import wrapped, wrapped_lines
from dpsql.faces.cli.shell.state import Shell
from dpsql.faces.cli.table_layout import Row, plain_table
from dpsql.faces.editor.completion_words import AGGREGATES, QUANTILES, WINDOWS
from dpsql.functions.registry import describe_registry
from dpsql.policy.issues import did_you_mean
from dpsql.policy.tools.show import promises, show_policy, whose_rows
from dpsql.service.accounts.ledgers import shown
from dpsql.service.accounts.remaining_budgets import lines_by_period

_VALUES = 8
"""Listed values of a column that \\d shows; \\policy has all."""


def _table(shell: Shell, header: Sequence[str], rows: Sequence[Row], *after: str) -> None:
    columns = shell.output.columns
    text = plain_table(header, rows if columns is None else wrapped(header, rows, columns), color=shell.output.color)
    below = [line for said in map(printable, after) for line in wrapped_lines(said, columns)]
    shell.output.write("\n".join([text, *below]) + "\n", shell.looks.pager)


def _prose(shell: Shell, text: str) -> None:
    """Lines for people, folded between words on a terminal that is narrower."""
    lines = [line for said in text.split("\n") for line in wrapped_lines(said, shell.output.columns)]
    shell.output.write("\n".join(lines) + "\n", shell.looks.pager)


def describe_more(shell: Shell, arguments: list[str]) -> None:
    """All tables with their limits, or one with what may be asked of each column and what was found. Spends nothing."""
    policy = shell.connection.policy
    if not arguments:
        rows = [
            [cell(t.name), cell("public" if t.public else "private"), cell(_whose(policy, t.name)),
             cell(len(t.columns)), cell("; ".join(p for p in promises(t) if "rows" in p or "groups" in p))]
            for t in policy.tables.values()
        ]  # fmt: skip
        count = f"({len(rows)} table{'' if len(rows) == 1 else 's'})"
        _table(shell, ("table", "kind", "unit", "columns", "limits"), rows, count)
        return
    for table in _matching(policy, arguments[0]):
        rows = [
            [cell(c.name), cell(_type(c)), cell(_known(c)), cell(details.asked_of(shell.connection, table, c))]
            for c in table.columns.values()
        ]
        facts = [*promises(table), *details.limits_of(shell.connection, table)]
        header = ("column", "type", "known in public", "may be asked")
        _table(shell, header, rows, f"{table.name}: {whose_rows(table)}", *(f"  {fact}" for fact in facts))


def describe(shell: Shell, arguments: list[str]) -> None:
    """All tables, or one."""
    if not arguments:
        tables(shell, arguments)
        return
    for table in _matching(shell.connection.policy, arguments[0]):
        _describe(shell, table)


def _describe(shell: Shell, table: Table) -> None:
    rows = [
        [
            cell(c.name),
            cell(_type(c)),
            cell("" if c.is_nullable else "not null"),
            cell(_known(c)),
        ]
        for c in table.columns.values()
    ]
    facts = [f"  {text}" for text in promises(table)]
    _table(shell, ("column", "type", "nullable", "known in public"), rows, f"{table.name}: {whose_rows(table)}", *facts)


def _type(column: Column) -> str:
    return column.type or ("unknown" if column.sql_type is None else str(column.sql_type))


def _found(policy: Policy, name: str) -> Table:
    found = policy.called(*name.split("."))
    if found is None:
        raise reject("DP102", f"the policy lists no table {name!r}{did_you_mean(name, policy.tables)}")
    return found


def _matching(policy: Policy, word: str) -> list[Table]:
    """The tables of a name, or of a pattern with * and ?. Raises Rejected DP102 if there is none."""
    if word.startswith('"') or not _is_pattern(word):
        return [_found(policy, unquoted(word))]
    found = [t for t in policy.tables.values() if _like(t.name, word)]
    if not found:
        raise reject("DP102", f"the policy lists no table like {word!r}", help=["\\d  lists the tables"])
    return found


def _is_pattern(word: str) -> bool:
    return bool(set(word) & set("*?"))


def _like(name: str, pattern: str) -> bool:
    """Whether a name is like a pattern, in which * stands for any characters and ? for one; in any case."""
    return fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))


def _known(column: Column) -> str:
    """Bounds and domain of a column, as the policy says them."""
    parts = []
    if column.bounds is not None:
        low, high = ("…" if end is None else _end(end) for end in column.bounds)
        parts.append(f"{'searched, ' if column.search_bounds else ''}{low} to {high}")
    elif column.search_bounds:
        parts.append("searched")
    match column.domain:
        case ValuesDomain(values=values, null=null):
            shown = [str(v) for v in values[:_VALUES]] + (["…"] if len(values) > _VALUES else [])
            parts.append("one of " + ", ".join(shown) + (" or NULL" if null else ""))
        case TableDomain(table=table, column=name):
            parts.append(f"one of {table}.{name}")
        case None:
            pass
    return "; ".join(parts)


def _end(end: Bound) -> str:
    return f"{float(end):g}" if isinstance(end, Fraction) and end.denominator != 1 else str(end)


def tables(shell: Shell, arguments: list[str]) -> None:
    """All tables or those of a name or pattern, private ones with whose rows they hold."""
    policy = shell.connection.policy
    shown = _matching(policy, arguments[0]) if arguments else list(policy.tables.values())
    rows = [
        [
            cell(t.name),
            cell("public" if t.public else "private"),
            cell(_whose(policy, t.name)),
            cell(len(t.columns)),
        ]
        for t in shown
    ]
    _table(shell, ("table", "kind", "unit", "columns"), rows, f"({len(rows)} table{'' if len(rows) == 1 else 's'})")


def _whose(policy: Policy, table: str) -> str:
    return ", ".join(u.name for u in policy.units.values() if table in u.tables)


def functions(shell: Shell, arguments: list[str]) -> None:
    """The functions of the registry, or those whose names are like a pattern, or begin with a word that is none."""
    word = arguments[0] if arguments else ""
    pattern = word if _is_pattern(word) else f"{word}*"
    found = [f for f in _functions() if any(_like(name, pattern) for name in f.names)]
    if not found:
        said = "is like" if pattern == word else "begins with"
        raise reject("DP903", f"there is no function whose name {said} {word!r}", help=["\\df  lists all"])
    rows = [[cell(f.names[0].lower()), cell(f.signature), cell(f.family)] for f in found]
    _table(shell, ("function", "written", "family"), rows)


@dataclass(frozen=True, slots=True)
class _Function:
    """One line of the registry."""

    names: tuple[str, ...]
    signature: str
    summary: str
    family: str


def _functions() -> list[_Function]:
    known = (("aggregate", AGGREGATES), ("quantile", QUANTILES), ("window", WINDOWS))
    aggregates = [
        _Function((name.upper(),), a.signature, a.summary, family)
        for family, found in known
        for name, a in found.items()
        if family == "aggregate" or name not in AGGREGATES
    ]
    return aggregates + [
        _Function(tuple(n.upper() for n in _names(f)), str(f["signature"]), str(f["summary"]), family)
        for family, found in describe_registry().items()
        for f in found
    ]


def _names(f: dict[str, object]) -> list[str]:
    names = f["names"]
    return [str(n) for n in names] if isinstance(names, list) else []


def databases(shell: Shell, arguments: list[str]) -> None:
    """The policy as psql lists databases."""
    policy = shell.connection.policy
    data = "files of the tables" if policy.database is None else str(policy.server or policy.database_path)
    row = [
        cell(policy.name),
        cell(data),
        cell(", ".join(policy.units)),
        cell(policy.privacy.accountant),
        cell(policy.data_version),
    ]
    _table(shell, ("policy", "data", "units", "accountant", "data version"), [row])


def policy(shell: Shell, arguments: list[str]) -> None:
    """The policy in force, or one table of it."""
    loaded = shell.connection.policy
    name = _found(loaded, unquoted(arguments[0])).name if arguments else None
    _prose(shell, printable(show_policy(loaded, name)))


def conninfo(shell: Shell, arguments: list[str]) -> None:
    """Who asks what."""
    from dpsql import __version__

    connection = shell.connection
    loaded, account = connection.policy, connection.analyst
    who = f"analyst {shell.analyst}" if shell.analyst is not None else "no analyst"
    data = "the files of its tables" if loaded.database is None else loaded.server or loaded.database_path
    lines = (
        f"policy {loaded.name} ({loaded.file}), {loaded.privacy.accountant}",
        f"{who}, account {account}",
        f"data: {data}, read only",
        f"ledger: {shown(connection.ledger_place)}",
        f"epsilon: {shell.amount('epsilon')}, delta: {shell.amount('delta')}",
        f"dpsql {__version__}",
    )
    _prose(shell, "\n".join(map(printable, lines)))


def notes(shell: Shell, arguments: list[str]) -> None:
    """Everything that is said of the last answer."""
    for note in shell.notes:
        _prose(shell, inert(note))
    if not shell.notes:
        exits.say("there are no notes: no answer has any yet")


def budget(shell: Shell, arguments: list[str]) -> None:
    """The accounts of the analyst and in total; with `history` his queries."""
    if arguments and arguments[0] != "history":
        raise reject("DP903", f"\\budget takes nothing or history, not {arguments[0]!r}", help=["\\budget history"])
    loaded, account, place = shell.connection.policy, shell.connection.analyst, shell.connection.ledger_place
    accounts, entries = spent(shell, account)
    own = [r for r in entries if r.entry.analyst == account]
    _table(shell, *budgets.account_rows(loaded, accounts), budgets.closing_line(loaded, place, budgets.queries_of(own)))
    kept = shell.connection.ledger if shell.connection.has_ledger else None
    for who in dict.fromkeys([None, account if account in loaded.budgets.analysts else None]):
        if lines := lines_by_period(loaded, kept, who):
            _prose(shell, "\n".join(lines))
    if arguments:
        _table(shell, *budgets.history_rows(own))


_SQL_HELP = """\
One SELECT (or WITH … SELECT) at a time, ended by ;

  SELECT region, COUNT(*) AS n, AVG(cost) AS mean_cost
  FROM visits JOIN patients USING (patient_id)
  WHERE age >= 18
  GROUP BY region
  ORDER BY n DESC;

Aggregates over private tables: COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, MEDIAN, STDDEV …
CLIP(x, low, high) gives a value bounds. HAVING, ORDER BY, LIMIT, windows and arithmetic above aggregates are free.
  SET epsilon = 0.2;   RESET epsilon;   SHOW epsilon;
  and so with delta, rho, confidence, allow_dearer, coverage, consistent_totals, limits
  EXPLAIN SELECT …;    shows noise and price, and spends nothing
  CREATE DP SUMMARY name ON table (column, …) WITH (k = 2, epsilon = 0.5);    counts for many later queries
  DROP DP SUMMARY name;   SHOW dpsql.summaries;
  CREATE DP COUNTER name AS SELECT key, COUNT(*) AS n FROM t GROUP BY key FROM DATE '…' WITH (rho = 0.002);
                          a number for each closed period, for ever: read it as dpsql.name
  DROP DP COUNTER name;   SHOW dpsql.counters;
\\df lists the functions, \\h NAME explains one, \\h GROUP BY a clause, \\h DP201 a code."""


_ABOUT_SQL: Final = ("SELECT", "EXPLAIN", "SET", "RESET", "SHOW", "SQL", "CREATE", "DROP")
"""Words that the help above is about."""

_OTHERWISE: Final = {
    "AVERAGE": "AVG", "MEAN": "AVG", "STDEV": "STDDEV", "STD": "STDDEV", "VARIANCE": "VAR_SAMP", "VAR": "VAR_SAMP",
    "PERCENTILE": "QUANTILE_CONT", "IFNULL": "COALESCE", "NVL": "COALESCE", "LEN": "LENGTH", "CEILING": "CEIL",
    "CLAMP": "CLIP",
}  # fmt: skip
"""Names of other systems, and what does the same here."""


def help_on(shell: Shell, arguments: list[str]) -> None:
    """On SQL, a function, a clause or a code. Raises Rejected DP903."""
    name = " ".join(arguments).upper() or "SQL"
    name = name.rstrip("()") if name.rstrip("()") else name
    if name in _ABOUT_SQL:
        _prose(shell, _SQL_HELP)
    elif name in CODES:
        page, columns = load_page(name), shell.output.columns
        text = for_terminal(page, columns) if shell.output.color and columns is not None else page
        shell.output.write(text, shell.looks.pager)
    elif found := [f for f in _functions() if name in f.names or _OTHERWISE.get(name) in f.names]:
        _prose(shell, "\n".join(f"{f.signature}\n  {f.summary}" for f in found))
    elif text := clauses.about(name):
        _prose(shell, text)
    else:
        raise _no_help(" ".join(arguments))


def _no_help(name: str) -> Rejected:
    known = [n.lower() for f in _functions() for n in f.names] + [w.lower() for w in clauses.words()]
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.7)
    meant = ["did you mean  " + "  or  ".join(f"\\h {c}" for c in dict.fromkeys(close))] if close else []
    return reject("DP903", f"there is no help on {name!r}", help=[*meant, "\\df  lists functions,  \\?  meta-commands"])
