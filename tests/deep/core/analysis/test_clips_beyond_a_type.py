"""More CLIPs to bounds that their arguments' types cannot hold."""

from __future__ import annotations

import pytest

from dpsql.api.connection import Connection
from tests.core.analysis.test_clips_beyond_a_type import CLIPS, check, patients

__all__ = ["patients"]


@pytest.mark.parametrize("argument", CLIPS[4:])
def test_probe_a_clip_between_more_values_of_its_type(patients: list[Connection], argument: str) -> None:
    check(patients, argument)
