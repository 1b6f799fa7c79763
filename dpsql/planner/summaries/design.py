"""What a summary measures: classes of values of each column, and the marginals with their shares of the price.

Each listed value is a class of its own; values that are not listed are classes by what lies between the listed ones. So
marginals hold every row of the table, and add up. Shares are those at which one cell of each marginal of at most k
columns varies least, all of them counting alike: what will be asked is not known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.nodes import Node, Scan, output_columns
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.policy.policy import Policy
from dpsql.core.values.value import Value
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.lexer import tokens
from dpsql.frontend.text.quoted_names import quoted
from dpsql.frontend.text.summary_statements import CreateSummary, SummaryStatement
from dpsql.planner.batch.classes import ValueClasses, classes_of
from dpsql.planner.batch.marginal_shares import best_shares, spread
from dpsql.planner.batch.members import read_member
from dpsql.planner.batch.workload import MOST_CELLS, MOST_COLUMNS, Marginal, Number
from dpsql.planner.costs.row_weights import WeighedByGroups, limit_on_rows
from dpsql.planner.plan import Plan

MOST_MARGINALS = 100
_MOST_VALUES = 2_000
"""Classes of one column: the query of a marginal names each."""
_LEAST = Fraction(1, 1_000)
"""Every marginal of k columns has at least this share: else nothing could be said of what only it tells."""


@dataclass(frozen=True, slots=True)
class SummaryDesign:
    """What is measured. Columns are called by their place in the summary.

    relation: the rows of the table. values: what is known of each column. places: of each in the table.
    """

    statement: CreateSummary
    relation: Scan
    values: tuple[Value, ...]
    places: tuple[int, ...]
    classes: Mapping[int, ValueClasses]
    shares: Mapping[Marginal, Fraction]
    gaussian: bool

    @property
    def sizes(self) -> dict[int, int]:
        """How many classes each column has."""
        return {place: c.size for place, c in self.classes.items()}

    def sql(self, marginal: Marginal) -> str:
        """The query that measures a marginal."""
        keys = [
            f"{_number_of_class(self.classes[place], quoted(self.statement.columns[place]))} AS c{i}"
            for i, place in enumerate(marginal, 1)
        ]
        group = f" GROUP BY {', '.join(str(i) for i in range(1, len(keys) + 1))}" if keys else ""
        return f"SELECT {', '.join([*keys, 'COUNT(*) AS n'])} FROM {self.statement.table_sql}{group}"

    def name(self, marginal: Marginal) -> str:
        """What it is a marginal of, in words."""
        return " × ".join(self.classes[place].name for place in marginal) or "all rows"


def design_of(statement: CreateSummary, policy: Policy, public: PublicFacts) -> SummaryDesign:
    """From the statement, the policy and public tables. Raises Rejected."""
    if len(statement.columns) > MOST_COLUMNS:
        raise reject("DP302", f"a summary has at most {MOST_COLUMNS} columns", help=["make two summaries"])
    listed = ", ".join(map(quoted, statement.columns))
    text = f"SELECT {listed}, COUNT(*) FROM {statement.table_sql} GROUP BY {listed}"
    member = read_member(text, (), policy)
    relation: Node = member.relation
    if not isinstance(relation, Scan) or policy.tables[relation.table].public:
        raise reject(
            "DP101", f"a summary is of the rows of one private table, and {statement.table_sql} is none",
            help=["query public tables directly: that costs nothing"],
        )  # fmt: skip
    if policy.tables[relation.table].grows is not None:
        raise reject(
            "DP101", f"{relation.table} grows, and a summary is of rows that stay as they are",
            help=["ask the queries themselves"],
        )  # fmt: skip
    facts = derive(relation, Context(policy, public, policy.defaults.max_keys)).fact.columns
    env = {uid: c.value for uid, c in facts.items()}
    found = classes_of([member], env)
    order = [column.uid for column in output_columns(relation)]
    uids = [uid for key in member.keys for uid in found if getattr(key, "uid", None) == uid]
    if len(uids) < len(statement.columns):
        raise reject(
            "DP101", "a computed column of the policy cannot be in a summary",
            help=["name the columns that it is computed of"],
        )  # fmt: skip
    classes = {place: found[uid] for place, uid in enumerate(uids)}
    large = next((c for c in classes.values() if c.size > _MOST_VALUES), None)
    if large is not None:
        raise reject(
            "DP302", f"{large.name} has {large.size:,} values: a column of a summary has at most {_MOST_VALUES:,}",
            help=["leave it out, or  custodian: declare narrower bounds"],
        )  # fmt: skip
    return SummaryDesign(
        statement, relation, tuple(env[uid] for uid in uids), tuple(order.index(uid) for uid in uids), classes,
        _shares(classes, min(statement.k, len(uids)), policy.privacy.accountant == "zcdp"),
        policy.privacy.accountant == "zcdp",
    )  # fmt: skip


def _number_of_class(classes: ValueClasses, column: str) -> str:
    """The number of a row's class: of whole numbers without a gap by subtraction, so that the text stays short."""
    listed = [c.example for c in classes.classes if c.listed and type(c.example) is int]
    rest = [(i, c) for i, c in enumerate(classes.classes) if i >= len(listed)]
    low, high = (listed[0], listed[-1]) if listed else (0, 0)
    plain = [c.example for c in classes.classes[: len(listed)]] == list(range(low, high + 1))
    if len(listed) < 3 or not plain or any(not piece.sql for _, c in rest for piece in c.pieces):
        return classes.sql
    whens = " ".join(f"WHEN {' OR '.join(piece.sql for piece in c.pieces)} THEN {i}" for i, c in rest)
    number = f"COALESCE(CLIP({column}, {low}, {high}), {low}) - {low}"
    return f"CASE {whens} ELSE {number} END" if whens else number


