"""All kinds of components: one line each."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import Component, Measure
from dpsql.core.measures.comoment import ComomentRule
from dpsql.core.measures.count import CountRule
from dpsql.core.measures.distinct import DistinctRule
from dpsql.core.measures.distinct_sum import DistinctSumRule
from dpsql.core.measures.largest import LargestRule
from dpsql.core.measures.measure_rule import MeasureRule, Norms
from dpsql.core.measures.mode import ModeRule
from dpsql.core.measures.quantile import QuantileRule
from dpsql.core.measures.sum import SumRule
from dpsql.core.measures.units import UnitsRule

RULES: Mapping[Measure, MeasureRule] = {
    Measure.COUNT: CountRule(),
    Measure.SUM: SumRule(),
    Measure.DISTINCT: DistinctRule(),
    Measure.DISTINCT_SUM: DistinctSumRule(),
    Measure.UNITS: UnitsRule(),
    Measure.COMOMENT: ComomentRule(),
    Measure.QUANTILE: QuantileRule(),
    Measure.MODE: ModeRule(),
    Measure.LARGEST: LargestRule(),
}


def rule(component: Component) -> MeasureRule:
    """The rules of a component's kind."""
    return RULES[component.measure]


def largest_contribution(component: Component, limits: Contribution) -> Norms:
    """The largest contribution of one unit to a component."""
    own, total = rule(component), component.of_unit
    return own.largest(component, limits) if total is None else own.limited(component, total, limits)
