"""Whether stored answers are paid for: what the ledger's own entries say of them, and of whose account holds them.

*Claim.* An answer that `paid` lets pass is noise that an entry of this ledger names, at the very loss that the answer
states; it is `held` only if an entry of this account names it. *Why.* Each id ends in a hash of the noise and its
price, which are known before the noise is drawn; an entry holds the ids of all that its account gets through it, is
durable before any of that noise is drawn, and the ledger's chain holds the entry. The numbers cannot be in the hash:
the entry is durable before they exist. *When it would be false.* If somebody found a second preimage of 128 bits of
SHA-256; if two draws had one id; or if an entry could be rewritten: then the ledger has nothing to hold. *Tested by*
tests/core/ledger/test_paid.py, tests/core/ledger/test_edited_answers.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.losses import regions
from dpsql.core.ledger.losses.regions import Region
from dpsql.core.ledger.released import StoredAnswer
from dpsql.core.privacy_loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class Terms:
    """How one answer is made and what it costs: what is known of it before its noise is drawn.

    mechanism, parameter, losses, conversion, regions: as in `StoredAnswer`. threshold: of the keys that it decides, as
    (threshold, r, g, δ); None if it decides none.
    """

    mechanism: str
    parameter: Fraction
    losses: Mapping[str, PrivacyLoss]
    conversion: Fraction
    threshold: tuple[int, int, int, Fraction] | None = None
    regions: Mapping[str, Region] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Paid:
    """Stored answers, each once. held: the account has them through an entry of its own. received: others have paid
    for them, and this account has not; it is charged what they cost before it is shown any.
    """

    held: tuple[StoredAnswer, ...] = ()
    received: tuple[StoredAnswer, ...] = ()


def paid(ledger: Ledger, analyst: str, answers: Iterable[StoredAnswer]) -> Paid:
    """How an account comes to these answers. Raises AssertionError for one that this ledger was not charged for."""
    by_id = {answer.id: answer for answer in answers}
    if not by_id:
        return Paid()
    own = ledger.received(analyst)
    new = by_id.keys() - own
    if new and not new <= ledger.received():
        raise AssertionError("a stored answer that no entry of the ledger names")
    if not all(map(unchanged, by_id.values())):
        raise AssertionError("a stored answer whose price is not the one that its entry names")
    held = tuple(answer for id, answer in by_id.items() if id in own)
    return Paid(held, tuple(answer for id, answer in by_id.items() if id not in own))


# --- names that state a price -----------------------------------------------------------------------------------------


def draw_from(name: str, data: str) -> str:
    """The text for a draw of this name. data: what the data are, in letters and digits; empty if nobody can tell."""
    return f"{name}-{data}" if data else name


def named(draw: str, place: int, terms: Terms) -> str:
    """The id of the answer for component `place` of a release. draw: as of `draw_from`, of a name for it alone."""
    return f"{draw}.{place}.{_hash(draw, place, terms)}"


def draw_of(answer_id: str) -> str:
    """The draw that an answer is part of."""
    return answer_id.partition(".")[0]


def data_of(answer_id: str) -> str:
    """What the data were when it was drawn, as the engine identified them; empty where it could not."""
    return draw_of(answer_id).partition("-")[2]


def unchanged(answer: StoredAnswer) -> bool:
    """Whether the answer's terms are those that its id was made for. False for an id of any other form."""
    draw, _, rest = answer.id.partition(".")
    place, _, found = rest.partition(".")
    if not (place.isascii() and place.isdigit() and len(place) < 10):
        return False
    shown = answer.shown
    threshold = None if shown is None else (shown.threshold, shown.r, shown.g, shown.delta)
    terms = Terms(answer.mechanism, answer.parameter, answer.losses, answer.conversion, threshold, answer.regions)
    if any(answer.losses.get(unit) != regions.dearest(own) for unit, own in answer.regions.items()):
        return False
    return found == _hash(draw, int(place), terms)


def write_losses(losses: Mapping[str, PrivacyLoss], by_period: Mapping[str, Region]) -> str:
    """Privacy unit → exact loss, or what each period loses, as text that says each value in one way."""
    parts: dict[str, object] = {unit: regions.write_loss(loss) for unit, loss in losses.items()}
    return json.dumps(parts | {unit: regions.write(own) for unit, own in by_period.items()}, sort_keys=True)


def _hash(draw: str, place: int, terms: Terms) -> str:
    threshold = None if terms.threshold is None else [str(Fraction(part)) for part in terms.threshold]
    text = json.dumps(
        [
            draw,
            place,
            terms.mechanism,
            str(Fraction(terms.parameter)),
            write_losses(terms.losses, terms.regions),
            str(Fraction(terms.conversion)),
            threshold,
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]
