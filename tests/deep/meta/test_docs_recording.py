"""The pictures of the README and of the shell show what the program shows now, but for the noise."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from docs import answer, cookbook, recording


@pytest.mark.processes
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


def test_the_picture_of_an_answer_is_what_the_program_answers(tmp_path: Path) -> None:
    """Two runs differ by noise alone.

    A half-width at 95 % is three scales or more, so ten of it are beyond e^-30: with eight numbers in two runs a false
    alarm has a probability below 1e-11.
    """
    kept = answer.TARGET.read_text(encoding="utf-8")
    again = answer.svg(answer.ask(tmp_path))
    assert answer.without_noise(again) == answer.without_noise(kept), "run `python -m docs.answer`"
    shown, measured = answer.numbers(kept), answer.numbers(again)
    assert len(shown) == len(measured) == 8
    for (number, width), (other, other_width) in zip(shown, measured, strict=True):
        assert abs(number - other) < 10 * (width + other_width), "run `python -m docs.answer`"


def test_the_picture_of_an_answer_holds_the_question_and_a_change_is_noticed() -> None:
    kept = answer.TARGET.read_text(encoding="utf-8")
    text = unescape(re.sub(r"</?tspan[^>]*>", "", kept))
    assert all(f">{line}</text>" in text for line in answer.QUESTION.splitlines())
    assert "spent ε 0.5" in text and len(answer.numbers(kept)) == 8
    first, _ = answer.numbers(kept)[0]
    assert answer.without_noise(kept.replace(f">{first:,g}<", ">1<")) == answer.without_noise(kept)
    assert answer.without_noise(kept.replace("spent ε 0.5", "spent ε 0.4")) != answer.without_noise(kept)


def test_the_cookbook_asks_forty_questions_that_are_answered(tmp_path: Path) -> None:
    """Every query runs on the page's own data, and the page shows its columns."""
    page = cookbook.PAGE.read_text(encoding="utf-8")
    cookbook.build(page, tmp_path)
    answers = cookbook.asked(page, tmp_path)
    kept = [text for *_, text in cookbook.QUESTION.findall(page)]
    assert len(answers) == len(kept) == 40
    assert [cookbook.names(a) for a in answers] == [cookbook.names(text) for text in kept], (
        "run python -m docs.cookbook"
    )
    assert all(len(a.splitlines()) > 1 for a in answers)
    assert [cookbook.names(a) for a in answers[1:]] != [cookbook.names(text) for text in kept[:-1]]
    drawn = {n for (n, title, *_), a in zip(cookbook.QUESTION.findall(page), answers, strict=True)
             if cookbook.picture(title, a) is not None}  # fmt: skip
    assert drawn == {path.stem for path in cookbook.PICTURES.iterdir()} and len(drawn) > 12
    assert all(f"(images/cookbook/{number}.svg)" in page for number in drawn)
