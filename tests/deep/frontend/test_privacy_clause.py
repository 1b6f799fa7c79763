"""Every option of the privacy clause tightens a limit or is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from dpsql.diagnostics.errors import Rejected
from tests.frontend.test_privacy_clause import norms, planned

HUGE = ("", "max_groups_contributed = 1000000", "max_rows_contributed = 1000000", "min_privacy_units_per_group = 1")
TABLES = ("total", "grouped", "every", "promised", "people", "daily")
COUNTS = ("COUNT(*)", "COUNT(*, contribution_bounds_per_group => (0, 1000000))")


@pytest.mark.parametrize(("table", "options", "keys"), list(product(TABLES, HUGE, ("", "kind", "word"))))
def test_probe_options_never_loosen_a_limit(policies: Path, table: str, options: str, keys: str) -> None:
    """However large what the analyst asks for: one unit contributes at most what it may without the clause."""
    keys = {"people": {"kind": "region", "word": "town"}, "daily": {"kind": "day", "word": "day"}}.get(table, {}).get(
        keys, keys
    )
    if table == "daily" and not keys:
        return  # without groups nothing limits it: an analyst may limit what the policy does not
    by = f" GROUP BY {keys}" if keys else ""
    plain = norms(planned(policies, f"SELECT COUNT(*) AS n FROM {table}{by}"))
    for count in COUNTS:
        sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) {count} AS n FROM {table}{by}"
        for (l1, linf), (most, most_in_group) in zip(norms(planned(policies, sql))[:1], plain, strict=False):
            assert l1 <= most and linf <= most_in_group, sql


def test_probe_every_option_tightens_or_is_refused(policies: Path) -> None:
    """From 1 to beyond what the policy allows, a limit never makes more noise than none, and is never passed over."""
    for table, option in product(("total", "grouped", "every"), ("max_groups_contributed", "max_rows_contributed")):
        plain = norms(planned(policies, f"SELECT kind, COUNT(*) AS n FROM {table} GROUP BY kind"))[0][0]
        for limit in range(1, 25):
            clause = f"WITH DIFFERENTIAL_PRIVACY OPTIONS ({option} = {limit})"
            sql = f"SELECT {clause} kind, COUNT(*) AS n FROM {table} GROUP BY kind"
            try:
                plan = planned(policies, sql)
            except Rejected as refusal:
                assert [d.code for d in refusal.diagnostics] == ["DP014"]
                continue
            assert norms(plan)[0][0] <= plain
            limits = plan.releases[0].measured.contribution
            if option == "max_rows_contributed" and limit < plain:
                assert limits.rows <= limit
            if option == "max_groups_contributed":
                assert limits.most_groups <= max(limit, 0) or limit >= plain
