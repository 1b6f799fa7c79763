"""`source:` is one reader call with literals, and nothing else gets through."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.core.policy.source import SourceCall, SourceError, Struct, parse_source


def test_forms() -> None:
    assert parse_source("read_parquet('a.parquet')") == SourceCall("read_parquet", ("a.parquet",))
    assert parse_source(" READ_CSV ( ['a', 'b''c'] , Header = TRUE , delim=';', skip = 1, x = -2.5e3 )") == SourceCall(
        "read_csv", ("a", "b'c"), (("header", True), ("delim", ";"), ("skip", 1), ("x", Decimal("-2500")))
    )
    call = parse_source("read_json('x', columns={'a': 'INT', b: [1, null]})")
    assert call.options == (("columns", Struct((("a", "INT"), ("b", (1, None))))),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "patients",
        "SELECT 1",
        "read_parquet",
        "read_parquet()",
        "read_parquet(a)",
        "read_parquet('a'",
        "read_parquet('a') x",
        "read_parquet('a'); DROP TABLE t",
        "read_parquet('a') -- x",
        "read_parquet('a' || 'b')",
        "read_parquet('a', x)",
        "read_parquet('a', x = y)",
        "read_parquet('a', x = 1, X = 2)",
        "read_parquet([])",
        "read_parquet(['a', 1])",
        "read_parquet('a', 'b')",
        "read_blob('a')",
        "read_parquet(read_parquet('a'))",
        "read_parquet(getenv('HOME'))",
        "read_parquet($1)",
        'read_parquet("a")',
        "read_parquet('')",
        "read_parquet('https://a/b')",
        "read_parquet('s3://a/b')",
        "read_parquet('a\x00')",
        "read_parquet('a', x = [1 2])",
        "read_parquet('a', x = {1: 2})",
        "read_parquet('a', x = " + "[" * 30 + "]" * 30 + ")",
        "read_parquet('a', = 1)",
        "read_parquet('a',)",
        "main.read_parquet('a')",
        "read_parquet('a'))",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_source(text)
    assert 0 <= caught.value.offset <= len(text)


def test_absolute_paths_keep_globs_and_options() -> None:
    call = parse_source("read_csv(['../x/*.csv', '/y.csv'], header = true)").absolute(Path("/data/policies"))
    assert call.sql() == "read_csv(['/data/x/*.csv', '/y.csv'], header = true)"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1).filter(str.strip))
def test_every_path_is_printed_as_one_literal(path: str) -> None:
    call = SourceCall("read_parquet", (path,), (("x", path),))
    if "://" not in path:
        assert parse_source(call.sql()) == call


@given(st.text(alphabet="read_pqutcsvjon('),=[]{}: \"\n-1e.", max_size=60))
def test_no_text_crashes(text: str) -> None:
    try:
        call = parse_source(text)
    except SourceError:
        return
    assert parse_source(call.sql()) == call
