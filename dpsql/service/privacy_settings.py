"""Privacy parameters as users write them → exact ones, or a coded refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypedDict

from dpsql.core.numbers.confidence import LEVEL
from dpsql.core.privacy_loss import exact, exact_delta, exact_epsilon
from dpsql.diagnostics.errors import reject
from dpsql.planner.settings.query_settings import QuerySettings

Amount = int | float | str | Fraction
"""0.1 means exactly one tenth: floats are read by their shortest decimal text."""

USUAL: Final = float(LEVEL)
"""The confidence that is meant where none is given, as a user would write it."""

_LEAST_LEVEL: Final = Fraction(1, 10**6)
_LIMITS: Final = {"search": True, "declared": False, "auto": None}
_SWITCHED: Final = {"on": True, "true": True, "off": False, "false": False}


class Options(TypedDict, total=False):
    """What may be asked of one query besides ε and δ. None, as what is left out: as the session says, else the policy.

    rho: what the query may spend in all, in place of ε; under zCDP.
    max_error: column → the largest half-width of its interval at `confidence`, in place of ε: the least that meets all
        of them is spent. Columns of COUNT and SUM can be named, and of quantiles and MODE, whose error is in rows; what
        else is measured gets as much as the least of the named ones.
    confidence: of `max_error` and of `accuracy`; 0.95 if it is left out.
    weights: column → its part of ε in proportion to the others', which have 1.
    allow_dearer: take stored answers that others have bought also where these cost more than what is asked, which they
        do where they are more accurate. Without it new noise is drawn then.
    coverage: tell, for a tenth of the price, how many units are above the limits and how many are not
        (`Release.coverage`).
    consistent_totals: make each total of ROLLUP, CUBE and GROUPING SETS the sum of its parts, by least squares, which
        makes all of them more accurate. Refused (DP120) where it would not hold without noise.
    limits: "search": a quarter of the price finds the limits and bounds that nobody declares, and smaller ones where
        somebody does. "declared": those hold that the policy and the query declare. "auto", as by default: where the
        policy says `search: auto`, what nobody declares is found, and a smaller limit of rows where 16 may count.
    anyway: run it also where the declared numbers let no group be shown (DP305).
    """

    rho: Amount | None
    max_error: Mapping[str, Amount] | None
    confidence: Amount
    weights: Mapping[str, Amount] | None
    allow_dearer: bool | None
    coverage: bool | None
    consistent_totals: bool | None
    limits: str | None
    anyway: bool | None


class Asked(Options, total=False):
    """`Options`, and ε and δ.

    epsilon: what the query may spend in all; under zCDP ρ = ε²/2, unless `rho` gives that itself.
    delta: for private group keys and Gaussian noise; charged only if it is used.
    """

    epsilon: Amount | None
    delta: Amount | None


def asked_for(epsilon: Amount | None, delta: Amount | None, options: Options) -> Asked:
    """All of it together."""
    return {"epsilon": epsilon, "delta": delta, **options}


def settled(asked: Asked, base: QuerySettings) -> QuerySettings:
    """`base` with what is asked for in place of it.

    ε, ρ and a largest error each say how much to spend: the one that is given replaces whichever `base` has. Raises
    Rejected DP406 for values that are no privacy parameters, for two of the three at once, for weights beside a
    largest error, which says how ε is split as well, and for a switch that is neither on nor off; TypeError for other
    names.
    """
    for name in asked.keys() - Asked.__optional_keys__:
        known = ", ".join(sorted(Asked.__optional_keys__))
        raise TypeError(f"unexpected keyword argument {name!r}; what may be asked of a query: {known}")
    epsilon, rho, max_error = asked.get("epsilon"), asked.get("rho"), asked.get("max_error")
    weights, delta = asked.get("weights"), asked.get("delta")
    said = {"epsilon": epsilon, "rho": rho, "max_error": max_error}
    given = [name for name, amount in said.items() if amount is not None]
    if len(given) > 1:
        raise reject(
            "DP406", f"{' and '.join(given)} were given together, and each says how much to spend",
            help=["leave all but one of them out"],
        )  # fmt: skip
    if max_error is not None and weights is not None:
        raise reject(
            "DP406", "weights were given beside max_error, which says how ε is split, too",
            help=["leave the weights out, or name more columns in max_error"],
        )  # fmt: skip
    try:
        if given:
            base = replace(
                base,
                epsilon=None if epsilon is None else exact_epsilon(epsilon),
                rho=None if rho is None else exact_epsilon(rho, "rho"),
                max_error={} if max_error is None else _by_column(max_error, "max_error", "{'n': 50}"),
            )
        if delta is not None:
            base = replace(base, delta=exact_delta(delta))
    except ValueError as error:
        raise reject("DP406", str(error), help=["epsilon is a number above 0, e.g. 0.5; delta one in [0, 1)"]) from None
    if weights is not None:
        base = replace(base, weights=_by_column(weights, "weights", "{'n': 2}"))
    elif max_error is not None:
        base = replace(base, weights={})
    dearer, coverage, totals = (asked.get(name) for name in ("allow_dearer", "coverage", "consistent_totals"))
    if totals is not None:
        base = replace(base, consistent_totals=switch(totals, "consistent_totals"))
    if dearer is not None:
        base = replace(base, allow_dearer=switch(dearer, "allow_dearer"))
    if coverage is not None:
        base = replace(base, coverage=switch(coverage, "coverage"))
    anyway = asked.get("anyway")
    if anyway is not None:
        base = replace(base, anyway=switch(anyway, "anyway"))
    limits = asked.get("limits")
    if limits is not None:
        base = replace(base, search=searched(limits))
    return replace(base, confidence=confidence_level(asked.get("confidence", USUAL)))


def setting(settings: QuerySettings, name: str) -> Fraction | bool | str | None:
    """What holds under the name that a user gives it; None: what the policy says."""
    if name == "limits":
        return next(word for word, search in _LIMITS.items() if search == settings.search)
    found: Fraction | bool | None = getattr(settings, name)
    return found


def switch(given: object, name: str) -> bool:
    """True or False, as such or as a word. Raises Rejected DP406 for anything else."""
    if isinstance(given, bool):
        return given
    if isinstance(given, str) and given.strip().lower() in _SWITCHED:
        return _SWITCHED[given.strip().lower()]
    raise reject("DP406", f"{name} is on or off", help=[f"{name} = on;  in Python  {name}=True"])


def searched(limits: object) -> bool | None:
    """Whether limits are searched; None: as the policy says. Raises Rejected DP406 for other words."""
    word = limits.strip().lower() if isinstance(limits, str) else ""
    if word not in _LIMITS:
        raise reject(
            "DP406", "limits are 'auto', 'search' or 'declared'",
            help=["SET limits = 'search';  in Python  limits=\"search\""],
        )  # fmt: skip
    return _LIMITS[word]


def confidence_level(confidence: Amount) -> Fraction:
    """A confidence level as an exact number. Raises Rejected DP406 unless it lies between 0 and 1."""
    try:
        level = exact(confidence, "confidence")
    except ValueError as error:
        raise reject("DP406", str(error), help=["a confidence is a number such as 0.95"]) from None
    if 0 < level < _LEAST_LEVEL:
        raise reject("DP406", "a confidence level below 1e-6 says nothing", help=["95 % are written 0.95"])
    if not 0 < level < 1:
        raise reject(
            "DP406", f"a confidence level lies between 0 and 1, not {confidence}", help=["95 % are written 0.95"]
        )
    return level


def _by_column(given: object, name: str, example: str) -> dict[str, Fraction]:
    """Output column → a number above 0."""
    if not isinstance(given, Mapping) or not given or not all(isinstance(column, str) for column in given):
        raise reject("DP406", f"{name} names columns and gives each a number", help=[f"{name}={example}"])
    try:
        return {column: exact_epsilon(amount, f"{name} of {column!r}") for column, amount in given.items()}
    except ValueError as error:
        raise reject("DP406", str(error), help=[f"e.g.  {name}={example}"]) from None
