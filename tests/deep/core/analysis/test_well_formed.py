"""Every plan of the fixtures is one, and stays one."""

from __future__ import annotations

import pytest

from tests.core.analysis.test_well_formed import plans_stay_plans
from tests.fixtures.cases import File, files


@pytest.mark.parametrize("file", files(), ids=lambda file: file.path.stem)
def test_every_fixture(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    plans_stay_plans(file, monkeypatch)
