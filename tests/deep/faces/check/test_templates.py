"""Templates that take too much, and processes that end while they render."""

from __future__ import annotations

import gc
from datetime import date
from pathlib import Path

import pytest

from dpsql.diagnostics.diagnostic import Source
from dpsql.diagnostics.errors import Rejected
from dpsql.faces.check.documents.rendering import Rendered, Renderer, RenderingFailure, RenderingLimits, Worker
from dpsql.faces.check.documents.templates import Templater, Templates
from dpsql.policy.load import load_policy
from dpsql.policy.policy import Policy
from tests.faces.check.test_templates import POLICIES, places


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy(POLICIES / "pages.yaml")


@pytest.fixture(scope="module")
def templater() -> Templater:
    return Templater(Templates({"wards": ["surgery", "medicine"], "fee": "fee", "rows": "visits"}))


LIMITS = RenderingLimits(seconds=0.2, bytes=500_000_000, characters=1_000)


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "longer than 0.2 seconds"),
        ("{{ (3 ** 100000000) % 2 }}", "longer than 0.2 seconds"),
        ("{{ ('x' * 10 ** 10) | length }}", "more memory than 500 MB"),
        ("{{ 'x' * 1001 }}", "longer than 1,000 characters"),
    ],
)
def test_what_takes_too_much_is_refused_and_the_next_file_is_rendered(template: str, words: str) -> None:
    templater = Templater(Templates(limits=LIMITS))
    with pytest.raises(Rejected) as refusal:
        templater.document(Source(template, "q.sql"))
    diagnostic = refusal.value.diagnostics[0]
    assert diagnostic.code == "DP903" and words in diagnostic.message and "exclude" in diagnostic.help[0]
    assert diagnostic.source is not None and diagnostic.source.name == "q.sql"
    assert templater.document(Source("SELECT {{ 1 + 1 }}", "r.sql")).text == "SELECT 2"


def test_a_process_that_ends_is_named_and_followed_by_another() -> None:
    renderer = Renderer({}, (), LIMITS)
    assert renderer("{{ 1 }}", "q.sql") == Rendered("1", ((0, 1, 0, 7, False),))
    process = renderer._process
    assert process is not None
    process.kill()
    assert renderer("{{ 1 }}", "q.sql") == RenderingFailure("ended")
    assert renderer("{{ 2 }}", "q.sql") == Rendered("2", ((0, 1, 0, 7, False),))


def test_the_process_ends_with_the_renderer() -> None:
    renderer = Renderer({}, (), LIMITS)
    renderer("{{ 1 }}", "q.sql")
    process = renderer._process
    assert process is not None and process.poll() is None
    del renderer
    gc.collect()
    assert process.poll() is not None and process.stdin is not None and process.stdin.closed


def test_the_other_processs_half_answers_here_as_well() -> None:
    worker = Worker({"day": date(2024, 2, 29)}, (), LIMITS)
    assert worker.answer("{{ day }}", "q.sql")["text"] == "2024-02-29"
    assert worker.answer("{{ 1 / 0 }}", "q.sql")["why"] == "broken"
    assert worker.answer("{{ 'x' * 2000 }}", "q.sql") == {"why": "length"}
    assert worker.answer("{{ nothing }}", "q.sql")["problems"][0][1:] == [1, 4]
    assert Renderer({"day": date(2024, 2, 29)}, (), LIMITS)("{{ day.year }}", "q.sql") == Rendered(
        "2024", ((0, 4, 0, 14, False),)
    )


def test_macros_only_where_they_are_named(tmp_path: Path, policy: Policy) -> None:
    macros = tmp_path / "macros.sql"
    macros.write_text("{% macro total(x) %}SUM({{ x }}){% endmacro %}")
    source = Source("SELECT {{ total('fee') }} FROM visits", "q.sql")
    with pytest.raises(Rejected, match="uses total"):
        Templater(Templates()).document(source)
    document = Templater(Templates(macros=(str(macros),))).document(source)
    assert document.text == "SELECT SUM(fee) FROM visits"
    assert places(document, policy) == [("DP201", "{{ total('fee') }}")]
