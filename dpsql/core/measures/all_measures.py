"""All kinds of components: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsql.core.analysis.facts import Contribution
from dpsql.core.ir.components import (
    Comoment,
    Component,
    DistinctCount,
    DistinctSum,
    LargestChoice,
    ModeChoice,
    ProductSum,
    QuantileChoice,
    RowCount,
    SharedUnits,
    UnitCount,
    ValueSum,
)
from dpsql.core.ir.contributions import UnitTotal
from dpsql.core.measures.comoment import ComomentRule
from dpsql.core.measures.count import CountRule
from dpsql.core.measures.distinct import DistinctRule
from dpsql.core.measures.distinct_sum import DistinctSumRule
from dpsql.core.measures.largest import LargestRule
from dpsql.core.measures.measure_rule import MeasureRule, Norms
from dpsql.core.measures.mode import ModeRule
from dpsql.core.measures.quantile import QuantileRule
from dpsql.core.measures.shared_units import SharedUnitsRule
from dpsql.core.measures.sum import SumRule
from dpsql.core.measures.units import UnitsRule

RULES: Mapping[type[Component], MeasureRule[Any]] = {
    RowCount: CountRule(),
    ValueSum: SumRule(),
    ProductSum: SumRule(),
    DistinctCount: DistinctRule(),
    DistinctSum: DistinctSumRule(),
    UnitCount: UnitsRule(),
    SharedUnits: SharedUnitsRule(),
    Comoment: ComomentRule(),
    QuantileChoice: QuantileRule(),
    ModeChoice: ModeRule(),
    LargestChoice: LargestRule(),
}


def rule(component: Component) -> MeasureRule[Any]:
    """The rules of a component's kind."""
    return RULES[type(component)]


def largest_contribution(component: Component, limits: Contribution) -> Norms:
    """The largest contribution of one unit to a component."""
    own, total = rule(component), component.contribution
    return own.limited(component, total, limits) if isinstance(total, UnitTotal) else own.largest(component, limits)
