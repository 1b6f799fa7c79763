"""Three hundred filters that exclude each other, and errors of sums of their parts."""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.ir.public_facts import PublicFacts
from dpsql.diagnostics.diagnostic import Source
from dpsql.planner.compile import compile_query
from dpsql.planner.settings.query_settings import QuerySettings
from tests.core.noise.test_parallel_composition import POLICIES, losses, plan


def test_errors_of_sums_of_two_parts_in_parallel_groups() -> None:
    """Centred sums in one parallel group and their counts in another: the most exacting column decides for both."""

    def priced(*asked: str) -> Fraction:
        calls = ", ".join(
            f"SUM(x) FILTER (WHERE status = '{s}') AS {s}, COUNT(*) FILTER (WHERE status = '{s}') AS n{s}"
            for s in asked
        )
        errors = {s: Fraction(1000 if s == "a" else 2000) for s in asked} | {f"n{s}": Fraction(9) for s in asked}
        settings = QuerySettings(max_error=errors)
        source = Source(f"SELECT {calls} FROM orders")
        found = compile_query(source, POLICIES["pure_dp"], PublicFacts(), settings)
        assert sorted(map(len, found.releases[0].measured.parallel_groups)) == [len(asked)] * 2
        return found.loss.epsilon

    assert priced("a", "b", "c") == priced("a")


def test_three_hundred_slices_are_planned_quickly() -> None:
    slices = ", ".join(f"COUNT(*) FILTER (WHERE x >= {i} AND x < {i + 1})" for i in range(300))
    found = plan(f"SELECT {slices} FROM orders")
    assert losses(found) == [1] * 300
