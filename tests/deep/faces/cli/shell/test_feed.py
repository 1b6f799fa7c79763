"""A text that never ends is not scanned again and again."""

from __future__ import annotations

from dpsql.faces.cli.shell.input.items import Feed


def test_a_text_that_never_ends_is_not_scanned_again_and_again() -> None:
    feed = Feed()
    assert [item for line in ["SELECT '", *["x;" * 3_000] * 60] for item in feed.take(line)] == []
    found = [item.text for item in (*feed.take("'; SELECT 2;"), *feed.finish())]
    assert [text[:9] for text in found] == ["SELECT '\n", "SELECT 2"], "its end may be found a little later"
