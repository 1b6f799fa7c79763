"""The README's picture of psql at a server shows what psql shows now, but for the noise."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from docs import served
from tests.clients_elsewhere.clients import PSQL, missing


@pytest.mark.xfail(missing(PSQL), reason=f"needs {PSQL}", run=False, strict=False)
def test_the_picture_is_what_psql_shows(tmp_path: Path) -> None:
    kept = served.TARGET.read_text(encoding="utf-8")
    again = served.svg(served.record(tmp_path))
    assert served.without_noise(again) == served.without_noise(kept), "run `python -m docs.served`"


def test_the_picture_holds_what_was_typed_and_a_change_is_noticed() -> None:
    kept = served.TARGET.read_text(encoding="utf-8")
    text = unescape(re.sub(r"</?tspan[^>]*>", "", kept))
    assert all(f">{served.PROMPT}{sql}</text>" in text for sql in served.INPUTS)
    assert (
        len(re.findall(r'class="noise">', kept)) == 4
        and "NOTICE:  n ± 30 (95 %)" in text
        and ">               ^<" in text
    )
    changed = re.sub(r'(class="noise">)[^<]*', r"\g<1>1", kept)
    assert served.without_noise(changed) == served.without_noise(kept)
    assert served.without_noise(kept.replace("left ε 0.4", "left ε 0.3")) != served.without_noise(kept)


def test_no_line_of_the_picture_is_cut() -> None:
    kept = served.TARGET.read_text(encoding="utf-8")
    lines = [unescape(re.sub(r"<[^>]+>", "", line)) for line in re.findall(r"<text [^>]*>(.*)</text>", kept)]
    (wide,) = re.findall(r'<svg [^>]*width="(\d+)"', kept)
    assert int(wide) == served.wide(lines) > served.LETTER * max(map(len, lines)) + served.MARGIN
