"""Facts of a call that are kept are those that working it out again gives, in every fixture."""

from __future__ import annotations

import pytest

from tests.fixtures.cases import files
from tests.functions.test_applied_again import again_in, nothing_kept

__all__ = ["nothing_kept"]


def test_in_every_fixture_it_is_what_working_it_out_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert again_in(files(), monkeypatch) > 1000
