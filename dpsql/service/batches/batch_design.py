"""What a batch asks, and what is measured for it: from texts, policy and public facts, before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.core.analysis.context import Context
from dpsql.core.analysis.derive import derive
from dpsql.core.ir.expressions import Expr
from dpsql.core.ir.nodes import Scan
from dpsql.core.ir.public_facts import PublicFacts
from dpsql.core.ir.walk import walk
from dpsql.core.policy.policy import Policy
from dpsql.diagnostics.diagnostic import Diagnostic, Source, Span
from dpsql.diagnostics.errors import Rejected, reject
from dpsql.frontend.text.batch_statement import batch_statement
from dpsql.frontend.text.comment_settings import Said
from dpsql.frontend.text.query_comments import settings_before
from dpsql.frontend.text.split import split_statements
from dpsql.planner.batch import marginal_shares as allotted
from dpsql.planner.batch.classes import ValueClasses, classes_of
from dpsql.planner.batch.members import Member, read_member
from dpsql.planner.batch.quantities import ROWS, AskedNumber, Form, Quantity, asked_of, chosen, weights_of
from dpsql.planner.batch.workload import Marginal, MemberTable, Number, table_of
from dpsql.planner.costs.row_weights import WeighedByGroups, limit_on_rows
from dpsql.planner.plan import Plan
from dpsql.planner.settings.query_settings import QuerySettings
from dpsql.service.given_arguments import Parameters, checked_parameters

MOST_TABLES = 100
"""Tables that one statement may read: each marginal reads those of the batch."""


@dataclass(frozen=True, slots=True)
class WrittenMember:
    """A statement of a batch. whole: the text that it stands in, from `start` on; None: it is a text of its own."""

    sql: str
    parameters: Parameters = ()
    whole: Source | None = None
    start: int = 0

    def located(self, refusal: Rejected) -> Rejected:
        """The refusal, pointing into the text that somebody has written."""
        refusal.diagnostics = tuple(map(self._located, refusal.diagnostics))
        return refusal

    def _located(self, d: Diagnostic) -> Diagnostic:
        if d.source is not None and d.source.text != self.sql:
            return d
        d = d.at(Source(self.sql))
        if self.whole is None:
            return d
        d = replace(d, span=Span(0, len(self.sql))) if d.span is None else d
        return d.within(self.whole, self.start)


@dataclass(frozen=True, slots=True)
class Design:
    """What is asked, and what is measured for it.

    forms: of each member, how its numbers are made. shares: of each quantity the part of ε (or ρ) of each of its
    marginals; all of them add up to 1.
    """

    members: Mapping[int, Member]
    tables: Mapping[int, MemberTable]
    forms: Mapping[int, tuple[Form, ...]]
    classes: Mapping[int, ValueClasses]
    refused: Mapping[int, Rejected]
    shares: Mapping[Quantity, Mapping[Marginal, Fraction]]
    gaussian: bool

    @property
    def sizes(self) -> dict[int, int]:
        """Of every column, its number of classes."""
        return {uid: c.size for uid, c in self.classes.items()}

    @property
    def measured(self) -> list[tuple[Quantity, Marginal, Fraction]]:
        """The marginals in the order in which the statement has them, each with its share."""
        return [(q, m, share) for q, each in self.shares.items() for m, share in each.items()]

    def marginal(self, quantity: Quantity, marginal: Marginal) -> str:
        """The query that measures a marginal: a row for each of its cells."""
        first = next(iter(self.members.values()))
        keys = [f"{self.classes[uid].sql} AS c{i}" for i, uid in enumerate(marginal, 1)]
        group = f" GROUP BY {', '.join(str(i) for i in range(1, len(keys) + 1))}" if keys else ""
        return f"SELECT {', '.join([*keys, f'{quantity.sql} AS n'])} FROM {first.from_text}{group}"

    @property
    def sql(self) -> str:
        """All of them as one query, whose releases are the marginals."""
        each = [f"SELECT CAST(n AS DOUBLE) AS n FROM ({self.marginal(q, m)}) AS t" for q, m, _ in self.measured]
        return _all(each)

    def name(self, marginal: Marginal) -> str:
        """What it is a marginal of, in words."""
        return " × ".join(self.classes[uid].name for uid in marginal) or "all rows"


def _all(parts: Sequence[str]) -> str:
    """UNION ALL of all, no deeper than it has to be."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_all(parts[:half])}) UNION ALL ({_all(parts[half:])})"


