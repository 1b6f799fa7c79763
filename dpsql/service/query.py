"""A query that has not been run: look at its plan, its price and its accuracy, then run it."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, Unpack

from dpsql.accuracy.widths import planned_width
from dpsql.answers.results.answer import Release
from dpsql.core.privacy_loss import PrivacyLoss, exact
from dpsql.diagnostics.errors import Rejected, UtilityWarning, reject
from dpsql.diagnostics.layout import one_line
from dpsql.planner.explain.explain_text import as_text
from dpsql.planner.explain.stable_json import dumps
from dpsql.planner.plan import Plan
from dpsql.planner.searches.limits_to_search import Rule
from dpsql.service.planning.planning import WrittenQuery
from dpsql.service.privacy_settings import USUAL, Amount, Asked, Options, asked_for, confidence_level, settled

if TYPE_CHECKING:
    from dpsql.service.session import Session


class Query:
    """One SELECT with its parameters. Everything but `run` spends nothing.

    >>> con = dpsql.connect("clinic.yaml")
    >>> q = con.sql("SELECT region, COUNT(*) AS n FROM patients WHERE age < ? GROUP BY region", [65])
    >>> q
    <dpsql query: SELECT region, COUNT(*) AS n FROM patients WHERE age < ? GRO>
    >>> q.cost(epsilon=0.5)
    PrivacyLoss(epsilon=0.5)
    >>> q.accuracy(epsilon=0.5)
    {'n': 6.0}
    >>> q.cost(max_error={"n": 50}).epsilon < 0.1
    True
    >>> print(q.explain(epsilon=0.5))
    project region, n ...
    cost: ε 0.5 of each patient
    note: rows with another region than these 4 are left out
    >>> answer = q.run(epsilon=0.5)
    >>> low, high = answer.intervals(0.95)[0]["n"]
    >>> low < answer.rows[0][1] < high
    True
    """

    def __init__(self, session: Session, question: WrittenQuery) -> None:
        self._session = session
        self._question = question

    @property
    def sql(self) -> str:
        """Its text."""
        return self._question.sql

    def plan(self, epsilon: Amount | None = None, delta: Amount | None = None, **options: Unpack[Options]) -> Plan:
        """The plan of a run with these settings. Raises Rejected."""
        return self._planned(asked_for(epsilon, delta, options))

    def explain(
        self,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        *,
        format: str = "text",
        engine_sql: bool = False,
        **options: Unpack[Options],
    ) -> str:
        """The annotated tree as `text` or `json`, with what `cost` says. Without an ε anywhere, priced at ε = 1.

        Raises Rejected.
        """
        asked = asked_for(epsilon, delta, options)
        if format not in ("text", "json"):
            raise reject("DP903", f"unknown format {format!r}", help=["use text or json"])
        plan = self._session.previewed(self._question, asked)
        charge = self._session.charge_to_show(plan)
        return dumps(plan, charge) if format == "json" else as_text(plan, engine_sql, charge)

    def cost(
        self, epsilon: Amount | None = None, delta: Amount | None = None, **options: Unpack[Options]
    ) -> PrivacyLoss:
        """What a run charges if nothing is bought or spent in between (the largest over all privacy units), stored
        answers considered. It is at most `plan(…).loss`, the price of new noise for all of it, unless dearer stored
        answers are allowed.

        Raises Rejected, CannotOpen.
        """
        return self._session.price(self._planned(asked_for(epsilon, delta, options)))

    def accuracy(
        self, epsilon: Amount | None = None, delta: Amount | None = None, **options: Unpack[Options]
    ) -> dict[str, float | tuple[float, float | None] | None]:
        """Expected ± per released column at the `confidence` that is asked for, from public facts; None where it
        depends on the data. Of several numbers one below the other (UNION ALL, ROLLUP) the largest counts.

        Of a count or sum that follows a limit which is still to be found, (least, most): at a limit of 1, and at the
        declared cap, or None. What the limit cuts comes on top, and is known after the run. An average's error depends
        on the size of its group: unless that is public, it is None before the run.
        Raises Rejected.
        """
        level = confidence_level(options.get("confidence", USUAL))
        return accuracy(self._planned(asked_for(epsilon, delta, options)), level)

    def run(
        self,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        *,
        fresh: bool = False,
        **options: Unpack[Options],
    ) -> Release:
        """Charge the ledger durably, then run; what was released before, as accurately or better, is not charged again.

        epsilon: what the query may spend in all. delta: for private group keys and Gaussian noise; charged only if it
            is used. None: as the session says, else the policy.
        options: the settings of a query, `dpsql.Options`.
        fresh: pay for new noise, whatever is stored; limits that the account has found stay found.
        Gives a UtilityWarning before it spends, where declared numbers alone say that the answer will be noise (DP5xx).
        Raises Rejected, BudgetExceeded, EngineError.
        """
        plan = self._session.planned_with(
            self._question, settled(asked_for(epsilon, delta, options), self._session.settings)
        )
        against = self._session.warnings(plan, fresh=fresh)
        if against:
            warnings.warn(UtilityWarning(against), stacklevel=_callers_level())
        return self._session.run(plan, fresh=fresh)

    def df(self, *_: object, **__: object) -> NoReturn:
        """Nothing: a query has no rows until it is run and paid for. Raises Rejected DP903, which says how."""
        raise _not_run("df")

    def pl(self, *_: object, **__: object) -> NoReturn:
        """As `df`."""
        raise _not_run("pl")

    def arrow(self, *_: object, **__: object) -> NoReturn:
        """As `df`."""
        raise _not_run("arrow")

    def fetchall(self) -> NoReturn:
        """As `df`."""
        raise _not_run("fetchall")

    def _planned(self, asked: Asked) -> Plan:
        return self._session.planned(self._question, asked)

    def __repr__(self) -> str:
        return f"<dpsql query: {one_line(' '.join(self.sql.split())[:60])}>"


def _not_run(method: str) -> Rejected:
    return reject(
        "DP903", f"a query has no {'rows' if method == 'fetchall' else 'frame'} until it is run, which is paid for",
        help=[f"query.run(epsilon=…).{method}()"], notes=["query.explain() and query.cost() are free"],
    )  # fmt: skip


def _callers_level() -> int:
    """How many calls above the caller of this the first code stands that is not of dpsql: the user's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "dpsql":
        level, frame = level + 1, frame.f_back
    return level


