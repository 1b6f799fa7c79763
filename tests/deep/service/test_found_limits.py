"""Whatever a search finds, at however small an ε: there is a plan for it, or nothing was charged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deep.service.test_searches import PURE, REPLACED
from tests.service.test_searches import EPSILON, RHO, SMALL, WIDE, folder, has_a_plan


@pytest.mark.parametrize("accounts", [EPSILON, PURE, RHO, REPLACED], ids=["approx_dp", "pure_dp", "zcdp", "replace"])
def test_no_limit_that_is_found_ends_in_a_refusal(tmp_path: Path, accounts: str) -> None:
    has_a_plan(folder(tmp_path, accounts), accounts is PURE, WIDE, SMALL, (0, 9, 11, 12, 31, 62))