def designed(
    written: Sequence[WrittenMember],
    read: tuple[dict[int, Member], dict[int, Rejected]],
    policy: Policy,
    public: PublicFacts,
    skip: bool,
) -> Design:
    """The design of members that were read. skip: those that are refused are left out. Raises Rejected."""
    members, refused = dict(read[0]), dict(read[1])
    relation = next(iter(members.values())).relation
    facts = derive(relation, Context(policy, public, policy.defaults.max_keys, drafting=True)).fact
    env = {uid: c.value for uid, c in facts.columns.items()}
    asked: dict[int, tuple[AskedNumber, ...]] = {}
    tables: dict[int, MemberTable] = {}
    kept: dict[Expr, Number] = {}

    def for_each(step: Callable[[int], object]) -> None:
        for place in list(members):
            try:
                step(place)
            except Rejected as refusal:
                if not skip:
                    raise written[place].located(refusal) from None
                refused[place] = written[place].located(refusal)
                members.pop(place)
        _require_any(members, refused)

    def ask(place: int) -> None:
        member = members[place]
        asked[place] = tuple(asked_of(call, member.source, facts) for call in member.calls)

    def tabulate(place: int) -> None:
        tables[place] = table_of(members[place], classes, env, kept)

    for_each(ask)
    try:
        classes = classes_of(list(members.values()), env)
    except Rejected:  # whose is it?
        for_each(lambda place: classes_of([members[place]], env))
        classes = classes_of(list(members.values()), env)
    for_each(tabulate)
    gaussian, sizes = policy.privacy.accountant == "zcdp", {uid: c.size for uid, c in classes.items()}
    workload = _Workload({p: asked[p] for p in tables}, members, tables, sizes, gaussian)
    forms, shares = workload.best()
    _require_few(shares, relation, members)
    return Design(members, tables, forms, classes, refused, shares, gaussian)


class _Workload:
    """How the forms of sums and the shares are chosen.

    *Claim.* Shares are the least of Σ variance/(largest row)² over all numbers, for Gaussian noise exactly, else where
    the descent ends. *Why.* In units of the largest row that a quantity can have, its noise at a share is that of every
    other quantity. So each quantity's own shares do not depend on the others' (`best_shares`), and what each gets of
    the whole follows from its variance at a price of 1 (`divided`). A mean counts for its total, and for a third of its
    count. *When it would be false.* Nothing private rests on it. *Tested by* tests/service/test_batch_sums.py.
    """

    def __init__(
        self,
        asked: Mapping[int, tuple[AskedNumber, ...]],
        members: Mapping[int, Member],
        tables: Mapping[int, MemberTable],
        sizes: Mapping[int, int],
        gaussian: bool,
    ) -> None:
        self._asked, self._members, self._tables = asked, members, tables
        self._sizes, self._gaussian = sizes, gaussian
        self._numbers: dict[AskedNumber, list[Number]] = {}
        for place, each in asked.items():
            for one, column in zip(each, tables[place].numbers, strict=True):
                self._numbers.setdefault(one, []).extend(column)
        self._spreads = {one: allotted.spread(numbers, sizes) for one, numbers in self._numbers.items()}
        self._known: dict[tuple[tuple[AskedNumber, float], ...], tuple[dict[Marginal, Fraction], float]] = {}

    def best(self) -> tuple[dict[int, tuple[Form, ...]], dict[Quantity, dict[Marginal, Fraction]]]:
        """Of each member its forms; of each quantity the share of each marginal."""
        by_argument: dict[Expr | None, list[AskedNumber]] = {}
        for one in self._numbers:
            by_argument.setdefault(one.forms[0].quantities[0].arg, []).append(one)
        sums = {arg: tuple(each) for arg, each in by_argument.items()}
        picked = chosen(
            sums, lambda tried: allotted.whole_variance(list(self._variances(tried).values()), self._gaussian)
        )
        variances = self._variances(picked)
        measured = [q for q, v in variances.items() if v] or [ROWS]
        parts = (
            allotted.divided([variances[q] for q in measured], self._gaussian)
            if variances.get(measured[0])
            else [Fraction(1)]
        )
        shares = {
            q: {m: part * share for m, share in self._own(picked, q)[0].items()}
            for q, part in zip(measured, parts, strict=True)
        }
        return {p: tuple(_form(one, picked) for one in each) for p, each in self._asked.items()}, shares

    def _variances(self, picked: Mapping[Expr, int]) -> dict[Quantity, float]:
        """Of each quantity the variances of all that is made of it, at a price of 1, in units of its largest row."""
        found = dict.fromkeys((q for one in self._numbers for q in _form(one, picked).quantities), 0.0)
        return {q: self._own(picked, q)[1] for q in found}

    def _own(self, picked: Mapping[Expr, int], quantity: Quantity) -> tuple[dict[Marginal, Fraction], float]:
        """The shares of one quantity's marginals among themselves, and the variances with them."""
        weights = [(one, weights_of(_form(one, picked)).get(quantity, 0.0)) for one in self._numbers]
        key = tuple((one, weight) for one, weight in weights if weight)
        if key not in self._known:
            spreads = allotted.together([{b: w * s for b, s in self._spreads[one].items()} for one, w in key])
            wanted = [n.columns for one, _ in key for n in self._numbers[one]]
            own = allotted.best_shares(spreads, wanted, self._sizes, self._gaussian)
            self._known[key] = own, allotted.least_variance(spreads, own, self._sizes, self._gaussian)
        return self._known[key]


