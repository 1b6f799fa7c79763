"""The report: one page that loads nothing, made of a policy, its ledger and, if asked, of numbers of the data."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence

from dpsql.core.ledger.ledger import EntryKind
from dpsql.core.policy.policy import Policy
from dpsql.core.privacy_loss import NO_LOSS, PrivacyLoss, show_spent
from dpsql.faces.report import charts, odds, sections
from dpsql.faces.report.deployments import DEPLOYMENTS, LOOKED_UP
from dpsql.faces.report.markup import bullets, document, paragraph, section, table, text
from dpsql.faces.report.spending import Panel, panels
from dpsql.faces.report.style import style
from dpsql.policy.tools.assumptions import grouped, promises
from dpsql.policy.tools.decisions import undecided
from dpsql.policy.tools.show import loss_text
from dpsql.service.accounts.spending_story import SpendingStory
from dpsql.service.checks.verify import Checked, Verification

NOT_COVERED = (
    "<b>What is true of many.</b> That smokers fall ill more often is learned from everybody, and tells about each "
    "smoker, also about one who is not in the data.",
    "<b>A false promise.</b> The protection rests on the promises below; each says what happens if it is false.",
    "<b>Who holds the data.</b> Custodian, machine and program are trusted; so is an analyst with access to the files.",
    "<b>Time.</b> How long a query takes depends on the data. A server answers at declared moments; a program on the "
    "analyst’s own machine does not hide it.",
    "<b>Other publications.</b> What else is known or published about the same people adds to what they can lose. A "
    "new policy with a new ledger starts to count anew, but the people are the same.",
    "<b>People who resemble each other.</b> A family’s rows tell about each other; each is protected by itself.",
    "<b>Words of queries.</b> The ledger keeps the text of what was asked, for the custodian; this page leaves it out.",
)


def report(
    policy: Policy, story: SpendingStory | None, measured: Verification | None, *, version: str, today: dt.date
) -> str:
    """The page as HTML.

    story: of the ledger, None if there is none yet. measured: what `policy verify` found, only where the custodian
    asked for it: exact numbers about private data, which the page then says at its top. version: of dpsql.
    """
    told = story or SpendingStory(policy.unit_names)
    spent = {unit: told.trail(unit, None).spent for unit in policy.units}
    drawn = panels(policy, told, None)
    body = [
        "<main>", *_head(policy, spent, told.charges, measured, today),
        _unreviewed(version),
        _to_fill(),
        sections.whom(policy),
        sections.meaning(policy, spent),
        sections.limits(policy),
        *([] if measured is None else [_measured(measured)]),
        _spending(drawn, told, story is not None),
        _beside(policy),
        section("uncovered", "What is not covered", bullets(NOT_COVERED)),
        _promises(policy, measured, today),
        f"<footer>Made by dpsql {text(version)} on {today} for policy {text(policy.name)}, whose content has the hash "
        f"{policy.hash[:16]}. Another hash is another policy.</footer></main>",
    ]  # fmt: skip
    return document(f"Privacy report: {policy.name}", style(), "\n".join(body))


def about_made_up(policy: Policy) -> str:
    """The page in place of a report, where the data is made up."""
    said = "The rows of this database are made up. They are nobody’s, nothing is spent, and there is nothing to report."
    return document(f"Privacy report: {policy.name}", style(), f"<main>{paragraph(said)}</main>")


def _head(
    policy: Policy, spent: dict[str, PrivacyLoss], queries: int, measured: Verification | None, today: dt.date
) -> Iterator[str]:
    units = [sections.one_of(u) for u in policy.units.values() if u.tables]
    totals = policy.caps_for().total
    largest = max(totals.values(), key=lambda loss: (loss.epsilon, loss.rho), default=NO_LOSS)
    used = max(spent.values(), key=lambda loss: (loss.epsilon, loss.rho), default=NO_LOSS)
    facts = (
        (text(", ".join(units) or "nobody"), "protected, with all of their rows" if not _rows(policy) else "protected"),
        (text(loss_text(largest)), "may ever be learned of each, by everybody together"),
        (text(_short(used)), f"spent so far, by {queries or 'no'} quer{'y' if queries == 1 else 'ies'}"),
        (str(len(promises(policy)) or "none"), "promises that nothing enforces, to be signed below"),
    )
    yield (
        f"<header><p class=eyebrow>Privacy report · {today.day} {today:%B %Y}</p><h1>{text(policy.name)}</h1>"
        "<p class=lead>Questions about these data are answered with differential privacy: each answer has random "
        f"noise, so that all answers together tell little about any one {text(' or '.join(units) or 'unit')}. "
        "This page says how little, what has been spent of it, and what it rests on.</p></header>"
    )
    if undecided(policy):
        yield paragraph(
            "<b>A draft.</b> Decisions are open, and nobody is answered under this policy. What stands below is "
            "what it would say as it is.",
            kind="warn",
        )
    if measured is not None:
        yield paragraph(
            "<b>Private.</b> This copy holds exact numbers about private data, which no ε covers: do not pass it on.",
            kind="warn",
        )
    yield (
        "<div class=cards>" + "".join(f"<div class=fact><b>{a}</b><span>{b}</span></div>" for a, b in facts) + "</div>"
    )


def _unreviewed(version: str) -> str:
    return paragraph(
        f"<b>Not on its word alone.</b> dpsql {text(version)} is a version before 1.0, and nobody outside the project "
        "has reviewed it. Do not release data that must not be disclosed on this program’s word alone: have somebody "
        "read what it is trusted with.",
        kind="warn",
    )  # fmt: skip


def _to_fill() -> str:
    """What neither policy nor ledger knows, and a board has to."""
    blanks = ("Controller", "Custodian", "Purpose of the questions", "Period and source of the data")
    asked = (
        "☐ at a server: analysts never hold a record. ☐ in the analyst’s own process, which can read the data: then "
        "the analyst is trusted with them, and protected is only what is passed on"
    )
    rows = [(f"<b>{name}</b>", "") for name in blanks]
    return section(
        "fill", "To be filled in",
        table(("What only you know", "Answer"), [*rows, ("<b>How questions are asked</b>", asked)]),
    )  # fmt: skip


def _short(spent: PrivacyLoss) -> str:
    """In three digits, rounded up."""
    main = f"ρ {show_spent(spent.rho, 3)}" if spent.rho else f"ε {show_spent(spent.epsilon, 3)}"
    return "nothing" if spent == NO_LOSS else f"{main}, δ {show_spent(spent.delta, 3)}" if spent.delta else main


def _rows(policy: Policy) -> bool:
    return any(unit.kind == "rows" for unit in policy.units.values())


def _measured(found: Verification) -> str:
    """What limits cut in these data, and promises that they break."""
    rows = [
        (f"<b>{text(check.measures)}</b>", _count(check), text(check.claim))
        for check in found.checks
        if check.status == "info" and check.measures and check.measured
    ]
    broken = [
        f"<b>{text(c.claim)}</b>: {text(c.measures)}: {c.measured:,}. If false: {text(c.when_false)}."
        for c in found.broken
    ]
    doubts = [
        f"<b>{text(c.claim)}</b>: {text(c.measures)}: {_count(c)}. If so: {text(c.when_false)}." for c in found.doubtful
    ]
    parts = [
        paragraph(
            "<b>Private numbers.</b> Measured in the data, exactly; this section must not be published.", kind="warn"
        )
    ]
    parts.append(
        table(("What", "How many", "What follows"), rows)
        if rows
        else paragraph("These limits cut nothing in these data.")
    )
    if doubts:
        parts += ["<h3>What these data speak against</h3>", bullets(doubts)]
    if broken:
        parts += ["<h3>Promises that these data break</h3>", bullets(broken)]
    else:
        parts.append(
            paragraph("These data break none of the promises, and prove none: they are about any other data, too.")
        )
    return section("measured", "What the limits cut in these data", *parts)


def _count(check: Checked) -> str:
    measured = check.measured or 0
    return f"{measured:,}" if not check.of else f"{measured:,} of {check.of:,} ({100 * measured / check.of:.2g} %)"


def _spending(drawn: Sequence[Panel], told: SpendingStory, has_ledger: bool) -> str:
    title = "What has been spent, and by whom"
    accepted = [r for r in told.changes if r.entry.kind is EntryKind.ACCEPTANCE]
    if not told.charges:
        nothing = "nothing was ever asked" if not accepted else "nothing was asked since it was accepted"
        why = f"There is no ledger yet: {nothing}." if not has_ledger else f"{nothing.capitalize()}."
        bars = (f"<h3>{text(panel.title)}</h3>{charts.bars(panel)}" for panel in drawn if panel.part != "delta")
        return section("spent", title, paragraph(why), *bars, *_changed(told))
    dropped = ", but what a dropped counter will never measure" if any(panel.every for panel in drawn) else ""
    parts = [
        paragraph(
            f"Every query is charged before data are read, and no charge is ever given back{dropped}. The total counts "
            "new noise; an account counts also what it was given of answers that others had paid for. The account * is "
            "of everybody who has none of his own."
        )
    ]
    for panel in drawn:
        parts += [f"<h3>{text(panel.title)}</h3>", charts.bars(panel)]
        if panel.part != "delta":
            parts.append(charts.over_time(panel))
            if by_period := charts.by_period(panel):
                parts += [f"<h3>{text(panel.title)}, by {panel.every} of the rows</h3>", by_period]
    rows = [
        (f"<b>{text(name)}</b>", f"{count:,}", text(told.last_days[name]))
        for name, count in sorted(told.counts.items())
    ]
    parts.append(table(("Account", "Queries charged", "Last on"), rows))
    return section("spent", title, *parts, *_changed(told))


def _changed(told: SpendingStory) -> Iterator[str]:
    """What the ledger knows of changes by custodians: of itself, of budgets, and of the policy."""
    for receipt in told.changes:
        if receipt.entry.kind is EntryKind.BUDGET:
            said = receipt.entry.statement
            yield paragraph(
                f"<b>A budget was changed</b> on {text(receipt.reserved_at[:10])}: {text(said)}.", kind="warn"
            )
        if receipt.entry.kind is not EntryKind.ACCEPTANCE:
            continue
        said = receipt.entry.statement.removeprefix("ACCEPT LEDGER ")
        yield paragraph(
            f"<b>The ledger was accepted as it stood</b> on {text(receipt.reserved_at[:10])}, {text(said)}.",
            kind="warn",
        )
    if (policies := len(told.policies)) > 1:
        yield paragraph(
            f"These queries were charged under {policies} different texts of this policy, whose totals may have "
            "differed: <code>dpsql budget --history</code> says from which entry on."
        )
    yield paragraph(
        "<small>Whoever administers the machine is trusted with the ledger: an older ledger that was put back together "
        "with its head, or one removed with its head, is not seen here.</small>"
    )


def _beside(policy: Policy) -> str:
    """Published figures of others beside the policy's own."""
    total = max((odds.as_epsilon(loss)[0] for loss in policy.caps_for().total.values()), default=None)
    marks = [(f"{text(d.who)} <small>{text(d.what)}</small>", d.epsilon, d.figure, False) for d in DEPLOYMENTS]
    if total is not None:
        marks.append(("This policy: everything, for ever", float(total), f"ε {charts.short(total)}", True))
    rows = [
        (
            f"<b>{text(d.who)}</b><br><small>{text(d.what)}</small>", text(d.figure), text(d.protects),
            f'<a href="{text(d.source)}" rel=noreferrer><small>{text(d.source.removeprefix("https://"))}</small></a>',
        )
        for d in DEPLOYMENTS
    ]  # fmt: skip
    return section(
        "beside", "Beside known public deployments",
        paragraph(
            "There is no ε that is right for all data. These are published figures. They do not protect the same "
            "thing: an ε of one day is spent again on the next, one of a whole publication is not. This policy’s "
            "total is for ever, over everything that is ever asked; a single query is not comparable to any of them."
        ),
        charts.dots(sorted(marks, key=lambda mark: mark[1])),
        paragraph("<small>The scale is the logarithm of ε.</small>"),
        table(("Who, and what", "Published", "Protects", "Source"), rows, kind="wide"),
        paragraph(f"<small>Looked up on {LOOKED_UP}.</small>"),
    )  # fmt: skip


