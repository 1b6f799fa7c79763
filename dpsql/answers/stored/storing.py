"""What a run adds to the stored answers: what it has drawn, under the ids that the ledger's entry names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np

from dpsql.answers.stored.address import Addresses, ReleaseAddress
from dpsql.answers.stored.analyst_account import AnalystAccount
from dpsql.core.ir.expressions import LiteralValue
from dpsql.core.ledger.released import ShownKeys, StoredAnswer
from dpsql.core.release.charge import Charged
from dpsql.core.release.draw_names import terms_of
from dpsql.core.release.noisy import GivenAnswers, NoisyRelease, wanted
from dpsql.diagnostics.note import Note, Rank
from dpsql.planner.plan import Plan
from dpsql.planner.postprocessing.noisy_rows import released_rows


def store(plan: Plan, account: AnalystAccount, charged: Charged, noisy: Sequence[NoisyRelease]) -> list[Note]:
    """Store what was drawn last, durably; a note if that fails: it is paid for, so it is shown all the same.

    noisy: the releases that have been measured so far.
    """
    place = len(noisy) - 1
    addresses = account.addresses(plan)
    base = addresses.of(place, {at: released_rows(noisy[at]) for at in addresses.reads(place)})
    own = {tuple(which): name for (at, *which), name in charged.ids.items() if at == place}
    given, moment = charged.given[place], datetime.now(UTC)
    if noisy[place].planned.measured.parts is None:
        answers = to_store(noisy[place], given, base, {i: name for (i,), name in own.items()}, moment)
    else:
        answers = _in_parts(noisy[place], given, addresses, place, own, moment)
    try:
        account.store.add(answers)
    except Exception:  # whatever it is, keeping back what was paid for helps nobody
        return [Note("the answer could not be stored: asking again costs again", Rank.DANGER)]
    return []


def to_store(
    noisy: NoisyRelease, given: GivenAnswers, base: ReleaseAddress, ids: Mapping[int, str], made_at: datetime
) -> list[StoredAnswer]:
    """The answers that a measured release adds. ids: component → id of its noise, as in the ledger's entry."""
    measured = noisy.planned.measured
    deciding = measured.node.threshold
    over = ""
    if deciding is not None:
        over = given.answers[deciding].id if deciding in given.answers else ids[deciding]
    found = []
    for i in wanted(measured, given):
        terms = terms_of(measured, i)
        keys = None if terms.threshold is None else ShownKeys(tuple(noisy.keys), *terms.threshold)
        address = base.address(measured.node.components[i], over) if keys is None else base.address_of_keys()
        found.append(
            StoredAnswer(
                ids[i],
                address,
                noisy.columns[i],
                terms.mechanism,
                terms.parameter,
                terms.losses,
                terms.conversion,
                made_at,
                keys,
                terms.regions,
            )
        )
    return found


def _in_parts(
    noisy: NoisyRelease, given: GivenAnswers, addresses: Addresses, place: int, ids: Mapping[tuple[int, ...], str],
    made_at: datetime,
) -> list[StoredAnswer]:  # fmt: skip
    """One answer for each component and part, at the address of the same release of its days alone."""
    measured, found = noisy.planned.measured, list[StoredAnswer]()
    split = measured.parts
    assert split is not None
    rows: dict[LiteralValue, list[int]] = {}
    for row, key in enumerate(noisy.keys):
        rows.setdefault(key[split.place], []).append(row)
    for at, part in enumerate(split.parts):
        base, days = addresses.of_part(place, part.days, part)
        own = np.array(sorted(row for value in part.keys for row in rows.get(value, ())), dtype=np.intp)
        for i in wanted(measured, given):
            terms = terms_of(measured, i, part)
            found.append(
                StoredAnswer(
                    ids[i, at], base.on(days, measured.node.components[i]), noisy.columns[i].taken(own),
                    terms.mechanism, terms.parameter, terms.losses, terms.conversion, made_at, None, terms.regions,
                )
            )  # fmt: skip
    return found