def _form(one: AskedNumber, picked: Mapping[Expr, int]) -> Form:
    arg = one.forms[0].quantities[0].arg
    return one.forms[0 if arg is None else min(picked.get(arg, 0), len(one.forms) - 1)]


def _require_few(
    shares: Mapping[Quantity, Mapping[Marginal, Fraction]], relation: object, members: Mapping[int, Member]
) -> None:
    each = sum(isinstance(node, Scan) for node in walk(relation))  # type: ignore[arg-type]
    count = sum(map(len, shares.values()))
    if count * each > MOST_TABLES:
        raise reject(
            "DP302", f"the batch would measure {count} tables: at most {MOST_TABLES // max(1, each)} fit one statement",
            help=["make two batches, each of fewer columns"],
        )  # fmt: skip


def read_members(
    statements: Sequence[WrittenMember], policy: Policy, skip: bool
) -> tuple[dict[int, Member], dict[int, Rejected]]:
    """Members by place, and those that are refused. Raises Rejected: one of them, unless they are skipped; all."""
    members: dict[int, Member] = {}
    refused: dict[int, Rejected] = {}
    for place, each in enumerate(statements):
        try:
            member = read_member(each.sql, checked_parameters(each.sql, each.parameters, "duckdb"), policy)
            first = next(iter(members.values()), member)
            if member.relation != first.relation or member.from_text != first.from_text:
                raise reject(
                    "DP101", f"this member reads other rows than the first: FROM {first.from_text}",
                    source=member.source, help=[f"write  FROM {first.from_text}", "put it into another batch"],
                )  # fmt: skip
            members[place] = member
        except Rejected as refusal:
            if not skip:
                raise each.located(refusal) from None
            refused[place] = each.located(refusal)
    _require_any(members, refused)
    return members, refused


def _require_any(members: Mapping[int, Member], refused: Mapping[int, Rejected]) -> None:
    if members:
        return
    if refused:
        raise Rejected([d for refusal in refused.values() for d in refusal.diagnostics])
    raise reject("DP903", "a batch needs a query", help=["con.batch([sql, …])"])


def written_in(text: Source) -> tuple[list[WrittenMember], bool, tuple[Said, ...]]:
    """The statements of a text, or of the one DP BATCH that it is; whether that one leaves out what is refused, and
    what comments before it say.

    Raises Rejected DP010: a batch that cannot be read; DP902: a comment that says nothing, or elsewhere in a batch.
    """
    batch = batch_statement(text.text)
    queries = text.text if batch is None else batch.queries
    written = [WrittenMember(s.text, (), text, s.start) for s in (s.whole for s in split_statements(queries))]
    return written, batch is not None and batch.skip_refused, () if batch is None else settings_before(text)


def marginal_settings(settings: QuerySettings, design: Design) -> QuerySettings:
    """What the query that measures all marginals is asked with."""
    shares = tuple(share for _, _, share in design.measured)
    return replace(settings, unlisted=True, shares=shares, search=False, coverage=False)


def require_additive(plan: Plan) -> None:
    """Refuse where the weight of a row depends on what is grouped by: marginals would not be of one table."""
    try:
        limits = {limit_on_rows(release.measured.node) for release in plan.releases}
    except WeighedByGroups as why:
        raise _not_additive(str(why), why.rows) from None
    if len(limits) > 1:
        raise _not_additive("a limit per unit holds for some marginals and not for others", None)


def _not_additive(what: str, rows: int | None) -> Rejected:
    limit = "a number of rows" if rows is None else str(rows)
    return reject(
        "DP101", f"{what}: the marginals of a batch would not add up",
        help=[
            f"custodian: declare  max_rows_per_unit: {limit}  alone for this table, or prepare it with that limit",
            "run each query by itself",
        ],
    )  # fmt: skip