def _promises(policy: Policy, measured: Verification | None, today: dt.date) -> str:
    """The promises by kind, with a box for each and a line for a signature."""
    groups = [
        f"<div class=group><h3>{text(group.heading)}</h3>"
        f"{bullets(text(claim) for claim in group.claims)}"
        f"<p class=dim><small>If false: {text(group.when_false)}.</small></p></div>"
        for group in grouped(policy)
    ]
    return section(
        "promises", "Promises to sign",
        paragraph(
            "Nothing enforces these. They are about any data that may ever stand here, not only today’s."
        ),
        paragraph(
            _checked(measured, today), kind="warn" if measured is None or not measured.holds else "note"
        ),
        *groups,
        f"<p>I confirm these promises for policy <b>{text(policy.name)}</b>, hash {policy.hash[:16]}.</p>"
        "<div class=sign><span>Name and role</span><span>Date</span><span>Signature</span></div>",
    )  # fmt: skip


def _checked(measured: Verification | None, today: dt.date) -> str:
    """Whether data were asked about the promises, when, and with which result."""
    if measured is None:
        return (
            "<b>Not checked for this report.</b> No data was read for it. Whoever signs has them checked "
            "first, by <code>dpsql policy verify</code> or this report with <code>--data</code>, where data can tell."
        )
    states = Counter(check.status for check in measured.checks)
    return (
        f"<b>Checked on {today}</b> for this report, against the data as they were then: {states['ok']} kept, "
        f"{states['broken'] or 'none'} broken, {states['doubtful'] or 'none'} in doubt, {states['untestable']} that no "
        "data can tell and somebody has to know."
    )