Expected = float | tuple[float, float | None] | None
"""± of a column before a run. Where that follows a limit which is still to be found, the least, at a limit of 1, and
the most, at the declared cap; None where there is no cap, or where the ± depends on the data."""


def accuracy(plan: Plan, level: Fraction) -> dict[str, Expected]:
    """`Query.accuracy` of a plan that has been made."""
    found: dict[str, tuple[float, float | None] | None] = {}
    totals = _totals(plan, level)
    for at, column in enumerate(plan.columns):
        shown = [branch[at] for branch in plan.post.branches]
        widths = [_known(totals.get(source)) or _width(plan, source, level) for source in shown if source is not None]
        if widths:
            known = [w for w in widths if w is not None]
            largest = _largest(known) if len(known) == len(shown) else None
            earlier = found.get(column.name, (0.0, 0.0))  # of columns with one name the worst counts
            found[column.name] = None if largest is None or earlier is None else _largest([largest, earlier])
    return {name: each[0] if each is not None and each[0] == each[1] else each for name, each in found.items()}


def at_most(expected: Expected) -> float | None:
    """The ± as far as one number says it: at the cap of a limit."""
    return expected[1] if isinstance(expected, tuple) else expected


def _largest(widths: Sequence[tuple[float, float | None]]) -> tuple[float, float | None]:
    caps = [most for _, most in widths]
    known = [most for most in caps if most is not None]
    return max(least for least, _ in widths), max(known) if len(known) == len(caps) else None


def _known(width: Fraction | None) -> tuple[float, float | None] | None:
    return None if width is None else (_as_float(width), _as_float(width))


def _totals(plan: Plan, level: Fraction) -> dict[tuple[int, int], Fraction]:
    """(release, output) → expected ± of what is made consistent."""
    if not plan.totals:
        return {}
    from dpsql.planner.postprocessing.intervals.expected_totals import expected_widths

    each = (expected_widths(totals, plan.releases, level) for totals in plan.totals)
    return {source: Fraction(width) for widths in each for source, width in widths.items()}


def _width(plan: Plan, source: tuple[int, int], level: Fraction) -> tuple[float, float | None] | None:
    """Expected ± of one output of one release: at least, and at most."""
    measured = plan.releases[source[0]].measured
    recipe = measured.node.outputs[source[1]].recipe
    width = planned_width(recipe, measured.measurements, level)
    searches = plan.searches
    limits = [] if searches is None else [searches.limit_of(source[0], i) for i in recipe.components]
    if width is None or not any(limits):
        return _known(width)
    limit = limits[0]
    if len(limits) > 1 or limit is None or limit.limit.rule is not Rule.SUM:
        return None
    cap = limit.limit.at_most  # the noise is a multiple of the limit
    return _as_float(width), None if cap is None else _as_float(width * cap)


def _as_float(x: Fraction) -> float:
    """The nearest float that is read back (by its shortest decimal text) as no less: asked for, it costs no more."""
    found = float(x)
    while exact(found) < x:
        found = math.nextafter(found, math.inf)
    return found