def require_static(statement: SummaryStatement, policy: Policy, sql: str) -> SummaryDesign | None:
    """The design, as far as text and policy alone tell; None: they do not. Raises Rejected, shown in the statement."""
    public = PublicFacts()
    if not isinstance(statement, CreateSummary):
        return None
    try:
        return design_of(statement, policy, public)
    except Rejected as refusal:
        if public.missing:  # lists of values stand in public tables
            return None
        raise shown_in(refusal, sql) from None


def shown_in(refusal: Rejected, sql: str) -> Rejected:
    """A refusal of what a statement stands for, shown in the statement."""
    refusal.diagnostics = tuple(
        d if d.source is None else replace(d, source=Source(sql), span=_named(d, sql)) for d in refusal.diagnostics
    )
    return refusal


def _named(found: Diagnostic, sql: str) -> Span | None:
    """Where the statement has the text that a finding is about."""
    if found.source is None or found.span is None:
        return None
    word = found.source.text[found.span.start : found.span.end]
    return next((Span(t.start, t.end) for t in tokens(sql) if t.text == word), None)


def _shares(classes: Mapping[int, ValueClasses], k: int, gaussian: bool) -> dict[Marginal, Fraction]:
    import numpy as np

    sizes = {place: c.size for place, c in classes.items()}
    every = [m for size in range(k + 1) for m in combinations(sorted(sizes), size)]
    whole = [m for m in every if len(m) == k]
    cells = sum(math.prod(sizes[place] for place in m) for m in every)
    if cells > MOST_CELLS or len(every) > MOST_MARGINALS:
        raise reject(
            "DP302", f"the marginals of {k} of these columns are {len(every)}, with {cells:,} cells",
            help=[f"at most {MOST_MARGINALS} with {MOST_CELLS:,} cells: name fewer columns, or a smaller k"],
        )  # fmt: skip
    numbers = []
    for marginal in every:  # one cell of each: all of its cells vary alike
        weights = np.zeros(tuple(sizes[place] for place in marginal))
        weights[(0,) * len(marginal)] = 1.0
        numbers.append(Number(marginal, weights))
    best = best_shares(spread(numbers, sizes), whole, sizes, gaussian)
    least = {m: max(best.get(m, Fraction(0)), _LEAST if m in whole else Fraction(0)) for m in {*best, *whole}}
    total = sum(least.values())
    return {m: s / total for m, s in sorted(least.items(), key=lambda item: (len(item[0]), item[0]))}


def require_additive(plan: Plan) -> None:
    """Refuse where the weight of a row depends on what is grouped by: marginals would not be of one table."""
    for release in plan.releases:
        try:
            limit_on_rows(release.measured.node)
        except WeighedByGroups as why:
            rows = "" if why.rows is None else f": {why.rows}"
            raise reject(
                "DP101", f"{why}: the marginals would not add up",
                help=[f"custodian: declare  max_rows_per_unit{rows}  alone for this table, or prepare it",
                      "run each query by itself"],
            ) from None  # fmt: skip
        if release.measured.known:
            raise reject("DP101", "these marginals are public: query them directly", help=["that costs nothing"])
