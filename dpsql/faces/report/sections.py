"""The sections of a report that say whom a policy protects, how much, and with which limits. Each returns HTML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from dpsql.core.ledger.losses import many_periods
from dpsql.core.policy.growing import Every
from dpsql.core.policy.period_ids import ids_of_periods, whose
from dpsql.core.policy.policy import Policy
from dpsql.core.policy.tables import Column, Table, TableDomain, ValuesDomain
from dpsql.core.policy.units import DEFAULT_UNIT, PathUnit, RowUnit, Unit
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss
from dpsql.faces.report import charts, odds
from dpsql.faces.report.markup import bullets, paragraph, section, table, text
from dpsql.policy.issues import shown
from dpsql.policy.tools.assumptions import protection
from dpsql.policy.tools.show import loss_text


def one_of(unit: Unit) -> str:
    """What one unit is called in a sentence: `patient`, `row of visits`, else `unit`."""
    if unit.kind == "rows":
        return f"row of {' or '.join(unit.tables)}"
    return "unit" if unit.name == DEFAULT_UNIT else unit.name


def whom(policy: Policy) -> str:
    """Who is protected, and from whom."""
    rows = []
    for unit in _units(policy):
        rows.append((f"<b>{text(one_of(unit))}</b>", text(_what(policy, unit)), text(", ".join(unit.tables))))
    return section(
        "whom", "Who is protected, and from whom",
        table(("Protected", "What may come or go without being noticed", "Tables"), rows),
        *(paragraph(text(note), kind="warn") for note in (*_row_notes(policy), *_period_notes(policy))),
        *_over_periods(policy),
        paragraph(
            "<b>From</b> everybody who sees answers: each analyst, all of them together, and whoever they pass answers "
            "on to. It does not matter what else they know or will know: the protection holds even against somebody "
            "who knows all rows of everybody else, this page, and the program."
        ),
        paragraph(
            "<b>Not from</b> those who hold the data: the custodian, whoever administers the machine, and the program "
            "itself, which computes exact numbers before it adds noise."
        ),
        *(paragraph(text(f"Somebody who is in several tables or units, {line}"), kind="dim")
          for line in (protection(policy) if len(policy.units) > 1 or _by_rows(policy) else ())),
    )  # fmt: skip


def _units(policy: Policy) -> list[Unit]:
    return [unit for unit in policy.units.values() if unit.tables]


def _by_rows(policy: Policy) -> bool:
    return any(unit.kind == "rows" for unit in _units(policy))


def _what(policy: Policy, unit: Unit) -> str:
    """In one sentence."""
    if unit.kind == "rows":
        most = max(owner.rows for t in unit.tables if isinstance(owner := policy.tables[t].protection, RowUnit))
        what = f"{'one row' if most == 1 else f'up to {most} rows'} of such a table"
    else:
        own = ids_of_periods(policy).get(unit.name)
        one = one_of(unit) if own is None else whose(own)
        what = f"all rows of one {one}, in all of these tables together"
    return f"{what}: {'added or removed' if unit.neighbours == 'add_remove' else 'replaced by others'}"


def _row_notes(policy: Policy) -> Iterator[str]:
    """Said once for all tables in which as many rows are the unit."""
    found: dict[int, list[str]] = {}
    for name, known in policy.tables.items():
        if isinstance(known.protection, RowUnit):
            found.setdefault(known.protection.rows, []).append(name)
    for rows, tables in found.items():
        many = "n" if rows == 1 else f"n/{rows}"
        yield (
            f"In {', '.join(tables)} a row is protected, not a person. Somebody with n rows there is protected at "
            f"{many} times the ε that this page states: less, the more rows there are."
        )


def _period_notes(policy: Policy) -> Iterator[str]:
    """Of units that have a budget for each period, what that means for somebody who is in many."""
    ids = ids_of_periods(policy)
    for unit, (found, *_) in {**{unit: (own,) for unit, own in ids.items()}, **policy.by_period}.items():
        assert found.grows is not None
        every = found.grows.every
        if unit in ids:
            yield (
                f"One {whose(found)} is protected. A {found.per} of many {every}s is protected less: over d {every}s "
                "the loss may be d times what this page states, and more under δ or ρ."
            )
        else:
            yield (
                f"The budget of {found.name} is of each {every}. Somebody with a row in each of d {every}s is "
                f"protected less: the loss may be d times what this page states, and more under δ or ρ."
            )


def _over_periods(policy: Policy) -> Iterator[str]:
    """Of units with a budget for each period: what it allows of 1, 7, 28 and 365 days, or as many weeks or months."""
    found: dict[Every, list[tuple[str, ...]]] = {}
    for unit, (own, *_) in policy.by_period.items():
        cap = policy.caps_for().total.get(unit)
        if cap is not None and own.grows is not None:
            every = own.grows.every
            whom = f"a {own.per}" if own.per else f"somebody with one row of {own.name} in each"
            cells = (many_periods.told(cap, n) for n in many_periods.PERIODS[every])
            found.setdefault(every, []).append((f"<b>{text(whom)}</b>", *map(text, (loss_text(cap), *cells))))
    for every, rows in found.items():
        periods = (f"{n} {every}s" for n in many_periods.PERIODS[every])
        yield table(("May lose in all", f"1 {every}", *periods), rows)


def meaning(policy: Policy, spent: Mapping[str, PrivacyLoss]) -> str:
    """What ε and δ mean: as odds, for one query, for what is spent, and for the whole budget."""
    parts = [
        paragraph(
            "An answer with noise moves what somebody believes about a person only a little, and ε says how far: the "
            "odds that somebody is in the data change by a factor of at most e<sup>ε</sup>. The smaller ε, the better. "
            "These are worst cases: whoever guesses is assumed to know everything but this one person."
        )
    ]
    alike: dict[tuple[int, tuple[tuple[str, str, Fraction], ...]], list[Unit]] = {}
    for unit in _units(policy):
        stages = tuple(_stages(policy, unit, spent.get(unit.name, NO_LOSS)))
        alike.setdefault((odds.steps(unit.neighbours), stages), []).append(unit)
    for (step, stages), units in alike.items():
        parts += _odds_of(text(" or ".join(map(one_of, units))), step, stages, alone=len(alike) == 1)
    parts += [
        paragraph(_delta_words(policy)),
        paragraph(
            "<small>Formulas. Bayes’ rule: a guess of probability p rises to at most p / (p + (1 − p)·e<sup>−x</sup>), "
            "with x = ε for whether somebody is in the data at all, and for a property x = 2ε where people are added "
            "or removed (with one property, without them, with another: two steps), x = ε where they are replaced. "
            "Source: Dwork, McSherry, Nissim and Smith, <i>Calibrating noise to sensitivity</i>, 2006, Definition 1; "
            "Kasiviswanathan and Smith, <i>On the “semantics” of differential privacy</i>, 2014."
            + (
                " ρ is told as ε at δ = 10⁻⁶: Canonne, Kamath and Steinke, <i>The discrete Gaussian</i>, 2020, "
                "Corollary 13."
                if policy.privacy.accountant == "zcdp"
                else ""
            )
            + " All numbers are rounded up.</small>"
        ),
    ]
    return section("meaning", "What the numbers mean", *parts)


def _odds_of(name: str, step: int, stages: Sequence[tuple[str, str, Fraction]], *, alone: bool) -> Iterator[str]:
    """Of units for which the same may be asked. name: of one of them, as HTML."""
    if not alone:
        yield f"<h3>{name}</h3>"
    one = next((e for said, _, e in stages if said == ONE_QUERY), None)
    total = stages[-1][2]
    said = [
        f"<b>{odds.in_hundred(odds.afterwards(0.01, epsilon, step))}</b> {when}"
        for epsilon, when in ((one, "after one query"), (total, "after everything that may ever be asked"))
        if epsilon is not None
    ]
    yield paragraph(
        f"Whoever thought it <b>1 in 100</b> that a {name} has some property may come to think it, in the worst case, "
        f"{', and '.join(said)}.", kind="note",
    )  # fmt: skip
    header = ("", "ε", "1 in 100 becomes", "1 in 2 becomes", "1 in 2 becomes")
    rows = [
        (
            f"<b>{number}&ensp;{text(label)}</b>" + (f"<br><small>{text(amount)}</small>" if "ρ" in amount else ""),
            text(charts.short(epsilon)),
            odds.in_hundred(odds.afterwards(0.01, epsilon, step)),
            odds.in_hundred(odds.afterwards(0.5, epsilon, step)),
            odds.in_hundred(odds.afterwards(0.5, epsilon)),
        )
        for number, (label, amount, epsilon) in enumerate(stages, 1)
    ]
    yield table(header, rows, kind="odds", above=(("", 2), ("has some property", 2), ("is in the data at all", 1)))
    if odds.afterwards(0.01, total, step) > 0.5:
        yield paragraph(
            "<b>Read this with care.</b> The whole budget is no limit that a board should rely on alone: somebody who "
            "could put all of it into questions about one person would get far. What counts besides is how much each "
            "analyst may spend, and how much has been spent.", kind="warn",
        )  # fmt: skip
    yield f"<h3>Guesses against ε{'' if alone else f', {name}'}</h3>"
    yield charts.odds(step, [epsilon for _, _, epsilon in stages])


ONE_QUERY = "One query, by default"


def _stages(policy: Policy, unit: Unit, spent: PrivacyLoss) -> Iterator[tuple[str, str, Fraction]]:
    """What may be asked, how much that is, and the same as ε; the whole budget is the last."""
    if policy.defaults.epsilon is not None:
        epsilon = policy.defaults.epsilon
        yield ONE_QUERY, loss_text(PrivacyLoss(epsilon)), epsilon
    if spent != NO_LOSS:
        yield "Spent so far", str(spent), odds.as_epsilon(spent)[0]
    caps = [(name, own.cap) for name, own in policy.budgets.analysts.items() if name != "*"]
    if caps:
        name, cap = max(caps, key=lambda one: (one[1].epsilon, one[1].rho))
        yield f"One analyst alone ({name})", loss_text(cap), odds.as_epsilon(cap)[0]
    total = policy.caps_for().total.get(unit.name, NO_LOSS)
    yield "The whole budget", loss_text(total), odds.as_epsilon(total)[0]


def _delta_words(policy: Policy) -> str:
    deltas = {delta for cap in policy.caps_for().total.values() if (delta := odds.as_epsilon(cap)[1])}
    if not deltas:
        return "<b>δ</b> is 0 here: the bounds above hold for every outcome, without exception."
    delta = max(deltas)
    sizes = [table.size for table in policy.tables.values() if table.size is not None and not table.public]
    many = max(sizes, default=100_000)
    of = (
        f"the {many:,} rows that the policy declares"
        if sizes
        else f"{many:,} people, say (the policy declares no number),"
    )
    return (
        "<b>δ</b> is an allowance beside ε: because of one person, no conclusion becomes more than e<sup>ε</sup> times "
        f"as probable, plus <b>{odds.one_in(delta)}</b>, over the whole budget. For {of} these allowances "
        f"add up to {float(delta * many):.2g}; that sum should stay far below 1."
    )


def limits(policy: Policy) -> str:
    """Limits per table, and what they do to answers; from the policy alone."""
    cards = []
    for found in policy.tables.values():
        if found.public:
            continue
        said = list(_limits_of(found))
        cards.append(
            f"<h3>{text(found.name)}</h3>"
            + (bullets(said) if said else paragraph("No limit is declared: only rows can be counted.", kind="dim"))
        )
    public = [found.name for found in policy.tables.values() if found.public]
    tail = paragraph(f"Public, shown as they are: {text(', '.join(public))}.", kind="dim") if public else ""
    return section(
        "limits", "Limits, and what they cut",
        paragraph(
            "So that no person can move an answer far, each counts only so much. Limits make answers less exact for "
            "those above them, and what lies above is missing from totals; they never weaken the protection. This is "
            "what the policy declares; no data was read "
            "for it."
        ),
        *cards, tail,
    )  # fmt: skip


def _limits_of(found: Table) -> Iterator[str]:
    who = "unit" if found.unit in (None, DEFAULT_UNIT) else str(found.unit)
    limit = found.max_rows_per_unit
    if found.search_rows:
        most = f", at most {found.at_most}" if found.at_most else ""
        yield text(f"How many rows of one {who} count is searched by queries, and paid for{most}.")
    elif limit is not None and limit.assumed:
        yield text(f"No {who} has more than {limit.rows} rows: a promise, see below.")
    elif limit is not None:
        yield text(
            f"A {who} with more than {limit.rows} rows counts as {limit.rows}: each of the rows has less weight."
        )
    if found.max_groups_per_unit is not None:
        yield text(f"A {who} in more than {found.max_groups_per_unit} groups counts less in each.")
    if found.max_rows_per_group is not None:
        yield text(f"A {who} with more than {found.max_rows_per_group} rows in a group counts as that many there.")
    if isinstance(found.protection, PathUnit):
        yield text(f"Rows that lead to no {who} are left out.")
    bounded = [text(said) for column in found.columns.values() if (said := _bounds(column))]
    if bounded:
        yield f"Sums and averages move values beyond these bounds to the nearer end: {', '.join(bounded)}."
    for column in found.columns.values():
        if said := _groups(column):
            yield said
    longest = [f"{c.name} after {c.max_length}" for c in found.columns.values() if c.max_length is not None]
    if longest:
        yield text(f"Lists are cut: {', '.join(longest)} elements.")
    if found.size is not None:
        yield text(f"Its size, {found.size:,} rows, is public.")


def _bounds(column: Column) -> str:
    if column.search_bounds:
        return f"{column.name} (searched by queries, and paid for)"
    if column.bounds is None:
        return ""
    low, high = ("open" if end is None else shown(end) for end in column.bounds)
    return f"{column.name} {low} to {high}"


def _groups(column: Column) -> str:
    match column.domain:
        case ValuesDomain(values=values):
            return text(
                f"Groups by {column.name} are a public list of {len(values)}; rows with another value are left out."
            )
        case TableDomain(table=other, column=name):
            return text(f"Groups by {column.name} are those of {other}.{name}; rows with another value are left out.")
        case None:
            return ""
