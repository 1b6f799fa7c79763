"""Faults that are planted, each one line of the trusted core that would break the guarantee."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """old stands in the file once; harness: the one that is expected to find it."""

    name: str
    harness: str
    path: str
    old: str
    new: str
    breaks: str


FAULTS = (
    Fault(
        "laplace-scale-halved",
        "neighbours",
        "dpsql/core/noise/mechanisms/laplace.py",
        "return cls(Fraction(l1) / epsilon)",
        "return cls(Fraction(l1) / (2 * epsilon))",
        "half the noise that is paid for",
    ),
    Fault(
        "laplace-loss-halved",
        "neighbours",
        "dpsql/core/noise/mechanisms/laplace.py",
        "PrivacyLoss(epsilon=Fraction(l1) / self.scale)",
        "PrivacyLoss(epsilon=Fraction(l1) / (2 * self.scale))",
        "a price of half the loss",
    ),
    Fault(
        "weight-ignored",
        "neighbours",
        "dpsql/core/noise/sensitivity.py",
        "one, factor = largest_contribution(component, c), component.weight",
        "one, factor = largest_contribution(component, c), 1",
        "weighted integers move by F times as much",
    ),
    Fault(
        "union-not-adding",
        "neighbours",
        "dpsql/core/analysis/rules/set_operation.py",
        "stability=sums(left.stability, right.stability)",
        "stability={**left.stability, **right.stability}",
        "rows of both branches differ",
    ),
    Fault(
        "groups-change-once",
        "neighbours",
        "dpsql/core/analysis/rules/private_aggregate.py",
        "two = finite(2)",
        "two = finite(1)",
        "a changed group is one row less and one row more",
    ),
    Fault(
        "frequency-of-the-wrong-side",
        "neighbours",
        "dpsql/core/analysis/rules/join_by_frequency.py",
        "parts = _times(left.stability, m_right), _times(right.stability, m_left)",
        "parts = _times(left.stability, m_left), _times(right.stability, m_right)",
        "an inner join multiplies by the other side's frequency",
    ),
    Fault(
        "distinct-truncation-dropped",
        "neighbours",
        "dpsql/core/printing/shapes/weighted.py",
        "kept_values(d, limit, ",
        "kept_values(d, 10**6, ",
        "an id adds any number of distinct values",
    ),
    Fault(
        "replaced-row-as-one",
        "neighbours",
        "dpsql/core/analysis/rules/scan.py",
        "finite(2 * rows if replaced else rows)",
        "finite(rows)",
        "a replaced row is a removal and an insertion",
    ),
    Fault(
        "near-twice-as-far",
        "neighbours",
        "dpsql/core/printing/dialects/duckdb.py",
        "(Fraction(high) - Fraction(low)) / 2",
        "(Fraction(high) - Fraction(low))",
        "a value beyond its bounds adds as much again",
    ),
    Fault(
        "windows-of-one-limit-only",
        "neighbours",
        "dpsql/core/printing/shapes/weighted.py",
        'above = " OR ".join(',
        'above = " AND ".join(',
        "an id above one limit counts in full unless it is above all",
    ),
    Fault(
        "largest-group-for-the-sum",
        "neighbours",
        "dpsql/core/noise/sensitivity.py",
        "both * one.in_all * factor,",
        "both * one.in_group * factor,",
        "Laplace noise by the largest change instead of the sum of all",
    ),
    Fault(
        "lost-id-counts-once",
        "neighbours",
        "dpsql/core/analysis/rules/project.py",
        "times(below.stability[unit], rows)",
        "below.stability[unit]",
        "all rows of an id differ, not one",
    ),
    Fault(
        "zero-drawn-twice-as-often",
        "streams",
        "dpsql/core/noise/sampler/blocks.py",
        "accepted = self.accept(block, place, source) & ~(minus & (size == 0))",
        "accepted = self.accept(block, place, source)",
        "noise is 0 too often",
    ),
    Fault(
        "gaussian-blocks-too-flat",
        "streams",
        "dpsql/core/noise/sampler/blocks.py",
        "exp_bounds(2 * self.step, unit) if self.power == 2",
        "exp_bounds(self.step, unit) if self.power == 2",
        "another distribution than the one priced",
    ),
    Fault(
        "exponential-table-doubled",
        "streams",
        "dpsql/core/noise/sampler/exponential_function.py",
        "entries.append(value >> (_DEEP - ONE))",
        "entries.append((value >> (_DEEP - ONE)) + 2)",
        "acceptance above its bound",
    ),
    Fault(
        "calls-without-a-try",
        "expressions",
        "dpsql/core/printing/dialects/duckdb_total.py",
        'else f"TRY{sql}"',
        "else sql",
        "a row makes a statement fail, which tells of it",
    ),
    Fault(
        "arithmetic-that-is-believed-to-fit",
        "expressions",
        "dpsql/core/printing/dialects/duckdb_total.py",
        "made(held).within(type_range(result.type))",
        "True",
        "a sum overflows where an interval was believed",
    ),
    Fault(
        "functions-nobody-ran-are-total",
        "expressions",
        "dpsql/core/printing/dialects/duckdb_total.py",
        "sql if total is not None and total(",
        "sql if total is None or total(",
        "a function that is in no table fails for a row",
    ),
    Fault(
        "clips-of-any-scale-are-total",
        "expressions",
        "dpsql/core/printing/dialects/duckdb_total.py",
        "return given.scale == found.scale if given.kind is Kind.DECIMAL else",
        "return True if given.kind is Kind.DECIMAL else",
        "the engine widens what is compared with an end of a clip, and a row fails",
    ),
    Fault(
        "widening-dropped",
        "expressions",
        "dpsql/core/printing/dialects/duckdb.py",
        'return f"CAST({sql} AS HUGEINT)"',
        'return f"({sql})"',
        "products overflow for some rows, and the error tells of them",
    ),
    Fault(
        "half-to-even-dropped",
        "expressions",
        "dpsql/core/printing/dialects/duckdb.py",
        "return tried(sql, type_)  # which",
        'return tried(f"trunc({sql})", type_)  # which',
        "values leave their grid cell by a whole unit, and derived bounds with them",
    ),
    Fault(
        "groups-outside-of-a-list-fetched",
        "replay",
        "dpsql/core/printing/shapes/direct.py",
        'return f"\\n{d.having(\' AND \'.join(terms))}" if terms else ""',
        'return ""',
        "groups outside of a public list leave the engine",
    ),
    Fault(
        "nobodys-rows-kept",
        "neighbours",
        "dpsql/core/printing/shapes/weighted.py",
        'block = block.filtered(f"{block.names.sql[bounding.id.uid]} IS NOT NULL")',
        "block = block.filtered()",
        "rows without an id share the limits of one",
    ),
    Fault(
        "exact-numbers-shown",
        "replay",
        "dpsql/core/release/noisy.py",
        "else noise(i, own).integers)",
        "else (noise(i, own), own)[1])",
        "numbers are shown without their noise",
    ),
)
