"""Names of stored answers that state what they cost, so that the ledger's chain keeps the price as well.

*Claim.* An answer whose `terms` were changed in the file is not `unchanged` under any id that a ledger names. *Why.*
The id ends in a hash of the noise and its price, which are known before the noise is drawn; the ledger's entry holds
the id, and the chain holds the entry. The numbers cannot be in it: the entry is durable before they exist. *When it
would be false.* If somebody found a second preimage of 128 bits of SHA-256, or if the entry could be rewritten: then
the ledger has nothing to hold. *Tested by* tests/core/ledger/test_edited_answers.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpsql.answers.store.text import write_losses
from dpsql.core.privacy_loss import PrivacyLoss
from dpsql.core.release.released import Answer


@dataclass(frozen=True, slots=True)
class Terms:
    """How one answer is made and what it costs: what is known of it before its noise is drawn.

    mechanism, parameter, losses, conversion: as in `Answer`. threshold: of the keys that it decides, as
    (threshold, r, g, δ); None if it decides none.
    """

    mechanism: str
    parameter: Fraction
    losses: Mapping[str, PrivacyLoss]
    conversion: Fraction
    threshold: tuple[int, int, int, Fraction] | None = None


def named(draw: str, place: int, terms: Terms) -> str:
    """The id of the answer for component `place` of a release. draw: a text for this draw alone, without dots."""
    return f"{draw}.{place}.{_hash(draw, place, terms)}"


def draw_of(answer_id: str) -> str:
    """The draw that an answer is part of."""
    return answer_id.partition(".")[0]


def unchanged(answer: Answer) -> bool:
    """Whether the answer's terms are those that its id was made for. False for an id of any other form."""
    draw, _, rest = answer.id.partition(".")
    place, _, found = rest.partition(".")
    if not (place.isascii() and place.isdigit() and len(place) < 10):
        return False
    shown = answer.shown
    threshold = None if shown is None else (shown.threshold, shown.r, shown.g, shown.delta)
    terms = Terms(answer.mechanism, answer.parameter, answer.losses, answer.conversion, threshold)
    return found == _hash(draw, int(place), terms)


def _hash(draw: str, place: int, terms: Terms) -> str:
    threshold = None if terms.threshold is None else [str(Fraction(part)) for part in terms.threshold]
    text = json.dumps(
        [
            draw,
            place,
            terms.mechanism,
            str(Fraction(terms.parameter)),
            write_losses(dict(terms.losses)),
            str(Fraction(terms.conversion)),
            threshold,
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]
