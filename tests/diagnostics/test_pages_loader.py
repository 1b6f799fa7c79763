"""Codes and their pages: found as users write them, and well formed."""

from __future__ import annotations

import pytest

from dpsql.diagnostics.codes import CODES
from dpsql.diagnostics.errors import Rejected
from dpsql.diagnostics.pages_loader import find_code, load_page


@pytest.mark.parametrize("text", ["DP201", "dp201", " Dp201 ", "201"])
def test_a_code_is_found_as_users_write_it(text: str) -> None:
    assert find_code(text).code == "DP201"
    assert load_page(text).startswith("# DP201: ")


def test_a_short_number_is_filled_with_zeros() -> None:
    assert find_code("1").code == "DP001"


@pytest.mark.parametrize("text", ["DP999", "", "DP20", "hello", "²", "-1", "../../etc/passwd", "DP201\n\x1b[2J"])
def test_an_unknown_code_is_refused(text: str) -> None:
    if text.strip().upper() in CODES:
        pytest.fail("this test needs codes that do not exist")
    with pytest.raises(Rejected) as caught:
        load_page(text)
    assert caught.value.diagnostics[0].code == "DP903"
    assert caught.value.diagnostics[0].help


def test_codes_are_sorted_and_well_formed() -> None:
    assert list(CODES) == sorted(CODES)
    assert len({entry.slug for entry in CODES.values()}) == len(CODES)
    for entry in CODES.values():
        assert entry.code[:2] == "DP" and entry.code[2:].isdigit() and len(entry.code) == 5
        assert entry.slug.replace("-", "").isalnum() and entry.slug.islower()
        assert entry.title and not entry.title.endswith(".")
