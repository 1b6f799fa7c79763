"""Utility warnings (DP5xx): answers that would be noise, as far as public facts can tell."""

from __future__ import annotations

from dpsql.analysis.facts import Facts
from dpsql.analysis.values import evaluate
from dpsql.compiler.explain import expected_error
from dpsql.diagnostics.diagnostic import Diagnostic, Source
from dpsql.measure.measured import MeasuredRelease
from dpsql.plan.components import End, Measure, Output, Ratio, Variance
from dpsql.plan.walk import Tagged


def warnings_of(release: MeasuredRelease, below: Tagged[Facts], source: Source) -> tuple[Diagnostic, ...]:
    """A COUNT(DISTINCT x) whose expected error is larger than the number of values that x can have (DP501)."""
    found = []
    env = below.fact.key_env
    for output in release.node.outputs:
        if isinstance(output.recipe, Ratio | Variance | End):
            continue
        measurement = release.measurements[output.recipe.component]
        component = measurement.component
        if component.measure is not Measure.DISTINCT or component.arg is None:
            continue
        domain = evaluate(component.arg, env).domain
        error = expected_error(measurement)
        if domain is not None and error > domain.size:
            found.append(_drowned(output, domain.size, error, source))
    return tuple(found)


def _drowned(output: Output, most: int, error: float, source: Source) -> Diagnostic:
    return Diagnostic(
        "DP501",
        f"{output.label} is at most {most:,}, and its expected error is ± {error:,.0f}",
        source,
        output.span,
        "the answer would be noise",
        ("group by the column and count the units per value instead", "or use smaller contribution limits"),
        severity="warning",
    )
