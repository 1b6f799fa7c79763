"""The picture of the shell shows what the shell shows now, but for the noise."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import recording


@pytest.mark.e2e
@pytest.mark.processes
@pytest.mark.slow
def test_the_picture_of_the_shell_is_what_the_program_shows(tmp_path: Path) -> None:
    kept = recording.TARGET.read_text(encoding="utf-8")
    again = recording.svg(recording.record(tmp_path))
    assert recording.pattern(again) == recording.pattern(kept), "run `python -m docs.recording`"


def test_the_picture_holds_what_was_typed_and_a_change_is_noticed() -> None:
    kept = recording.TARGET.read_text(encoding="utf-8")
    lines = recording.pattern(kept)
    for text in recording.INPUTS:
        assert all(any(line.endswith(typed) for line in lines) for typed in text.splitlines())
    assert recording.pattern(kept.replace("would cost", "would take")) != lines
    assert sum("N" in line.split() for line in lines) >= 8
